"""The engine between many callers and one model: what is run, in which order, and what everybody gets."""

import asyncio
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from domain.errors import StageFailed
from domain.types import Hit
from retrieval.pair_engine import PairEngine
from retrieval.pair_requests import Reading
from retrieval.pairs import Ids
from tests.fakes import FakePairModel, chunk, hits


def found(*texts: str) -> tuple[Hit, ...]:
    return hits(*(chunk(f"d{i}#0", text, title="x") for i, text in enumerate(texts)))


def words(n: int, word: str = "w") -> str:
    return " ".join(f"{word}{i}" for i in range(n))


@pytest.fixture
def model() -> FakePairModel:
    return FakePairModel()


@pytest.fixture
def engine(model: FakePairModel) -> Iterator[PairEngine]:
    engine = PairEngine([model], batch_tokens=40, clock=model.clock)
    yield engine
    model.gate.set()
    engine.close()


async def held(engine: PairEngine, model: FakePairModel) -> "asyncio.Task[Reading]":
    """A request whose batch is running and stays so until the model's gate is set."""
    model.gate.clear()
    model.began.clear()
    task = asyncio.create_task(engine.read("held", found("held")))
    await asyncio.to_thread(model.began.wait, 10)
    return task


async def test_every_hit_gets_its_logit_in_the_order_given(engine: PairEngine) -> None:
    reading = await engine.read("hot kiln", found("the kiln is hot", "blue", "a kiln"))
    # Words in common less a hundredth of the passage's tokens: title, text and the last special one.
    assert reading.logits == pytest.approx((2 - 0.06, -0.03, 1 - 0.04))


async def test_a_score_is_the_same_alone_and_in_a_crowd(engine: PairEngine) -> None:
    passages = found(*(words(1 + i % 17, "kiln" if i % 3 else "w") for i in range(40)))
    crowd = await asyncio.gather(*(engine.read(f"kiln{i} w1", passages) for i in range(5)))
    with_one = PairEngine([FakePairModel()], batch_tokens=1)
    for i, reading in enumerate(crowd):
        assert reading.logits == tuple(with_one.score(f"kiln{i} w1", passages))
    with_one.close()


async def test_a_batch_holds_no_more_padded_tokens_than_its_budget(engine: PairEngine, model: FakePairModel) -> None:
    for seed in range(5):
        lengths = np.random.default_rng(seed).integers(1, 50, 30)
        await engine.read(f"q{seed}", found(*(words(n, f"s{seed}-{i}-") for i, n in enumerate(lengths))))
    assert sum(map(len, model.batches)) == 5 * 30
    assert all(len(batch) == 1 or sum(batch) <= 40 for batch in model.batches)


async def test_the_longest_pairs_come_first_and_those_of_like_length_together(
    engine: PairEngine, model: FakePairModel
) -> None:
    await engine.read("q", found(words(1), words(14), words(2), words(15)))
    assert model.batches == [[20, 19], [7, 6]]  # 5 tokens are the question, the title and the special ones


async def test_a_batch_is_filled_up_with_pairs_of_others(engine: PairEngine, model: FakePairModel) -> None:
    first = await held(engine, model)
    others = [asyncio.create_task(engine.read(f"q{i}", found(f"one{i}", f"two{i}"))) for i in range(3)]
    await asyncio.sleep(0.05)
    model.gate.set()
    await asyncio.gather(first, *others)
    assert [len(batch) for batch in model.batches] == [1, 6]


async def test_equal_pairs_are_run_once_within_a_request_and_across_requests(
    engine: PairEngine, model: FakePairModel
) -> None:
    first = await held(engine, model)
    tasks = [asyncio.create_task(engine.read("same", found("text", "text", "other"))) for _ in range(3)]
    await asyncio.sleep(0.05)
    model.gate.set()
    readings = await asyncio.gather(*tasks)
    await first
    assert sum(map(len, model.batches)) == 1 + 2
    assert len(set(readings)) == 1
    assert readings[0].logits[0] == readings[0].logits[1]


async def test_a_wider_second_round_reads_only_what_the_first_did_not(engine: PairEngine, model: FakePairModel) -> None:
    first = await engine.read("q", found("a", "b"))
    second = await engine.read("q", found("a", "b", "c"))
    assert second.logits[:2] == first.logits
    assert sum(map(len, model.batches)) == 3


async def test_what_does_not_fit_into_the_time_is_not_read_and_the_first_hits_are_read_first(
    engine: PairEngine, model: FakePairModel
) -> None:
    model.seconds_a_token = 0.001
    await engine.read("warm", found("up"))  # the engine learns its speed: a thousand tokens a second
    reading = await engine.read("q", found(*(words(5, f"p{i}-") for i in range(20))), within_s=0.055)
    # A pair has 10 tokens and takes 10 ms: five fit, and they are the first five.
    assert [logit is not None for logit in reading.logits] == [True] * 5 + [False] * 15


async def test_a_request_whose_time_passed_while_it_waited_reads_nothing(
    engine: PairEngine, model: FakePairModel
) -> None:
    first = await held(engine, model)
    late = asyncio.create_task(engine.read("late", found("a", "b"), within_s=1.0))
    await asyncio.sleep(0.05)
    model.clock.now += 2.0
    model.gate.set()
    assert (await late).logits == (None, None)
    assert (await first).logits[0] is not None


async def test_the_engines_own_limit_holds_for_requests_that_name_a_longer_one(model: FakePairModel) -> None:
    engine = PairEngine([model], batch_tokens=40, within_s=0.0, clock=model.clock)
    assert (await engine.read("q", found("a"), within_s=5.0)).logits == (None,)
    assert engine.score("q", found("a")) != []  # whoever wants all scores has all the time
    engine.close()


async def test_the_earliest_deadline_comes_first_and_then_who_came_first(model: FakePairModel) -> None:
    engine = PairEngine([model], batch_tokens=1, clock=model.clock)  # every pair alone, so that the order shows
    first = await held(engine, model)
    tasks = []
    for name, n, within_s in (("third", 12, None), ("second", 11, 8.0), ("first", 10, 5.0), ("fourth", 13, None)):
        tasks.append(asyncio.create_task(engine.read(name, found(words(n, name)), within_s)))
        await asyncio.sleep(0.02)
    model.gate.set()
    await asyncio.gather(first, *tasks)
    assert [batch[0] - 5 for batch in model.batches[1:]] == [10, 11, 12, 13]
    engine.close()


async def test_the_work_of_a_caller_who_left_is_dropped(engine: PairEngine, model: FakePairModel) -> None:
    first = await held(engine, model)
    leaves = asyncio.create_task(engine.read("gone", found("a", "b")))
    stays = asyncio.create_task(engine.read("here", found("c")))
    await asyncio.sleep(0.05)
    leaves.cancel()
    await asyncio.gather(leaves, return_exceptions=True)
    model.gate.set()
    await asyncio.gather(first, stays)
    assert leaves.cancelled()
    assert sum(map(len, model.batches)) == 2


async def test_a_pair_that_somebody_else_waits_for_survives_a_caller_who_left(
    engine: PairEngine, model: FakePairModel
) -> None:
    first = await held(engine, model)
    leaves, stays = (asyncio.create_task(engine.read("q", found("a"))) for _ in range(2))
    await asyncio.sleep(0.05)
    leaves.cancel()
    model.gate.set()
    assert (await stays).logits[0] is not None
    await first


async def test_a_batch_that_fails_fails_the_requests_in_it_and_the_engine_lives_on(
    engine: PairEngine, model: FakePairModel, caplog: pytest.LogCaptureFixture
) -> None:
    model.error = RuntimeError("secret detail")
    with pytest.raises(StageFailed, match="RuntimeError") as caught:
        await engine.read("q", found("a", words(30)))
    assert "secret detail" not in str(caught.value)
    assert "secret detail" in caplog.text
    model.error = None
    assert (await engine.read("q", found("a"))).logits[0] is not None
    engine.check()


async def test_scores_that_are_not_finite_fail_the_batch(engine: PairEngine, model: FakePairModel) -> None:
    model.constant = float("nan")
    with pytest.raises(StageFailed):
        await engine.read("q", found("a"))


async def test_passages_that_lost_their_end_are_counted_and_never_fail(engine: PairEngine) -> None:
    reading = await engine.read("q", found("short", words(400), words(500, "v")))
    assert reading.truncated == 2
    assert None not in reading.logits


async def test_an_empty_question_an_empty_passage_and_half_a_character_are_read(engine: PairEngine) -> None:
    for question in ("", "\ud800", "窑"):
        assert len((await engine.read(question, found("", "\ud800 \x00"))).logits) == 2
    assert (await engine.read("q", ())).logits == ()


async def test_two_models_share_the_batches_of_one_request() -> None:
    models = [FakePairModel(), FakePairModel()]
    for model in models:
        model.gate.clear()
    engine = PairEngine(models, batch_tokens=20)
    task = asyncio.create_task(engine.read("q", found(*(words(5, f"p{i}-") for i in range(8)))))
    for model in models:
        assert await asyncio.to_thread(model.began.wait, 10)
        model.gate.set()
    assert None not in (await task).logits
    assert sum(len(batch) for model in models for batch in model.batches) == 8
    engine.close()


async def test_a_closed_engine_refuses_and_tells_those_who_wait(engine: PairEngine, model: FakePairModel) -> None:
    first = await held(engine, model)
    waits = asyncio.create_task(engine.read("q", found("a")))
    await asyncio.sleep(0.05)
    closing = asyncio.create_task(asyncio.to_thread(engine.close))
    await asyncio.sleep(0.02)
    model.gate.set()
    await closing
    assert (await first).logits[0] is not None  # its batch was running
    with pytest.raises(StageFailed, match="being closed"):
        await waits
    with pytest.raises(StageFailed, match="being closed"):
        await engine.read("q", found("a"))
    with pytest.raises(RuntimeError, match="replaced"):
        engine.check()


async def test_a_caller_whose_texts_are_still_being_cut_is_told_of_a_closing_engine() -> None:
    class Slow(FakePairModel):
        def cut(self, text: str) -> Ids:
            cutting.set()
            go_on.wait(10)
            return super().cut(text)

    cutting, go_on = threading.Event(), threading.Event()
    engine = PairEngine([Slow()], batch_tokens=40)
    tasks = [asyncio.create_task(engine.read(f"q{i}", found("a"))) for i in range(2)]  # one is cut, one waits for that
    await asyncio.to_thread(cutting.wait, 10)
    closing = asyncio.create_task(asyncio.to_thread(engine.close))
    await asyncio.sleep(0.05)
    go_on.set()
    await closing
    for task in tasks:
        with pytest.raises(StageFailed, match="being closed"):
            await task


def test_the_engine_counts_what_it_computes_padding_included() -> None:
    model = FakePairModel()
    model.pads = True
    engine = PairEngine([model], batch_tokens=48)
    engine.score("q", found(words(14), words(15)))  # 19 and 20 tokens, 24 each with their padding
    assert (engine.ran.batches, engine.ran.pairs, engine.ran.tokens, engine.ran.padded_tokens) == (1, 2, 39, 48)
    engine.close()


def test_the_room_that_a_packed_batch_leaves_in_its_recording_counts_as_padding() -> None:
    model = FakePairModel()
    model.room = 32
    engine = PairEngine([model], batch_tokens=48)
    engine.score("q", found(words(14), words(15)))  # 19 and 20 tokens, computed as 64
    assert (engine.ran.tokens, engine.ran.padded_tokens) == (39, 64)
    engine.close()
