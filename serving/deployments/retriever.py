"""The retriever's host, whole or one shard of it: a plain class which Ray Serve replicates, and the task that keeps its
library current.

The library holds the open index versions. Pointer moves and deletions reach it by polling the registry, so every
replica learns of them within a second or two, whoever made them.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from domain.errors import TidegateError
from domain.ports import Retriever, TextEncoder
from domain.types import Chunk, Encoded, Mode, Query, Retrieval, Scope, TextSide
from serving.collector import collect_less
from serving.travel import travel_light

log = logging.getLogger("tidegate.serving")


class Library(Retriever, TextEncoder, Protocol):
    """A retriever over the versions a registry says are in use."""

    async def refresh(self) -> None:
        """Catches up with the registry: opens and closes versions, takes in deletions. Returns when they are open."""
        ...

    async def follow(self) -> None:
        """The same without waiting for a version that opens: for every second, beside answering."""
        ...

    @property
    def problems(self) -> Mapping[str, TidegateError]:
        """Why a version could not be opened, by version."""
        ...

    @property
    def ready(self) -> bool:
        """True when people can be answered from it."""
        ...


class RetrieverHost:
    """Passes calls on to the library that `make` gives, and has it follow the registry every `refresh_s` seconds.

    The first call waits for the first refresh. Serve's own first call is the health check, so a replica receives
    questions only when its versions are open.
    """

    def __init__(self, make: Callable[[], Library], refresh_s: float = 1.0) -> None:
        collect_less()
        travel_light()
        self._library, self._refresh_s = make(), refresh_s
        self._first: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        """As Retriever.retrieve."""
        await self._current()
        return await self._library.retrieve(query, scope, version, n, mode)

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        """As Retriever.chunks."""
        await self._current()
        return await self._library.chunks(ids, scope, version)

    async def encode(self, texts: Sequence[str], version: str, side: TextSide) -> Encoded:
        """As TextEncoder.encode."""
        await self._current()
        return await self._library.encode(texts, version, side)

    async def ready(self) -> bool:
        """True when people can be answered from the library."""
        await self._current()
        return self._library.ready

    async def check_health(self) -> None:
        """Raises when the library could not be opened at all, or nobody keeps it current any more: Serve replaces it.

        A registry that cannot be read for a while is no reason; another replica could not read it either.
        """
        await self._current()
        if self._keeping is None or self._keeping.done():
            raise RuntimeError("Nobody keeps this library current any more: the replica must be replaced.")

    def close(self) -> None:
        """Stops keeping the library current."""
        if self._keeping is not None:
            self._keeping.cancel()

    # ------------------------------------------------------------------------------------------ of one shard

    async def survey(self, *question: Any) -> Any:  # Any: types of who merges, here and below
        """As the library of a shard."""
        await self._current()
        return await self._shard.survey(*question)

    async def shortlist(self, *question: Any) -> Any:
        """As the library of a shard."""
        await self._current()
        return await self._shard.shortlist(*question)

    async def hits(self, *question: Any) -> Any:
        """As the library of a shard."""
        await self._current()
        return await self._shard.hits(*question)

    async def passages(self, *question: Any) -> Any:
        """As the library of a shard."""
        await self._current()
        return await self._shard.passages(*question)

    @property
    def _shard(self) -> Any:  # Any: a library that holds one shard has these four steps too
        return self._library

    async def _current(self) -> None:
        if self._keeping is not None:
            return
        if self._first is None or (self._first.done() and self._first.exception()):
            self._first = asyncio.create_task(self._library.refresh())
        await asyncio.shield(self._first)  # one caller that goes away does not stop it for the others
        if self._keeping is None:
            self._keeping = asyncio.create_task(self._keep_current())

    async def _keep_current(self) -> None:
        told = ""
        while True:
            await asyncio.sleep(self._refresh_s)
            try:
                await self._library.follow()
                troubles = [f"version {version}: {problem}" for version, problem in self._library.problems.items()]
            except Exception as error:  # tried again: the open versions keep answering
                troubles = [f"{type(error).__name__}: {error}"]
            trouble = "; ".join(troubles)
            if trouble and trouble != told:  # once per new trouble, not once a second
                log.warning("The library is not up to date (%s): the open versions keep answering.", trouble)
            told = trouble
