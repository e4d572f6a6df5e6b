"""The generator's host: a plain class which Ray Serve replicates; streams pieces as they come."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from domain.ports import Generator
from domain.prompt import PromptPlan
from domain.types import Delta, Draft


class GeneratorHost:
    """Passes the stream of the generator that `make` gives. A caller that goes away closes it at the source."""

    def __init__(self, make: Callable[[], Generator]) -> None:
        self._generator = make()

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        """As Generator.generate."""
        async with aclosing(self._generator.generate(plan)) as pieces:
            async for piece in pieces:
                yield piece

    async def ready(self) -> bool:
        """True: a replica that answers has its generator."""
        return True
