"""The Retriever of one process: the versions that people are served from, open and kept in step with the pointer.

Exactly stable and canary stay open; other versions are opened when somebody asks for one by name, and the last few of
them kept. All searching happens on one thread of its own: arrays and models want the whole core, the event loop wants
none of it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from domain.errors import NotReady, TidegateError
from domain.ports import IndexRegistry
from domain.releases import Rollout
from domain.types import Chunk, Mode, Query, Retrieval, Scope
from retrieval.index import HybridIndex

T = TypeVar("T")
OTHERS = 2  # versions kept open beside stable and canary: what an evaluation and a conversation before a move need


class Library:
    """Answers from whatever `registry` points at. `open_index` gives a version by its id; it may take seconds.

    Call `refresh` once before the first question and every second or two afterwards.
    """

    def __init__(self, open_index: Callable[[str], HybridIndex], registry: IndexRegistry) -> None:
        self._open_index, self._registry = open_index, registry
        self._rollout = Rollout()
        self._tombstones = frozenset[str]()
        self._open: OrderedDict[str, HybridIndex] = OrderedDict()  # last used last
        self._problems: dict[str, TidegateError] = {}
        self._opening = asyncio.Lock()  # one version at a time: opening two doubles the memory needed at once
        self._compute = ThreadPoolExecutor(1, "retriever")

    # ------------------------------------------------------------------------------------------ the port

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        """At most `n` hits from `version`; from stable, with a note, while `version` is a canary not open here yet.

        Raises NotFound for an unknown version, NotReady when stable is not open yet.
        """
        index, notes = await self._index(version)
        hits = await self._computed(lambda: index.search(query, scope, n, mode))
        return Retrieval(hits, index.version, notes)

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        """The chunks of `ids` that exist in `version` and are visible, in the order asked."""
        index, _ = await self._index(version)
        return await self._computed(lambda: index.chunks(ids, scope))

    # ------------------------------------------------------------------------------------------ in step

    async def refresh(self) -> None:
        """Follow the pointer and the tombstones. Cheap when nothing moved.

        A version that cannot be opened is in `problems` until the pointer moves; the others go on serving. Raises
        StorageError when the registry cannot be read, and leaves everything as it was.
        """
        rollout, tombstones = await asyncio.to_thread(lambda: (self._registry.rollout(), self._registry.tombstones()))
        self._tombstones = tombstones
        for index in self._open.values():
            index.tombstones = tombstones
        if rollout != self._rollout:
            self._rollout = rollout
            self._problems.clear()
        for version in self._wanted:
            if version not in self._open and version not in self._problems:
                try:
                    await self._opened(version)
                except TidegateError as problem:
                    self._problems[version] = problem
        self._close_surplus()

    @property
    def pointer(self) -> Rollout:
        """The pointer as of the last refresh."""
        return self._rollout

    @property
    def ready(self) -> bool:
        """True when stable is open."""
        return self._rollout.stable in self._open

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions that are open, least recently used first."""
        return tuple(self._open)

    @property
    def problems(self) -> Mapping[str, TidegateError]:
        """Why stable or canary could not be opened, by version."""
        return dict(self._problems)

    def close(self) -> None:
        """Stop computing; what is running ends first."""
        self._compute.shutdown()

    # ------------------------------------------------------------------------------------------ details

    @property
    def _wanted(self) -> tuple[str, ...]:
        return tuple(version for version in (self._rollout.stable, self._rollout.canary) if version)

    async def _index(self, version: str) -> tuple[HybridIndex, tuple[str, ...]]:
        """The index that answers for `version`, with a note when it is another one."""
        if version in self._open:
            self._open.move_to_end(version)
            return self._open[version], ()
        stable, canary = self._rollout.stable, self._rollout.canary
        if version == canary and stable is not None and stable in self._open:
            problem = self._problems.get(version)
            why = f"could not be opened here: {problem}" if problem else "is not open here yet"
            return self._open[stable], (f"Version {version} {why}; {stable} answered.",)
        if version in self._wanted:
            if problem := self._problems.get(version):
                raise problem.with_traceback(None)  # kept and raised again: it would gather frames for ever
            raise NotReady(
                f"Index version {version} is not open yet: try again in a moment.", "retriever", retry_after_s=2
            )
        index = await self._opened(version)
        self._close_surplus()
        return index, ()

    async def _opened(self, version: str) -> HybridIndex:
        async with self._opening:
            if version not in self._open:
                index = await asyncio.to_thread(self._open_index, version)
                index.tombstones = self._tombstones
                self._open[version] = index
            return self._open[version]

    def _close_surplus(self) -> None:
        """Forget the least recently used of the versions that nobody points at."""
        others = [version for version in self._open if version not in self._wanted]
        for version in others[: max(0, len(others) - OTHERS)]:
            del self._open[version]

    async def _computed(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._compute, work)
