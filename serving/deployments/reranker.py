"""The reranker's host: a plain class which Ray Serve replicates; the model is loaded in the replica."""

from collections.abc import Callable, Sequence

from domain.ports import Reranker
from domain.types import Hit, Query
from serving.collector import collect_less
from serving.travel import travel_light


class RerankerHost:
    """Passes calls on to the reranker that `make` gives. Requests of several readers may be in it at once."""

    def __init__(self, make: Callable[[], Reranker]) -> None:
        collect_less()
        travel_light()
        self._reranker = make()

    async def rerank(self, query: Query, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """As Reranker.rerank."""
        return await self._reranker.rerank(query, hits)

    async def ready(self) -> bool:
        """True: a replica that answers has loaded its model."""
        return True
