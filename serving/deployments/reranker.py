"""The reranker's host: a plain class which Ray Serve replicates; the model is loaded in the replica."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from domain.ports import Reranker
from domain.types import Hit, Query, Reranking
from serving.collector import collect_less
from serving.travel import travel_light


@runtime_checkable
class Checked(Protocol):
    """A reranker with something in it that can end, such as threads."""

    def check(self) -> None:
        """Raises when it must be replaced."""
        ...


class RerankerHost:
    """Passes calls on to the reranker that `make` gives. Requests of several readers may be in it at once.

    A caller who leaves cancels the call here too, and with it the work that has not begun.
    """

    def __init__(self, make: Callable[[], Reranker]) -> None:
        collect_less()
        travel_light()
        self._reranker = make()

    async def rerank(self, query: Query, hits: Sequence[Hit], within_s: float | None = None) -> Reranking:
        """As Reranker.rerank."""
        return await self._reranker.rerank(query, hits, within_s)

    async def check_health(self) -> None:
        """Raises when the reranker has ended: Serve replaces this replica."""
        if isinstance(self._reranker, Checked):
            self._reranker.check()

    async def ready(self) -> bool:
        """True: a replica that answers has loaded its model."""
        return True
