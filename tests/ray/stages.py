"""The stages of the test graph: nothing happens at once, unless the question asks for trouble."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from domain.errors import Throttled
from domain.prompt import PromptPlan
from domain.types import Delta, Draft, Mode, Query, Retrieval, Scope, StopReason
from serving.noop import NoOpGenerator, NoOpLibrary, NoOpReranker

FILLER = "The gate opens at high water, as every sailor in the harbour knows very well. "


class TroubledGenerator(NoOpGenerator):
    """ "silence" writes a sentence and falls silent, "gently" takes its time, "throttle" is refused, "break" fails in
    the middle.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        if "silence" in plan.question:
            yield Delta(FILLER)
            try:
                await asyncio.sleep(60)
            finally:
                (self._folder / f"closed-{id(plan)}").touch()
        elif "gently" in plan.question:
            yield Delta(FILLER)
            await asyncio.sleep(0.3)
        elif "throttle" in plan.question:
            raise Throttled("Slower, please.", "generator", 7.0)
        elif "break" in plan.question:
            yield Delta(FILLER)
            raise KeyError("secret detail")
        else:
            async for piece in super().generate(plan):
                yield piece
            return
        yield Draft(FILLER, StopReason.END)


class TroubledLibrary(NoOpLibrary):
    """ "crash" has a bug in it, "slow" takes longer than anybody waits."""

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        if "crash" in query.text:
            raise KeyError("secret detail")
        if "slow" in query.text:
            await asyncio.sleep(60)
        return await super().retrieve(query, scope, version, n, mode)


class TroubledReranker(NoOpReranker):
    """ "rankless" fails."""

    async def rerank(self, query: Query, hits: Sequence) -> tuple:  # type: ignore[type-arg]
        if "rankless" in query.text:
            raise Throttled("Slower, please.", "reranker")
        return await super().rerank(query, hits)
