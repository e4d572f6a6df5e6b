"""The generator's host: a plain class which Ray Serve replicates; streams pieces as they come."""

from collections.abc import AsyncIterator, Callable

from domain.ports import Generator
from domain.prompt import PromptPlan
from domain.types import Delta, Draft


class GeneratorHost:
    """Passes the stream of the generator that `make` gives. A caller that goes away closes it at the source."""

    def __init__(self, make: Callable[[], Generator]) -> None:
        self._generator = make()

    async def generate(self, plan: PromptPlan) -> AsyncIterator[Delta | Draft]:
        """As Generator.generate."""
        pieces = self._generator.generate(plan)
        try:
            async for piece in pieces:
                yield piece
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()

    async def ready(self) -> bool:
        """True: a replica that answers has its generator."""
        return True
