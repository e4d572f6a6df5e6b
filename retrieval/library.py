"""The Retriever of one process: the versions that people are served from, open and kept in step with the pointer.

Stable, canary and the version before stay open, so that a move in either direction finds what it needs; others are
opened when somebody asks for one by name, and the last few of them kept. While a version that people are sent to is
still opening, one that was stable here answers, and says so. All searching happens on one thread of its own: arrays
and models want the whole core, the event loop wants none of it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from domain.amending import NOTHING_AMENDED, Amendments
from domain.errors import NotFound, NotReady, StorageError, TidegateError
from domain.ports import IndexRegistry
from domain.releases import Rollout
from domain.types import Chunk, Encoded, Mode, Query, Retrieval, Scope, TextSide
from retrieval.encoding import encoded, pieces
from retrieval.index import HybridIndex

T = TypeVar("T")
OTHERS = 2  # versions kept open beside the pointer's: what an evaluation, or a gateway a second behind, may ask for
PASSING = (NotFound, StorageError)  # a folder that has not arrived, a disk that is away: worth trying again


class Library:
    """Answers from whatever `registry` points at. `open_index` gives a version by its id; it may take seconds.

    Call `refresh` once before the first question; a process that goes on serving calls `follow` every second or two.
    `drill_s` seconds are added to every search of a canary, so that people can see it turn back; 0 in earnest.
    """

    def __init__(self, open_index: Callable[[str], HybridIndex], registry: IndexRegistry, drill_s: float = 0.0) -> None:
        self._open_index, self._registry, self._drill_s = open_index, registry, drill_s
        self._rollout = Rollout()
        self._amended = NOTHING_AMENDED
        self._open: OrderedDict[str, HybridIndex] = OrderedDict()  # last used last
        self._problems: dict[str, TidegateError] = {}
        self._standing: str | None = None  # the last stable version that was open here
        self._looking, self._looks = asyncio.Lock(), 0
        self._opening = asyncio.Lock()  # one version at a time: opening two doubles the memory needed at once
        self._background: asyncio.Task[None] | None = None
        self._trouble: Exception | None = None
        self._compute = ThreadPoolExecutor(1, "retriever")

    # ------------------------------------------------------------------------------------------ the port

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        """At most `n` hits from `version`; with a note from one that was stable, while `version` is opening here.

        Only stable and canary are stood in for. Raises NotFound for an unknown version, NotReady when nothing that
        was ever stable is open yet.
        """
        index, notes = await self._index(version)
        if self._drill_s and index.version == self._rollout.canary:
            await asyncio.sleep(self._drill_s)
        hits = await self._computed(lambda: index.search(query, scope, n, mode))
        return Retrieval(hits, index.version, notes)

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        """The chunks of `ids` that exist in `version` and are visible, in the order asked.

        A version may stand in here too: an id names its text, so what is found is the passage that was asked for.
        """
        index, _ = await self._index(version)
        return await self._computed(lambda: index.chunks(ids, scope))

    async def encode(self, texts: Sequence[str], version: str, side: TextSide) -> Encoded:
        """The vectors of `texts` by the encoder of `version`, or of one that stands in for it."""
        index, _ = await self._index(version)
        rows: list[bytes] = []
        counts: list[int | None] = []
        for piece in pieces(texts):
            vectors, tokens = await self._computed(partial(encoded, index.embedder, piece, side))
            rows += vectors
            counts.append(tokens)
        known = [count for count in counts if count is not None]
        tokens = sum(known) if len(known) == len(counts) else None
        return Encoded(tuple(rows), index.embedder.dimensions, index.embedder.tag, index.version, tokens)

    # ------------------------------------------------------------------------------------------ in step

    async def refresh(self) -> None:
        """Take in pointer and amendments, and open stable and canary. Cheap when nothing moved.

        A version that cannot be opened is in `problems`; the others go on serving. Raises StorageError when the
        registry cannot be read, and leaves everything as it was.
        """
        await self._look()
        await self._open_all(lambda: self._served)

    async def follow(self) -> None:
        """As `refresh`, but versions open in the background, and the version before stable too.

        So neither deletions nor the next move wait for an index that takes long to open, and a rollback finds its
        version open. Raises what the last opening raised that is not a problem of one version.
        """
        await self._look()
        trouble, self._trouble = self._trouble, None
        if trouble:
            raise trouble
        self._open_in_background()

    @property
    def pointer(self) -> Rollout:
        """The pointer as of the last look at it."""
        return self._rollout

    @property
    def ready(self) -> bool:
        """True when people can be answered: from stable, or from a version that stands in for it."""
        return self._rollout.stable is not None and bool(self._answering(self._rollout.stable))

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions that are open, least recently used first."""
        return tuple(self._open)

    @property
    def problems(self) -> Mapping[str, TidegateError]:
        """Why a version of the pointer could not be opened, by version. Tried again when the pointer moves, and with
        every `follow` where waiting may help.
        """
        return dict(self._problems)

    def close(self) -> None:
        """Stop computing; what is running ends first."""
        if self._background is not None:
            self._background.cancel()
        self._compute.shutdown()

    # ------------------------------------------------------------------------------------------ which one answers

    async def _index(self, version: str) -> tuple[HybridIndex, tuple[str, ...]]:
        """The index that answers for `version`, with a note when it is another one."""
        if version not in self._open and version not in self._served:
            await self._look()  # whoever asks may know of a move that we have not seen
            if version in self._served:
                self._open_in_background()
        if version not in self._served:
            index = await self._opened(version)
            self._close_surplus()
            return index, ()
        answering = self._answering(version)
        problem = self._problems.get(version)
        if answering is None and problem:
            raise problem.with_traceback(None)  # kept and raised again: it would gather frames for ever
        if answering is None:
            raise NotReady(
                f"Index version {version} is not open yet: try again in a moment.", "retriever", retry_after_s=2
            )
        self._open.move_to_end(answering)
        if answering == version:
            return self._open[version], ()
        why = f"could not be opened here: {problem}" if problem else "is not open here yet"
        return self._open[answering], (f"Version {version} {why}; {answering} answered.",)

    def _answering(self, version: str) -> str | None:
        """The open version that answers for stable or canary: itself, or one that is or was stable. All of them were
        admitted, and so may reach people.
        """
        order = (version, self._rollout.stable, self._standing, self._rollout.previous)
        return next((name for name in order if name in self._open), None)

    @property
    def _served(self) -> tuple[str, ...]:
        return tuple(version for version in (self._rollout.stable, self._rollout.canary) if version)

    @property
    def _kept(self) -> tuple[str, ...]:
        return (*self._served, *filter(None, (self._rollout.previous,)))

    # ------------------------------------------------------------------------------------------ looking, opening

    async def _look(self) -> None:
        """Read pointer and amendments. Whoever waits for a look that began after they asked needs none of their own."""
        before = self._looks
        async with self._looking:
            if self._looks > before:
                return
            self._looks += 1
            rollout, self._amended = await asyncio.to_thread(self._read)
            for index in self._open.values():
                index.amended = self._amended
            if rollout != self._rollout:
                self._rollout = rollout
                self._problems.clear()
                self._settle()

    def _read(self) -> tuple[Rollout, Amendments]:
        """Pointer and amendments; the very same object while nothing was added or taken back.

        Whatever is remembered by it is then found by identity: comparing two sets of a million ids takes longer than a
        search, and a new one with every look would be compared with every search.
        """
        rollout = self._registry.rollout()
        amended = Amendments(self._registry.tombstones(), self._registry.access())
        return rollout, self._amended if amended.same(self._amended) else amended

    def _open_in_background(self) -> None:
        if self._background is None and not all(version in self._open for version in self._kept):
            self._background = asyncio.create_task(self._open_kept())

    async def _open_kept(self) -> None:
        try:
            await self._open_all(lambda: self._kept)
        except Exception as error:  # nobody waits for this task: the next `follow` tells it
            self._trouble = error
        finally:
            self._background = None

    async def _open_all(self, wanted: Callable[[], Sequence[str]]) -> None:
        """Open what is wanted, each tried once; what that is is asked again after each, because pointers move."""
        tried: set[str] = set()
        while missing := next((v for v in wanted() if v not in self._open and v not in tried), None):
            tried.add(missing)
            problem = self._problems.get(missing)
            if problem is None or isinstance(problem, PASSING):
                try:
                    await self._opened(missing)
                    self._problems.pop(missing, None)
                except TidegateError as error:
                    self._problems[missing] = error
        self._settle()

    async def _opened(self, version: str) -> HybridIndex:
        async with self._opening:
            if version not in self._open:
                index = await asyncio.to_thread(self._open_index, version)
                index.amended = self._amended
                self._open[version] = index
            self._open.move_to_end(version)
            return self._open[version]

    def _settle(self) -> None:
        """Remember which stable can stand in from now on, and close what nobody needs."""
        if self._rollout.stable in self._open:
            self._standing = self._rollout.stable
        self._close_surplus()

    def _close_surplus(self) -> None:
        """Forget the least recently used of the versions that nobody points at."""
        others = [version for version in self._open if version not in (*self._kept, self._standing)]
        for version in others[: max(0, len(others) - OTHERS)]:
            del self._open[version]

    async def _computed(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._compute, work)
