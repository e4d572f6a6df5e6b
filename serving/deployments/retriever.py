"""The retriever's host: a plain class which Ray Serve replicates, and the thread that keeps its library current.

The library holds the open index versions. Pointer moves and deletions reach it by polling the registry, so every
replica learns of them within a second or two, whoever made them.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from domain.ports import Retriever
from domain.types import Chunk, Mode, Query, Retrieval, Scope

log = logging.getLogger("tidegate.serving")


class Library(Retriever, Protocol):
    """A retriever over the versions a registry says are in use."""

    def refresh(self) -> None:
        """Catches up with the registry: opens and closes versions, takes in deletions. Called from one thread."""
        ...


class RetrieverHost:
    """Passes calls on to the library that `make` gives, and refreshes it every `refresh_s` seconds."""

    def __init__(self, make: Callable[[], Library], refresh_s: float = 1.0) -> None:
        self._library = make()
        self._stop = threading.Event()
        self._trouble = ""
        self._thread = threading.Thread(target=self._keep_current, args=(refresh_s,), name="refresh", daemon=True)
        self._thread.start()

    async def retrieve(
        self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID
    ) -> Retrieval:
        """As Retriever.retrieve."""
        return await self._library.retrieve(query, scope, version, n, mode)

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        """As Retriever.chunks."""
        return await self._library.chunks(ids, scope, version)

    async def ready(self) -> bool:
        """True: a replica that answers has opened its library."""
        return True

    def check_health(self) -> None:
        """Raises when the refreshing thread is gone, so that Serve replaces a replica which would never learn more.

        A registry that cannot be read is no reason: another replica could not read it either.
        """
        if not self._thread.is_alive():
            raise RuntimeError("The thread that keeps the library current has died: this replica must be replaced.")

    def close(self) -> None:
        """Ends the refreshing thread."""
        self._stop.set()
        self._thread.join()

    def _keep_current(self, every_s: float) -> None:
        while not self._stop.wait(every_s):
            try:
                self._library.refresh()
                trouble = ""
            except Exception as error:  # told once per new trouble, and tried again: the open versions keep answering
                trouble = f"{type(error).__name__}: {error}"
                if trouble != self._trouble:
                    log.warning("The library could not be refreshed (%s): the open versions keep answering.", trouble)
            self._trouble = trouble
