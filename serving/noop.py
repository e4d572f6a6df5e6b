"""Four stages that do nothing, at once: what is left of a request's time is the graph itself.

`tidegate bench graph` measures them, and the tests which end replicas use them.
"""

# ruff: noqa: ARG002  (a stage that does nothing has no use for what it is given)

import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from domain.amending import DocumentChange
from domain.errors import NotFound, TidegateError
from domain.naming import Naming
from domain.ports import Stages
from domain.prompt import PromptPlan
from domain.releases import Decision, IndexVersion, Leftover, Move, Rollout
from domain.types import (
    Chunk,
    Delta,
    Draft,
    Encoded,
    Hit,
    Mode,
    Query,
    Reranking,
    Retrieval,
    Rewrite,
    RewriteStatus,
    Rules,
    Scope,
    SourceRef,
    StopReason,
    TextSide,
    Turn,
)
from serving.auth import OpenTo
from serving.graph import GraphPlan, StageOptions
from serving.service import Service
from serving.telemetry import Telemetry

VERSION = "noop"
READER = Scope("noop", frozenset({"all"}))
TEXT = "The gate opens at high water."
RULES = Rules(
    k=4,
    wide_k=4,
    rerank_depth=4,
    max_rounds=1,
    trigger_cosine=0.0,
    trigger_min_chunks=0,
    pool_cap=24,
    history_turns=10,
    evidence_token_cap=6000,
    max_question_chars=8000,
    session_turns=40,
    session_chars=200_000,
)


class NoOpRewriter:
    """Leaves every question as it is."""

    async def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """The question."""
        return Rewrite(Query(question), RewriteStatus.NOT_NEEDED)

    async def paraphrase(self, query: Query) -> Rewrite:
        """The query."""
        return Rewrite(query, RewriteStatus.UNCHANGED)


class NoOpLibrary:
    """Finds the same four short chunks for everybody."""

    def __init__(self) -> None:
        source = SourceRef("tides", "Tides", "", "note", "")
        chunks = [Chunk(f"tides#{i}#0", TEXT, i, "", source, READER.tenant, READER.groups) for i in range(4)]
        self._hits = tuple(Hit(chunk, 1.0 - i / 10, i + 1, "noop", 1.0) for i, chunk in enumerate(chunks))

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        """At most four hits."""
        return Retrieval(self._hits[:n], version)

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        """Those of the four chunks that were asked for."""
        known = {hit.chunk.id: hit.chunk for hit in self._hits}
        return tuple(known[i] for i in ids if i in known)

    async def encode(self, texts: Sequence[str], version: str, side: TextSide) -> Encoded:
        """The same vector of one dimension for every text."""
        return Encoded((struct.pack("<f", 1.0),) * len(texts), 1, "noop", version)

    async def refresh(self) -> None:
        """Nothing ever changes."""

    async def follow(self) -> None:
        """Nothing ever changes."""

    @property
    def problems(self) -> Mapping[str, TidegateError]:
        """None."""
        return {}

    @property
    def ready(self) -> bool:
        """True."""
        return True


class NoOpReranker:
    """Keeps the order."""

    async def rerank(self, query: Query, hits: Sequence[Hit], within_s: float | None = None) -> Reranking:
        """The hits."""
        return Reranking(tuple(hits))


class NoOpGenerator:
    """Writes one sentence in one piece."""

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        """A delta and the draft."""
        yield Delta(f"{TEXT[:-1]} [S1].")
        yield Draft(f"{TEXT[:-1]} [S1].", StopReason.END)


class NoOpRegistry:
    """One version, admitted for everybody. Cannot be written to."""

    _version = IndexVersion(VERSION, None, "none", "none", "none", 1, 4, "")

    def rollout(self) -> Rollout:
        """The one version for everybody."""
        return Rollout(stable=VERSION, revision=1)

    def versions(self) -> tuple[IndexVersion, ...]:
        """The one version."""
        return (self._version,)

    def decisions(self, version: str) -> tuple[Decision, ...]:
        """None."""
        return ()

    def tombstones(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def tombstone(self, doc_ids: Iterable[str]) -> None:
        """Refused."""
        raise NotFound("The measuring graph has no documents to forget: serve a real library for that.")

    def restore(self, doc_ids: Iterable[str]) -> None:
        """Refused."""
        raise NotFound("The measuring graph has no documents to restore: serve a real library for that.")

    def access(self) -> Mapping[str, frozenset[str]]:
        """None."""
        return {}

    def set_access(self, doc_id: str, groups: frozenset[str] | None) -> None:
        """Refused."""
        raise NotFound("The measuring graph has no documents to give readers: serve a real library for that.")

    def note_change(self, change: DocumentChange) -> None:
        """Refused."""
        raise NotFound("The measuring graph has no documents to change: serve a real library for that.")

    def changes(self) -> tuple[DocumentChange, ...]:
        """None."""
        return ()

    def folder(self, version: str) -> Path:
        """There is none."""
        raise NotFound(f"Version {version} has no folder: it exists to be measured, not to be read.")

    def publish(self, staged: Path, version: IndexVersion) -> bool:
        """Refused."""
        raise NotFound("The measuring graph takes no versions: serve a real library for that.")

    def record(self, decision: Decision) -> None:
        """Refused."""
        raise NotFound("The measuring graph takes no decisions: serve a real library for that.")

    def move(self, move: Move) -> None:
        """Refused."""
        raise NotFound("The measuring graph has no pointer to move: serve a real library for that.")

    def ledger(self) -> tuple[Move, ...]:
        """None."""
        return ()

    def remove(self, version: str) -> None:
        """Refused."""
        raise NotFound("The measuring graph has no versions to remove: serve a real library for that.")

    def verify(self, version: str) -> None:
        """There is nothing to be damaged."""

    def check(self, version: str) -> None:
        """There is nothing to be damaged."""

    def damaged(self) -> Mapping[str, str]:
        """None."""
        return {}

    def size(self, version: str) -> int:
        """Nothing."""
        return 0

    def leftovers(self) -> tuple[Leftover, ...]:
        """None."""
        return ()

    def clear_leftovers(self) -> tuple[Leftover, ...]:
        """None."""
        return ()


def noop_service(stages: Stages, ready: Callable[[], Awaitable[Mapping[str, bool]]], telemetry: Telemetry) -> Service:
    """The HTTP surface over whatever stages it is given, open to everybody."""
    naming, registry = Naming(()), NoOpRegistry()
    return Service(stages, RULES, naming, registry, OpenTo(READER), ready=ready, telemetry=telemetry)


def noop_plan(options: StageOptions | None = None, gateway: StageOptions | None = None) -> GraphPlan:
    """The graph of four stages that do nothing. `options` sizes each stage, `gateway` the gateway."""
    size = options or StageOptions(1, 1, 0.05, 0.0, 128, 64.0)
    plan = partial(GraphPlan, NoOpRewriter, NoOpLibrary, NoOpReranker, NoOpGenerator, noop_service)
    sized = partial(plan, rewriter=size, retriever=size, reranker=size, generator=size)
    return sized(gateway=gateway) if gateway else sized()
