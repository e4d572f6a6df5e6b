"""The Retriever over all shards of a library: what it answers is what one index over everything would answer.

A search takes three rounds over all shards: a survey, which settles the view and adds up the statistics; shortlists,
which merging.py fuses; and the hits, from the shards that hold them. All shards answer from one version and the same
tombstones, or the search begins again; a shard that does not answer fails the search. Never a smaller library.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar
from zlib import crc32

from domain.errors import NotReady, StageFailed, StageTimeout
from domain.types import Chunk, Hit, Mode, Query, Retrieval, Scope
from retrieval.arms import WordStatistics
from retrieval.families import folded, passage_id, widened
from retrieval.merging import Shortlist, fused, summed
from retrieval.phases import Asked, Fused, Recipe
from retrieval.shard_library import Survey, View
from retrieval.sharding import document_of, shards_of

T = TypeVar("T")
TRIES = 3  # a search whose shards disagree, or move under it, is begun as many times
STAGE = "retriever"


class Shard(Protocol):
    """One shard, wherever it is; what its methods promise is written in shard_library.py."""

    name: str

    async def survey(self, asked: Asked, scope: Scope, version: str, embed: bool, fresh: bool) -> Survey: ...

    async def shortlist(
        self, asked: Asked, scope: Scope, view: View, vectors: Any, statistics: Sequence[WordStatistics]
    ) -> Shortlist | View: ...

    async def hits(self, ids: Sequence[str], scope: Scope, view: View) -> tuple[Hit, ...] | View: ...

    async def passages(
        self, ids: Sequence[str], scope: Scope, version: str, view: View | None
    ) -> tuple[View, tuple[Chunk, ...]] | None: ...


class ShardedRetriever:
    """Answers from `shards`, which must be all shards of the library in their order.

    `limit_s` is for one search or lookup, all of its rounds and tries together.
    """

    def __init__(self, shards: Sequence[Shard], recipe: Recipe, limit_s: float = 10.0) -> None:
        self._shards, self._recipe, self._limit_s = tuple(shards), recipe, limit_s

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        """As Library.retrieve of one index over everything.

        Raises StageTimeout or StageFailed naming the shard that failed, NotReady when the shards agree on no version.
        """
        wished = self._recipe.asked(query, n, mode)
        rounds, wanted, told = _Rounds(self._shards, self._limit_s), version, dict[str, None]()
        for attempt in range(TRIES):
            surveys, notes = await self._agreed(rounds, wished, scope, wanted, fresh=attempt > 0)
            asked = widened(wished, surveys[0].parts)
            told |= dict.fromkeys(notes)
            view = surveys[0].view
            vectors = next((survey.vectors for survey in surveys if survey.vectors is not None), None)
            statistics = summed([survey.statistics for survey in surveys])
            parts = await rounds.all(
                {i: shard.shortlist(asked, scope, view, vectors, statistics) for i, shard in enumerate(self._shards)}
            )
            elsewhere = [part for part in parts.values() if isinstance(part, View)]
            if not elsewhere:
                whole = [part for part in parts.values() if not isinstance(part, View)]
                found, ids = fused(whole, asked, self._recipe.fusion)
                if surveys[0].parts > 1:
                    ids = [passage_id(part) for part in ids]
                    found = folded(found, n, ids.__getitem__)
                hits = await self._hits(rounds, found, ids, asked, scope, view)
                if not isinstance(hits, View):
                    # A shard may have caught up between two tries: then nobody stood in for what answered.
                    return Retrieval(hits, view.version, tuple(told) if view.version != version else ())
                elsewhere = [hits]
            # Another replica of a shard may not have the version open yet that the first one spoke for.
            behind = min((here.version for here in elsewhere if here.version != view.version), default=None)
            if behind is not None:
                wanted = behind
                told[f"Version {view.version} is not open everywhere yet; {behind} answered."] = None
        raise _moving()

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        """As Library.chunks; only shards that hold one of the documents are asked."""
        rounds = _Rounds(self._shards, self._limit_s)
        asked = self._owned(ids) or {0: ()}  # the first one says whether there is such a version at all
        view: View | None = None
        for attempt in range(TRIES):
            parts = await rounds.all(
                {i: self._shards[i].passages(own, scope, version, view) for i, own in asked.items()}
            )
            views = {part[0] for part in parts.values() if part is not None}
            if len(views) == 1 and None not in parts.values():
                found = {chunk.id: chunk for part in parts.values() if part is not None for chunk in part[1]}
                return tuple(found[chunk_id] for chunk_id in ids if chunk_id in found)
            surveys, _ = await self._agreed(rounds, Asked((), 1, 1, Mode.DENSE), scope, version, fresh=attempt > 0)
            view = surveys[0].view
        raise _moving()

    async def _agreed(
        self, rounds: "_Rounds", asked: Asked, scope: Scope, version: str, fresh: bool
    ) -> tuple[list[Survey], tuple[str, ...]]:
        """Surveys of all shards at one view, and every note on the way there.

        Shards that follow the registry at their own pace may differ for a second. Tombstones: everybody looks again.
        Versions: what a shard had to answer from instead is asked of all, because it is open where others are behind.
        """
        # One shard makes the vectors for all; which one depends on the question, so each keeps those it is asked for.
        embedding = crc32(" ".join(asked.texts).encode("utf-8", "surrogatepass")) % len(self._shards)
        needed = bool(asked.texts) and asked.mode is not Mode.LEXICAL
        wanted, notes = version, dict[str, None]()
        surveys: dict[int, Survey] = {}
        for attempt in range(TRIES):
            surveys = await rounds.all(
                {
                    i: shard.survey(asked, scope, wanted, needed and i == embedding, fresh or attempt > 0)
                    for i, shard in enumerate(self._shards)
                }
            )
            notes |= dict.fromkeys(note for survey in surveys.values() for note in survey.notes)
            if len({survey.view for survey in surveys.values()}) == 1:
                return list(surveys.values()), tuple(notes)
            others = Counter(survey.view.version for survey in surveys.values() if survey.view.version != wanted)
            wanted = min(others, key=lambda other: (-others[other], other), default=wanted)
        answers = ", ".join(f"{self._shards[i].name}: {survey.view.version}" for i, survey in surveys.items())
        raise NotReady(
            f"The shards do not answer from one version and the same deletions ({answers}): try again in a moment.",
            STAGE,
            retry_after_s=1.0,
        )

    async def _hits(
        self, rounds: "_Rounds", found: Fused, ids: Sequence[str], asked: Asked, scope: Scope, view: View
    ) -> tuple[Hit, ...] | View:
        """The hits with text; where a shard is that moved on meanwhile."""
        rows = found.ranking.rows.tolist()
        owned = self._owned([ids[row] for row in rows])
        parts = await rounds.all({i: self._shards[i].hits(own, scope, view) for i, own in owned.items()})
        hits: dict[str, Hit] = {}
        for part in parts.values():
            if isinstance(part, View):
                return part
            hits |= {hit.chunk.id: hit for hit in part}
        if len(hits) < len(rows):
            raise StageFailed(
                f"The shards sent {len(hits)} of {len(rows)} hits they had found: this is a bug, or their folders "
                "were cut for another number of shards.",
                STAGE,
            )
        return tuple(
            replace(
                hits[ids[row]],
                score=score,
                rank=rank,
                method=asked.mode.value,
                cosine=found.cosine.get(row),
                bm25=found.bm25.get(row),
            )
            for rank, (row, score) in enumerate(zip(rows, found.ranking.scores.tolist(), strict=True), 1)
        )

    def _owned(self, ids: Sequence[str]) -> dict[int, tuple[str, ...]]:
        """Chunk ids by the shard of their document, in the order given."""
        owned: dict[int, list[str]] = {}
        owners = shards_of([document_of(chunk_id) for chunk_id in ids], len(self._shards)).tolist()
        for chunk_id, owner in zip(ids, owners, strict=True):
            owned.setdefault(owner, []).append(chunk_id)
        return {owner: tuple(own) for owner, own in owned.items()}


class _Rounds:
    """Calls to several shards at once, within the time that is left of one search."""

    def __init__(self, shards: Sequence[Shard], limit_s: float) -> None:
        self._shards, self._limit_s = shards, limit_s
        self._until = asyncio.get_running_loop().time() + limit_s

    async def all(self, calls: Mapping[int, Coroutine[Any, Any, T]]) -> dict[int, T]:
        """What each shard gives. The first failure ends the others and is raised as it came."""
        tasks: dict[int, asyncio.Task[T]] = {i: asyncio.ensure_future(call) for i, call in calls.items()}
        try:
            left = self._until - asyncio.get_running_loop().time()
            _, silent = await _first_failure(tasks.values(), left)
            for task in tasks.values():
                if task.done():
                    task.result()  # raises what a shard raised, the lowest one first
            if silent:
                names = ", ".join(self._shards[i].name for i, task in tasks.items() if task in silent)
                raise StageTimeout(f"No answer came from {names} within {self._limit_s:g} s: try again.", names, 1.0)
            return {i: task.result() for i, task in tasks.items()}
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)


async def _first_failure(tasks: Any, left_s: float) -> tuple[set[Awaitable[Any]], set[Awaitable[Any]]]:
    """Those that ended and those that did not, at the first failure, at the end of all, or when the time is over."""
    if not tasks:
        return set(), set()
    return await asyncio.wait(tasks, timeout=max(0.0, left_s), return_when=asyncio.FIRST_EXCEPTION)


def _moving() -> StageFailed:
    return StageFailed(f"The library changed under this search {TRIES} times: try again.", STAGE, 1.0)
