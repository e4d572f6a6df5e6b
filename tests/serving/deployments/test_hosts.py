"""The hosts are plain classes: what they pass on, and how the retriever's keeps its library current."""

import asyncio
import pickle
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from domain.errors import StageFailed, StorageError, TidegateError
from domain.prompt import PromptPlan
from domain.types import Delta, Draft, Query, StopReason
from retrieval.mixing import ReadingReranker
from retrieval.pair_engine import PairEngine
from serving.deployments.generator import GeneratorHost
from serving.deployments.reranker import RerankerHost
from serving.deployments.retriever import RetrieverHost
from serving.deployments.rewriter import RewriterHost
from serving.noop import NoOpGenerator, NoOpLibrary, noop_plan
from tests.fakes import PUBLIC, FakePairModel, FakeRetriever, FakeRewriter, ReversingReranker, ScriptedGenerator, hits
from tests.serving.service import BELL, TIDE, SilentGenerator, soon

PLAN = PromptPlan("Answer.", (), (), "Why?")


@dataclass
class FakeLibrary(FakeRetriever):
    """A library whose refreshing can fail or take its time."""

    refreshes: int = 0
    trouble: Exception | None = None
    ready: bool = False
    problems: dict[str, TidegateError] = field(default_factory=dict)

    async def refresh(self) -> None:
        self.refreshes += 1
        if self.trouble:
            raise self.trouble
        self.ready = True

    async def follow(self) -> None:
        await self.refresh()


async def test_rewriter_reranker_and_generator_pass_on_what_they_host() -> None:
    rewriter = RewriterHost(lambda: FakeRewriter(to="gate hours"))
    assert (await rewriter.rewrite("when?", ())).query == Query("gate hours")
    assert (await rewriter.paraphrase(Query("gate"))).query.variants == ("about gate",)
    ranked = await RerankerHost(ReversingReranker).rerank(Query("gate"), hits(TIDE, BELL))
    assert [hit.chunk for hit in ranked.hits] == [BELL, TIDE]
    assert [len(bunch) async for bunch in GeneratorHost(NoOpGenerator).generate(PLAN)] == [2]
    assert len(await GeneratorHost(NoOpGenerator).write(PLAN)) == 2


async def test_a_caller_that_leaves_closes_an_answer_that_is_written_whole() -> None:
    generator = ScriptedGenerator(("one ",))

    class Waiting:
        async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
            async for piece in generator.generate(plan):
                yield piece
                await asyncio.sleep(60)

    writing = asyncio.create_task(GeneratorHost(Waiting).write(PLAN))
    await asyncio.sleep(0.01)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await asyncio.sleep(0)
    assert generator.closed


async def test_pieces_that_come_together_go_together_and_none_waits_for_the_next() -> None:
    class Slow:
        async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
            yield Delta("one ")
            yield Delta("two ")
            await asyncio.sleep(0.02)
            yield Delta("three")
            yield Draft("one two three", StopReason.END)

    bunches = [bunch async for bunch in GeneratorHost(Slow).generate(PLAN)]
    assert bunches == [
        (Delta("one "), Delta("two ")),
        (Delta("three"), Draft("one two three", StopReason.END)),
    ]


async def test_pieces_before_a_failure_are_sent_before_it() -> None:
    broken = ScriptedGenerator(("one ", "two "), error=StageFailed("It broke.", "generator"))
    stream = GeneratorHost(lambda: broken).generate(PLAN)
    assert await anext(stream) == (Delta("one "), Delta("two "))
    with pytest.raises(StageFailed):
        await anext(stream)
    assert broken.closed


async def test_a_caller_who_leaves_while_candidates_are_read_takes_its_work_along() -> None:
    model = FakePairModel()
    engine = PairEngine([model], batch_tokens=8)
    with ThreadPoolExecutor(1) as pool:
        host = RerankerHost(lambda: ReadingReranker(engine, 10, pool))
        model.gate.clear()
        first = asyncio.create_task(host.rerank(Query("gate"), hits(TIDE)))
        await asyncio.to_thread(model.began.wait, 10)
        leaves = asyncio.create_task(host.rerank(Query("bell"), hits(TIDE, BELL)))
        await asyncio.sleep(0.05)
        leaves.cancel()
        await asyncio.gather(leaves, return_exceptions=True)
        model.gate.set()
        await first
        await host.rerank(Query("tide"), hits(BELL))
    assert leaves.cancelled()
    assert len(model.batches) == 2  # nothing of the one who left
    engine.close()


async def test_a_reranker_whose_engine_ended_is_unhealthy_and_any_other_is_well() -> None:
    engine = PairEngine([FakePairModel()], batch_tokens=8)
    with ThreadPoolExecutor(1) as pool:
        host = RerankerHost(lambda: ReadingReranker(engine, 10, pool))
        await host.check_health()
        engine.close()
        with pytest.raises(RuntimeError, match="replaced"):
            await host.check_health()
    await RerankerHost(ReversingReranker).check_health()


async def test_a_caller_that_closes_the_stream_closes_the_generator() -> None:
    scripted = ScriptedGenerator(("one ", "two "))
    stream = GeneratorHost(lambda: scripted).generate(PLAN)
    await anext(stream)
    await stream.aclose()
    assert scripted.closed


async def test_a_silent_generator_is_closed_by_a_cancelled_caller() -> None:
    silent = SilentGenerator()
    stream = GeneratorHost(lambda: silent).generate(PLAN)
    waiting = asyncio.ensure_future(anext(stream))
    await silent.started.wait()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await stream.aclose()
    assert silent.closed.is_set()


async def test_the_first_question_waits_for_the_first_refresh_and_refreshing_goes_on() -> None:
    library = FakeLibrary(hits(TIDE))
    host = RetrieverHost(lambda: library, refresh_s=0.01)
    await host.check_health()
    assert await host.ready()
    found = await host.retrieve(Query("gate"), PUBLIC, "v1", 3)
    assert found.hits == hits(TIDE)
    assert await host.chunks(["tides#0"], PUBLIC, "v1") == (TIDE,)
    assert await soon(lambda: library.refreshes >= 3)
    host.close()


async def test_many_first_questions_cause_one_refresh() -> None:
    library = FakeLibrary(hits(TIDE))
    host = RetrieverHost(lambda: library, refresh_s=60)
    await asyncio.gather(*(host.retrieve(Query("gate"), PUBLIC, "v1", 3) for _ in range(5)))
    assert library.refreshes == 1
    host.close()


async def test_a_library_that_cannot_be_opened_at_all_is_unhealthy_and_tried_again() -> None:
    library = FakeLibrary(trouble=StorageError("The disk is away."))
    host = RetrieverHost(lambda: library, refresh_s=60)
    with pytest.raises(StorageError):
        await host.check_health()
    library.trouble = None
    await host.check_health()
    host.close()


async def test_a_registry_that_fails_later_is_told_once_and_the_library_goes_on_answering(
    caplog: pytest.LogCaptureFixture,
) -> None:
    library = FakeLibrary(hits(TIDE))
    host = RetrieverHost(lambda: library, refresh_s=0.005)
    await host.check_health()
    library.trouble = StorageError("The disk is away.")
    assert await soon(lambda: library.refreshes > 5)
    await host.check_health()
    assert (await host.retrieve(Query("gate"), PUBLIC, "v1", 3)).hits
    assert len([record for record in caplog.records if "The disk is away" in record.getMessage()]) == 1
    host.close()


async def test_a_version_that_does_not_open_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    library = FakeLibrary(hits(TIDE), problems={"v2": StorageError("It is damaged.")})
    host = RetrieverHost(lambda: library, refresh_s=0.005)
    await host.check_health()
    assert await soon(lambda: library.refreshes > 5)
    told = "The library is not up to date (version v2: It is damaged.): the open versions keep answering."
    assert caplog.messages == [told]
    host.close()


async def test_a_host_that_nobody_keeps_current_is_unhealthy() -> None:
    host = RetrieverHost(lambda: FakeLibrary(hits(TIDE)), refresh_s=60)
    await host.check_health()
    host.close()
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="replaced"):
        await host.check_health()


async def test_a_failed_search_stays_a_failure() -> None:
    host = RetrieverHost(lambda: FakeLibrary(error=StageFailed("It broke.", "retriever")), refresh_s=60)
    with pytest.raises(StageFailed):
        await host.retrieve(Query("gate"), PUBLIC, "v1", 3)
    host.close()


def test_a_plan_travels_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(noop_plan())) == noop_plan()


async def test_the_no_op_library_finds_what_it_hands_out_by_id() -> None:
    library = NoOpLibrary()
    [hit, *_] = (await library.retrieve(Query("gate"), PUBLIC, "noop", 4)).hits
    assert await library.chunks([hit.chunk.id, "x"], PUBLIC, "noop") == (hit.chunk,)
