"""The rewriter's host: a plain class which Ray Serve replicates; the rewriter itself is made in the replica."""

from collections.abc import Callable, Sequence

from domain.ports import Rewriter
from domain.types import Query, Rewrite, Turn
from serving.collector import collect_less


class RewriterHost:
    """Passes calls on to the rewriter that `make` gives."""

    def __init__(self, make: Callable[[], Rewriter]) -> None:
        collect_less()
        self._rewriter = make()

    async def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """As Rewriter.rewrite."""
        return await self._rewriter.rewrite(question, history)

    async def paraphrase(self, query: Query) -> Rewrite:
        """As Rewriter.paraphrase."""
        return await self._rewriter.paraphrase(query)

    async def ready(self) -> bool:
        """True: a replica that answers has its rewriter."""
        return True
