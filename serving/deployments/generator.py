"""The generator's host: a plain class which Ray Serve replicates; streams what there is as soon as it is there."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from domain.ports import Generator
from domain.prompt import PromptPlan
from domain.types import Delta, Draft
from serving.collector import collect_less


class GeneratorHost:
    """Passes the stream of the generator that `make` gives. A caller that goes away closes it at the source."""

    def __init__(self, make: Callable[[], Generator]) -> None:
        collect_less()
        self._generator = make()

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[tuple[Delta | Draft, ...], None]:
        """The pieces of Generator.generate in bunches: every message costs, so pieces that come together go together.

        A piece never waits for the next one: a bunch ends as soon as the generator makes us wait.
        """
        async with aclosing(self._generator.generate(plan)) as pieces:
            coming = asyncio.ensure_future(anext(pieces, None))
            try:
                while (piece := await coming) is not None:
                    bunch = [piece]
                    coming = asyncio.ensure_future(anext(pieces, None))
                    await asyncio.sleep(0)  # lets the generator go on for as long as it need not wait
                    while coming.done() and not coming.exception() and (piece := coming.result()) is not None:
                        bunch.append(piece)
                        coming = asyncio.ensure_future(anext(pieces, None))
                        await asyncio.sleep(0)
                    yield tuple(bunch)
            finally:
                if not coming.done():
                    coming.cancel()
                    await asyncio.gather(coming, return_exceptions=True)

    async def write(self, plan: PromptPlan) -> tuple[Delta | Draft, ...]:
        """All pieces of Generator.generate at once, for a caller that shows nothing before the end."""
        async with aclosing(self._generator.generate(plan)) as pieces:
            return tuple([piece async for piece in pieces])

    async def ready(self) -> bool:
        """True: a replica that answers has its generator."""
        return True
