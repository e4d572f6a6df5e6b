"""The stages of the test graph: nothing happens at once, unless the question asks for trouble."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from domain.amending import NOTHING_AMENDED
from domain.errors import Throttled
from domain.ports import Stages
from domain.prompt import PromptPlan
from domain.releases import Rollout
from domain.types import Chunk, Delta, Draft, Hit, Mode, Query, Reranking, Retrieval, Scope, StopReason
from retrieval.embedding import HashingEmbedder
from retrieval.library import Library
from serving.noop import NoOpGenerator, NoOpLibrary, NoOpRegistry, NoOpReranker, noop_service
from serving.service import Service
from serving.telemetry import Telemetry

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


class MovableRegistry(NoOpRegistry):
    """A registry whose pointer is a file in `folder`, and as NoOpRegistry has it while there is none."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "pointer.json"

    def rollout(self) -> Rollout:
        try:
            return Rollout(**json.loads(self._file.read_text()))
        except FileNotFoundError:
            return super().rollout()

    def point(self, rollout: Rollout) -> None:
        """Moves the pointer, all or nothing."""
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps(asdict(rollout)))
        beside.replace(self._file)

    def reset(self) -> None:
        """Points where NoOpRegistry does."""
        self._file.unlink(missing_ok=True)


class SlowlyOpened:
    """Any version, as if it were an index; "slow" in its name takes a moment to open."""

    def __init__(self, version: str) -> None:
        if "slow" in version:
            time.sleep(0.4)
        self.version, self.amended, self._of = version, NOTHING_AMENDED, NoOpLibrary()
        self.embedder = HashingEmbedder(16)

    def search(self, query: Query, scope: Scope, n: int, mode: Mode) -> tuple[Hit, ...]:
        return asyncio.run(self._of.retrieve(query, scope, self.version, n, mode)).hits

    def chunks(self, ids: Sequence[str], scope: Scope) -> tuple[Chunk, ...]:
        return asyncio.run(self._of.chunks(ids, scope, self.version))


class TroubledLibrary(Library):
    """Follows the pointer in `folder`. "crash" has a bug in it, "slow" takes longer than anybody waits."""

    def __init__(self, folder: Path) -> None:
        super().__init__(SlowlyOpened, MovableRegistry(folder))  # type: ignore[arg-type]  # it quacks

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        if "crash" in query.text:
            raise KeyError("secret detail")
        if "slow" in query.text:
            await asyncio.sleep(60)
        return await super().retrieve(query, scope, version, n, mode)


Ready = Callable[[], Awaitable[Mapping[str, bool]]]


def movable_service(folder: Path, stages: Stages, ready: Ready, telemetry: Telemetry) -> Service:
    """The surface over the pointer in `folder`."""
    return replace(noop_service(stages, ready, telemetry), registry=MovableRegistry(folder))


class TroubledReranker(NoOpReranker):
    """ "rankless" fails, "linger" takes its time and says when it is told to stop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def rerank(self, query: Query, hits: Sequence[Hit], within_s: float | None = None) -> Reranking:
        if "rankless" in query.text:
            raise Throttled("Slower, please.", "reranker")
        if "linger" in query.text:
            (self._folder / "reading").touch()
            try:
                await asyncio.sleep(60)
            finally:
                (self._folder / "stopped-reading").touch()
        return await super().rerank(query, hits, within_s)
