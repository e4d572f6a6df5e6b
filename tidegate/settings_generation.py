"""Who writes answers and rewrites questions, and how hard a hosted model is tried: part of settings.py."""

import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints

from tidegate.section import Folder, ModelId, Seconds, Section

Region = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$"), "a region like eu-central-1"]


def _with_a_host(url: str) -> str:
    """The address, if it can be called: a pattern knows nothing of ports, brackets and names of hosts."""
    parts = urlsplit(url)  # raises ValueError, like all of this
    host = parts.hostname or ""
    if parts.port == 0 or parts.query or parts.fragment:
        raise ValueError("a path follows the port, and nothing follows the path")
    if ":" in host:
        ip_address(host.partition("%")[0])
    elif not _HOST.fullmatch(host.encode("idna").decode()):
        raise ValueError("no name of a host")
    return url


_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
Url = Annotated[
    str,
    StringConstraints(max_length=2048, pattern=r"^https?://[^\s/]\S*$"),
    AfterValidator(_with_a_host),
    "an http(s) address like http://127.0.0.1:11434/v1",
]


class Generation(Section):
    """Who writes the answer."""

    backend: Literal["extractive", "bedrock", "openai_compatible", "ungrounded"] = Field(
        default="extractive",
        description="extractive: no model, quotes; bedrock, openai_compatible: a hosted model; ungrounded: fault "
        "injection.",
    )
    model_id: ModelId | None = Field(default=None, description="The hosted model. Absent: none.")
    region: Region | None = Field(
        default=None, description="Cloud region of bedrock. Absent: the cloud client's own configuration."
    )
    endpoint_url: Url | None = Field(
        default=None,
        description="Address of the model service, of openai_compatible up to and with /v1. Absent: the vendor's.",
    )
    key_file: Folder | None = Field(
        default=None, description="File with the key of openai_compatible, read at start. Absent: no key is sent."
    )
    max_tokens: int = Field(default=1024, ge=16, le=64_000, description="Longest answer, in tokens.")
    temperature: float = Field(default=0.0, ge=0, le=1, description="Sampling temperature, no unit.")
    allow_uncached: bool = Field(default=False, description="Start although model or prompt cannot be cached.")
    cache_minimum: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="Smallest prefix that the model caches, in tokens. Absent: what is known of the model.",
    )
    attempts: int = Field(
        default=3, ge=1, le=10, description="Model calls per question before its first text, the first one included."
    )
    deadline_s: Seconds = Field(
        default=120.0, description="Seconds for one answer of the model, all attempts and waits together."
    )
    connect_timeout_s: Seconds = Field(default=5.0, description="Seconds to open a connection.")
    read_timeout_s: Seconds = Field(default=60.0, description="Seconds between two pieces of a reply.")

    @property
    def hosted(self) -> bool:
        """True when a model is asked over a network."""
        return self.backend in ("bedrock", "openai_compatible")

    @property
    def model(self) -> str:
        """What is asked, as a price table names it: the model, or the backend where there is none."""
        return self.model_id if self.hosted and self.model_id else self.backend

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.hosted and self.model_id is None:
            yield "model_id", f"the id of a model, because generation.backend is {self.backend}"
        if self.backend == "openai_compatible" and self.endpoint_url is None:
            wanted = "an address like http://127.0.0.1:11434/v1, because generation.backend is openai_compatible"
            yield "endpoint_url", wanted


class Rewriting(Section):
    """Who turns a follow-up into a question that stands alone."""

    backend: Literal["rules", "bedrock", "none"] = Field(
        default="rules", description="none: the question stays as typed."
    )
    model_id: ModelId | None = Field(default=None, description="Model of backend bedrock. Absent: none.")
    timeout_s: Seconds = Field(default=3.0, description="Seconds after which the question is used as typed.")

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.backend == "bedrock" and self.model_id is None:
            yield "model_id", "the id of a model, because rewriting.backend is bedrock"
