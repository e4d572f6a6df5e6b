"""Handwritten fakes of the ports: each does the simplest true thing and remembers what it was asked."""

from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Lock
from zlib import crc32

import numpy as np

from domain.amending import DocumentChange
from domain.errors import NotFound, StorageError, TidegateError
from domain.evaluation import Evaluation
from domain.prompt import PromptPlan
from domain.releases import Decision, IndexVersion, Kept, Leftover, Move, Observation, Rollout
from domain.rollout import arriving, check_removable, moved_meanwhile, unrecorded
from domain.types import (
    Ask,
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
    Session,
    SourceRef,
    StopReason,
    TextSide,
    Turn,
    Usage,
)
from retrieval.pairs import Ids, JoinedPair, Values

PUBLIC = Scope("harbour", frozenset({"public"}))

RULES = Rules(
    k=3,
    wide_k=6,
    rerank_depth=10,
    max_rounds=2,
    trigger_cosine=0.3,
    trigger_min_chunks=1,
    pool_cap=4,
    history_turns=10,
    evidence_token_cap=1000,
    max_question_chars=500,
    session_turns=40,
    session_chars=200_000,
)


def chunk(
    id: str, text: str, *, title: str = "", groups: Iterable[str] = ("public",), tenant: str = "harbour"
) -> Chunk:
    """A chunk whose document is named by the part of `id` before '#'."""
    doc_id = id.partition("#")[0]
    source = SourceRef(doc_id, title or doc_id, f"https://library.example/{doc_id}", "newswire", "2026-01-31")
    return Chunk(id, text, 0, "", source, tenant, frozenset(groups))


def hits(*chunks: Chunk, cosine: float | None = 0.9) -> tuple[Hit, ...]:
    """Hits in the order given, scores falling from 1 by tenths."""
    return tuple(Hit(c, 1.0 - i / 10, i + 1, "fake", cosine) for i, c in enumerate(chunks))


def ask(question: str, *, session: Session | None = None, scope: Scope = PUBLIC, **changes: object) -> Ask:
    """An Ask with everything filled in."""
    return replace(Ask(question, session or Session("s1"), scope, "v1", "t1"), **changes)  # type: ignore[arg-type]


class Clock:
    """Seconds that pass by one millisecond at every look."""

    def __init__(self, step_s: float = 0.001) -> None:
        self.now, self._step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now += self._step_s
        return self.now


@dataclass
class FakeRewriter:
    """Rewrites to `to`, which takes `usage`, or leaves the question; raises `error` when given one."""

    to: str = ""
    error: TidegateError | None = None
    histories: list[tuple[Turn, ...]] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    async def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        self.histories.append(tuple(history))
        if self.error:
            raise self.error
        if self.to:
            return Rewrite(Query(self.to), RewriteStatus.USED, "", self.usage)
        return Rewrite(Query(question), RewriteStatus.NOT_NEEDED)

    async def paraphrase(self, query: Query) -> Rewrite:
        if self.error:
            raise self.error
        wider = replace(query, variants=(*query.variants, f"about {query.text}"))
        return Rewrite(wider, RewriteStatus.USED, "", self.usage)


@dataclass
class FakeRetriever:
    """Finds `found` for every query, as far as the reader may see it."""

    found: tuple[Hit, ...] = ()
    error: TidegateError | None = None
    version: str = ""
    notes: tuple[str, ...] = ()
    asked: list[tuple[Query, Scope, str, int]] = field(default_factory=list)

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        self.asked.append((query, scope, version, n))
        if self.error:
            raise self.error
        visible = (h for h in self.found if scope.may_read(h.chunk.tenant, h.chunk.groups))
        return Retrieval(tuple(visible)[:n], self.version or version, self.notes)

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        known = {h.chunk.id: h.chunk for h in self.found if scope.may_read(h.chunk.tenant, h.chunk.groups)}
        return tuple(known[i] for i in ids if i in known)

    async def encode(self, texts: Sequence[str], version: str, side: TextSide) -> Encoded:
        """Two dimensions, by the length of a text; a query's are the other way round."""
        if self.error:
            raise self.error
        lengths = np.array([[len(text), 1] for text in texts], "<f4").reshape(-1, 2)
        rows = lengths / np.linalg.norm(lengths, axis=1, keepdims=True)
        rows = rows[:, ::-1] if side is TextSide.QUERY else rows
        return Encoded(tuple(row.tobytes() for row in rows), 2, "fake", self.version or version)


@dataclass
class ReversingReranker:
    """Turns the order around, and says `notes` about it; what it read bears `method`, or the one it had."""

    error: TidegateError | None = None
    notes: tuple[str, ...] = ()
    method: str = ""

    async def rerank(self, query: Query, hits: Sequence[Hit], within_s: float | None = None) -> Reranking:
        if self.error:
            raise self.error
        turned = (
            replace(hit, rank=i + 1, score=-float(i), method=self.method or hit.method)
            for i, hit in enumerate(reversed(hits))
        )
        return Reranking(tuple(turned), self.notes)


@dataclass
class ScriptedGenerator:
    """Yields `pieces`, then a Draft; raises `error` after the pieces when given one."""

    pieces: tuple[str, ...] = ("It is so [S1].",)
    stop: StopReason = StopReason.END
    error: TidegateError | None = None
    usage: Usage = field(default_factory=lambda: Usage(input_tokens=10, output_tokens=5))
    detail: str = ""
    plans: list[PromptPlan] = field(default_factory=list)
    closed: bool = False

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        self.plans.append(plan)
        try:
            for piece in self.pieces:
                yield Delta(piece)
            if self.error:
                raise self.error
            yield Draft("".join(self.pieces), self.stop, self.usage, self.detail)
        finally:
            self.closed = True


@dataclass
class FakeObservations:
    """Keeps observations in memory. `error` is raised on reading; while `full` every write is lost, and counted."""

    error: TidegateError | None = None
    full: bool = False
    log: dict[tuple[str, int], list[Observation]] = field(default_factory=dict)
    losses: Counter[tuple[str, int]] = field(default_factory=Counter)

    def write(self, canary: str, began: int, observation: Observation) -> bool:
        if self.full:
            self.lose(canary, began, 1)
            return False
        self.log.setdefault((canary, began), []).append(observation)
        return True

    def lose(self, canary: str, began: int, count: int) -> None:
        self.losses[canary, began] += count

    def read(self, canary: str, began: int) -> tuple[Observation, ...]:
        if self.error:
            raise self.error
        return tuple(sorted(self.log.get((canary, began), ()), key=lambda one: (one.at, one.trace_id)))

    def kept(self, canary: str, began: int) -> Kept:
        if self.error:
            raise self.error
        return Kept(lost=self.losses[canary, began])


class FakePairModel:
    """A pair model of words: the logit is how many of the question's words the passage has, less 0.01 a word of it.

    It remembers the length of every sequence it was given, batch by batch. With `gate` a batch runs when that is set;
    `began` is set when a batch begins. With `seconds_a_token` a batch takes so long on `clock`.
    """

    CLS, SEP = 1, 2

    def __init__(self, max_tokens: int = 64, tag: str = "fake-pairs", stamp: str = "words-1") -> None:
        self.tag, self.stamp, self.max_tokens, self.pads, self.room = tag, stamp, max_tokens, False, 1
        self.batches: list[list[int]] = []
        self.cuts: list[str] = []
        self.error: Exception | None = None
        self.constant: float | None = None
        self.gate, self.began = Event(), Event()
        self.gate.set()
        self.clock, self.seconds_a_token = Clock(step_s=0.0), 0.0

    def cut(self, text: str) -> Ids:
        self.cuts.append(text)
        return np.array([10 + crc32(word.encode(errors="replace")) % 100_000 for word in text.split()], np.int32)

    def join(self, question: Ids, passage: Ids) -> JoinedPair:
        room = self.max_tokens - 3
        asked = question[: max(room // 2, room - len(passage))]
        told = passage[: room - len(asked)]
        ids = np.concatenate([[self.CLS], asked, [self.SEP], told, [self.SEP]]).astype(np.int32)
        types = np.repeat([0, 1], [len(asked) + 2, len(told) + 1]).astype(np.int32)
        return JoinedPair(ids, types, len(told) < len(passage))

    def logits(self, pairs: Sequence[JoinedPair]) -> Values:
        self.began.set()
        self.gate.wait(10)
        self.batches.append([len(pair.ids) for pair in pairs])
        self.clock.now += self.seconds_a_token * sum(self.batches[-1])
        if self.error:
            raise self.error
        if self.constant is not None:
            return np.full(len(pairs), self.constant, np.float32)
        return np.array([self._logit(pair) for pair in pairs], np.float32)

    def _logit(self, pair: JoinedPair) -> float:
        told = pair.ids[pair.types == 1].tolist()
        asked = pair.ids[pair.types == 0].tolist()[1:-1]
        return sum(word in told for word in asked) - 0.01 * len(told)


class MemoryRegistry:
    """An index registry without a disk. A version in `altered` is no longer what was published, of one in `spoilt`
    nothing can be read; with `illegible` the ledger cannot be read.
    """

    def __init__(self) -> None:
        self.altered: set[str] = set()
        self.spoilt: set[str] = set()
        self.illegible = False
        self._versions: dict[str, tuple[IndexVersion, Path]] = {}
        self._decisions: dict[str, list[Decision]] = {}
        self._moves: list[Move] = []
        self._gone: frozenset[str] = frozenset()
        self._access: dict[str, frozenset[str]] = {}
        self._changes: list[DocumentChange] = []
        self._lock = Lock()

    def publish(self, staged: Path, version: IndexVersion) -> bool:
        if not version.id.isalnum():
            raise NotFound(f"'{version.id}' is no version name.", "version")
        if version.id in self.spoilt:
            raise StorageError(f"{version.id} is damaged: remove it.")
        with self._lock:
            new = version.id not in self._versions
            self._versions.setdefault(version.id, (version, staged))
            return new

    def folder(self, version: str) -> Path:
        if version not in self._versions:
            there = ", ".join(sorted(self._versions)) or "none yet"
            raise NotFound(f"Index version '{version}' does not exist; there are: {there}.", "version")
        return self._versions[version][1]

    def damaged(self) -> Mapping[str, str]:
        return {version: f"{version} is damaged" for version in sorted(self.spoilt)}

    def check(self, version: str) -> None:
        self.verify(version)

    def size(self, version: str) -> int:
        return sum(path.stat().st_size for path in self.folder(version).rglob("*") if path.is_file())

    def leftovers(self) -> tuple[Leftover, ...]:
        return ()

    def clear_leftovers(self) -> tuple[Leftover, ...]:
        return ()

    def versions(self) -> tuple[IndexVersion, ...]:
        there = (v for v, _ in self._versions.values() if v.id not in self.spoilt)
        return tuple(sorted(there, key=lambda v: (v.built_at, v.id)))

    def record(self, decision: Decision) -> None:
        self.folder(decision.binding.version)
        self._decisions.setdefault(decision.binding.version, []).append(decision)

    def decisions(self, version: str) -> tuple[Decision, ...]:
        self.folder(version)
        return tuple(self._decisions.get(version, ()))

    def rollout(self) -> Rollout:
        return self._moves[-1].after if self._moves else Rollout()

    def move(self, move: Move) -> None:
        if move.after != move.before and move.after.revision != move.before.revision + 1:
            raise ValueError(f"a move from revision {move.before.revision} to {move.after.revision}: this is a bug")
        with self._lock:
            if (current := self.rollout()) != move.before:
                raise moved_meanwhile(move.before, current, self._moves[-1] if self._moves else None)
            for version in arriving(move.before, move.after):
                self.folder(version)
            if move.after != move.before:
                if move.decision is not None:
                    about_it = self._decisions.setdefault(move.decision.binding.version, [])
                    if (forced := unrecorded(move, about_it)) is not None:
                        about_it.append(forced)
                self._moves.append(move)

    def ledger(self) -> tuple[Move, ...]:
        if self.illegible:
            raise StorageError("ledger.jsonl, line 1 is damaged: restore it from a backup or remove it.")
        return tuple(self._moves)

    def remove(self, version: str) -> None:
        with self._lock:
            self.folder(version)
            check_removable(version, self.rollout())
            del self._versions[version]
            self.altered.discard(version)
            self.spoilt.discard(version)

    def verify(self, version: str) -> None:
        self.folder(version)
        if version in self.altered:
            raise StorageError(f"Index version {version} is not what was published under that name.")

    def tombstones(self) -> frozenset[str]:
        return self._gone

    def tombstone(self, doc_ids: Iterable[str]) -> None:
        with self._lock:
            self._gone |= frozenset(doc_ids)

    def restore(self, doc_ids: Iterable[str]) -> None:
        with self._lock:
            self._gone -= frozenset(doc_ids)

    def access(self) -> Mapping[str, frozenset[str]]:
        return dict(self._access)

    def set_access(self, doc_id: str, groups: frozenset[str] | None) -> None:
        with self._lock:
            self._access.pop(doc_id, None)
            if groups is not None:
                self._access[doc_id] = groups

    def note_change(self, change: DocumentChange) -> None:
        self._changes.append(change)

    def changes(self) -> tuple[DocumentChange, ...]:
        return tuple(self._changes)

    def lose(self, version: str) -> None:
        """Its folder is deleted by hand, whoever needs it."""
        del self._versions[version]


class FakeTracker:
    """Remembers evaluations by their id, and what the aliases say."""

    def __init__(self) -> None:
        self.runs: dict[str, Evaluation] = {}
        self.aliases: dict[str, str] = {}

    def record(self, evaluation: Evaluation, folder: Path) -> str:
        self.runs[evaluation.id] = evaluation
        return f"run-{evaluation.id}"

    def follow(self, rollout: Rollout, candidate: str | None) -> None:
        wanted = {"stable": rollout.stable, "canary": rollout.canary, "candidate": candidate}
        self.aliases = {alias: version for alias, version in wanted.items() if version}
