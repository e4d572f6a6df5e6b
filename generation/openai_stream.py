"""What a stream of chat completions says, and what its errors mean. Messages never repeat the server's own.

Source: OpenAI's API reference, "Chat completion chunk"; vLLM, Ollama and OpenRouter follow it and differ in what they
leave out, which is why nothing is taken for granted here.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2

from domain.errors import StageFailed, StageTimeout, Throttled, UpstreamDenied, UpstreamInterrupted
from domain.types import StopReason, Usage
from generation.efforts import Deadline, too_late

STAGE = "generate"
MAX_LINE = 1 << 20  # bytes: a line that never ends must not fill the memory
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event: a piece of text, why it stopped, what was used; any of them may be missing."""

    text: str = ""
    stopped: str | None = None
    usage: Json | None = None
    refusal: bool = False  # the text is the model's own refusal

    @property
    def silent(self) -> bool:
        """True when the event only says that the stream is open."""
        return not self.text and self.stopped is None and self.usage is None


async def chunks(response: httpx2.Response, model_id: str) -> AsyncGenerator[Chunk, None]:
    """The events of a reply up to its end. Raises UpstreamInterrupted for one that cannot be read, and what errors in
    the stream mean.
    """
    async for line in _lines(response.aiter_bytes(), model_id):
        name, _, value = line.partition(b":")
        if name != b"data":
            continue  # comments keep the connection open
        value = value.strip()
        if value == b"[DONE]":
            return
        yield _chunk(value, model_id)


async def _lines(pieces: AsyncIterator[bytes], model_id: str) -> AsyncGenerator[bytes, None]:
    """Lines ended by a line feed and by nothing else: the separators of Unicode may stand in the text of an answer."""
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > MAX_LINE:
            raise _garbled(model_id, f"a line of more than {MAX_LINE} bytes")
        for line in whole:
            yield line.rstrip(b"\r")
    if rest:
        yield rest


def _chunk(data: bytes, model_id: str) -> Chunk:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        raise _garbled(model_id, "an event that is not JSON") from None
    if not isinstance(said, dict):
        raise _garbled(model_id, "an event that is no object")
    if error := said.get("error"):
        raise _failed_inside(error, model_id)
    usage = said.get("usage")
    choices = said.get("choices") or [{}]
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        raise _garbled(model_id, "choices that are no list of objects")
    delta = choices[0].get("delta") or {}
    text, refusal = delta.get("content") or "", delta.get("refusal") or ""
    if not isinstance(text, str) or not isinstance(refusal, str):
        raise _garbled(model_id, "a piece that is no text")
    stopped = choices[0].get("finish_reason")
    return Chunk(
        text or refusal,
        None if stopped is None else str(stopped),
        usage if isinstance(usage, dict) else None,
        bool(refusal),
    )


def used(usage: Json) -> Usage:
    """Tokens by class. The server counts cached tokens among those of the prompt; ours exclude them."""
    details = usage.get("prompt_tokens_details") or {}
    read, write = details.get("cached_tokens") or 0, details.get("cache_write_tokens") or 0
    prompt = usage.get("prompt_tokens") or 0
    return Usage(
        input_tokens=max(0, prompt - read - write),
        output_tokens=usage.get("completion_tokens") or 0,
        cache_read_tokens=read,
        cache_write_tokens=write,
        measured="prompt_tokens" in usage and "completion_tokens" in usage,
    )


def refused(status: int, retry_after: str | None, model_id: str) -> StageFailed:
    """A status other than 200, before the first byte of a reply."""
    wait_s = float(retry_after) if retry_after and retry_after.replace(".", "", 1).isdigit() else None
    if status == 429:
        return Throttled(f"Model {model_id} is throttled ({status}): try again a little later.", STAGE, wait_s)
    if status in (408, 504):
        return StageTimeout(f"Model {model_id} did not answer in time ({status}): try again.", STAGE)
    if status >= 500:
        return StageFailed(f"Model {model_id} failed ({status}): try again.", STAGE, wait_s)
    return UpstreamDenied(
        f"Model {model_id} refuses the call ({status}): check generation.endpoint_url, generation.model_id and "
        "generation.key_file.",
        STAGE,
    )


def _failed_inside(error: Any, model_id: str) -> StageFailed:
    """An error that came instead of a chunk, after the status 200."""
    code = error.get("code") if isinstance(error, dict) else None
    kind = error.get("type") if isinstance(error, dict) else None
    if code in (429, "429") or "rate_limit" in f"{code} {kind}":
        return Throttled(f"Model {model_id} is throttled in the middle of its reply: try again a little later.", STAGE)
    return UpstreamInterrupted(f"The reply of model {model_id} broke off half-way: ask again.", STAGE)


def translated(error: httpx2.HTTPError, model_id: str, begun: bool) -> StageFailed:
    """An error of the connection as ours. `begun`: the reply had started."""
    if isinstance(error, httpx2.TimeoutException):
        return StageTimeout(f"Model {model_id} did not answer in time: try again.", STAGE)
    if begun:
        return UpstreamInterrupted(f"The reply of model {model_id} broke off half-way: ask again.", STAGE)
    return StageFailed(f"Model {model_id} cannot be reached ({type(error).__name__}): try again.", STAGE)


def silent(model_id: str, limit_s: float, deadline: Deadline) -> StageTimeout:
    """Nothing came in time: within `limit_s` of silence, or before the deadline."""
    if deadline.left():
        return StageTimeout(f"Model {model_id} said nothing for {limit_s:g} s: try again.", STAGE)
    return too_late(model_id, deadline)


def _garbled(model_id: str, what: str) -> UpstreamInterrupted:
    return UpstreamInterrupted(f"The reply of model {model_id} cannot be read ({what}): ask again.", STAGE)


STOP_REASONS = {
    "stop": StopReason.END,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.FILTERED,
    "tool_calls": StopReason.TOOL,
    "function_call": StopReason.TOOL,
}
