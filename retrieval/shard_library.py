"""The library of one shard: it answers the steps of a search that several shards make together (sharded.py).

Versions, pointer and amendments are followed as by any library. Every step but the first names the view it belongs to;
a shard that is not at that view, even after a look at the registry, says where it is instead of answering from there.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any

from domain.amending import Amendments
from domain.ports import IndexRegistry
from domain.types import Chunk, Hit, Mode, Scope
from retrieval.arms import WordStatistics
from retrieval.index import HybridIndex
from retrieval.library import Library
from retrieval.merging import Shortlist, shortlist
from retrieval.phases import Asked, Finding


@dataclass(frozen=True, slots=True)
class View:
    """What a shard answers from: the version, and a digest of what is said of its documents since."""

    version: str
    amended: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What a shard knows before a search: statistics per text, and the texts' vectors where it was asked for them."""

    view: View
    statistics: tuple[WordStatistics, ...]
    vectors: Any  # numpy float32 [n_texts, dimensions], or None
    notes: tuple[str, ...]
    parts: int = 1  # rows that a passage of the version has at most


class ShardLibrary(Library):
    """A Library whose indexes hold one shard each; `name` is how it is called in errors."""

    def __init__(
        self,
        open_index: Callable[[str], HybridIndex],
        registry: IndexRegistry,
        drill_s: float = 0.0,
        name: str = "retriever-0",
    ) -> None:
        super().__init__(open_index, registry, drill_s)
        self.name = name

    async def survey(self, asked: Asked, scope: Scope, version: str, embed: bool, fresh: bool) -> Survey:
        """What this shard, or a version that stands in here, knows about the question. `fresh` looks at the registry.

        Raises as `retrieve` does.
        """
        if fresh:
            await self._look()
        index, notes = await self._index(version)
        if self._drill_s and index.version == self._rollout.canary:
            await asyncio.sleep(self._drill_s)
        amended = self._amended
        found = await self._computed(lambda: surveyed(index, amended, asked, scope, embed))
        return replace(found, notes=notes)

    async def shortlist(
        self,
        asked: Asked,
        scope: Scope,
        view: View,
        vectors: Any,  # numpy float32 [n_texts, dimensions], or None in lexical mode
        statistics: Sequence[WordStatistics],
    ) -> Shortlist | View:
        """What the arms find here with the statistics of the whole library; where this shard is, if not at `view`."""
        index = await self._at(view)
        if isinstance(index, View):
            return index
        amended = self._amended
        return await self._computed(lambda: shortlisted(index, amended, asked, scope, vectors, statistics))

    async def hits(self, ids: Sequence[str], scope: Scope, view: View) -> tuple[Hit, ...] | View:
        """Hits of these visible chunks, still without place and score; where this shard is, if not at `view`."""
        index = await self._at(view)
        if isinstance(index, View):
            return index
        amended = self._amended
        return await self._computed(lambda: hits_of(index, amended, ids, scope))

    async def passages(
        self, ids: Sequence[str], scope: Scope, version: str, view: View | None
    ) -> tuple[View, tuple[Chunk, ...]] | None:
        """The visible chunks of `ids` and the view they are of; None when this shard is not at the `view` given."""
        index = await self._at(view) if view else (await self._index(version))[0]
        if isinstance(index, View):
            return None
        amended = self._amended
        here = viewed(index, amended)
        return here, await self._computed(lambda: chunks_of(index, amended, ids, scope))

    async def _at(self, view: View) -> HybridIndex | View:
        """The index of a view, after a look where that may help; otherwise the view that this shard is at."""
        here = view
        for look in (False, True):
            if look:
                await self._look()
            index, _ = await self._index(view.version)
            here = viewed(index, self._amended)
            if here == view:
                return index
        return here


def viewed(index: HybridIndex, amended: Amendments) -> View:
    """The view that an index answers from while this is said of its documents."""
    return View(index.version, _digest(amended))


def surveyed(index: HybridIndex, amended: Amendments, asked: Asked, scope: Scope, embed: bool) -> Survey:
    """What an index knows before a search."""
    visible = index.stored.visible(scope, amended)
    words = () if asked.mode is Mode.DENSE else asked.texts
    statistics = tuple(index.lexical.statistics(text, visible) for text in words)
    vectors = index.embedder.embed_queries(asked.texts) if embed else None
    return Survey(viewed(index, amended), statistics, vectors, (), index.stored.parts)


def shortlisted(
    index: HybridIndex,
    amended: Amendments,
    asked: Asked,
    scope: Scope,
    vectors: Any,  # numpy float32 [n_texts, dimensions], or None in lexical mode
    statistics: Sequence[WordStatistics],
) -> Shortlist:
    """What the arms of an index return with the statistics of the whole library."""
    visible = index.stored.visible(scope, amended)
    known: Sequence[WordStatistics | None] = statistics or [None] * len(asked.texts)
    return shortlist(Finding(index.lexical, index.dense, visible, asked, vectors, known), index.stored.ids)


def hits_of(index: HybridIndex, amended: Amendments, ids: Sequence[str], scope: Scope) -> tuple[Hit, ...]:
    """Hits of visible chunks, without place and score."""
    return tuple(index.hit(row) for row in _rows(index, ids, scope, amended))


def chunks_of(index: HybridIndex, amended: Amendments, ids: Sequence[str], scope: Scope) -> tuple[Chunk, ...]:
    """The visible chunks, in the order asked."""
    return tuple(index.stored.chunk(row) for row in _rows(index, ids, scope, amended))


def _rows(index: HybridIndex, ids: Sequence[str], scope: Scope, amended: Amendments) -> list[int]:
    mask = index.stored.visible(scope, amended).mask
    rows = (index.stored.row(chunk_id) for chunk_id in ids)
    return [row for row in rows if row is not None and mask[row]]


@lru_cache(maxsize=4)  # a set of a million ids is hashed once, and then found by identity
def _digest(amended: Amendments) -> str:
    access = [f"{doc_id}\1" + "\1".join(sorted(groups)) for doc_id, groups in sorted(amended.access.items())]
    said = "\2".join(["\0".join(sorted(amended.gone)), "\0".join(access)])
    return sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]
