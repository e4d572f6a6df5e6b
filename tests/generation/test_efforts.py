"""How hard a model is tried: attempts, waits and one deadline, with simulated time."""

import pytest

from domain.errors import StageFailed, StageTimeout, Throttled, UpstreamDenied
from generation.efforts import Deadline, Effort, begun, tried
from generation.pacing import Pace


class Model:
    """Fails as scripted, then answers; every call takes `takes_s` of simulated time."""

    def __init__(self, *errors: StageFailed, takes_s: float = 0.0) -> None:
        self.errors, self.takes_s = list(errors), takes_s
        self.now, self.calls, self.waits = 0.0, 0, list[float]()

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    async def __call__(self) -> str:
        self.calls += 1
        self.now += self.takes_s
        if self.errors:
            raise self.errors.pop(0)
        return "text"

    async def tried(self, effort: Effort, pace: Pace | None = None) -> str:
        deadline, pace = Deadline(effort.deadline_s, self.clock), pace or Pace(self.clock)
        return await begun(self, "m", effort, deadline, pace, sleep=self.sleep, draw=lambda: 1.0)


def failed(retry_after_s: float | None = None) -> StageFailed:
    return StageFailed("no", "generate", retry_after_s)


async def test_a_failure_is_tried_again_after_waits_that_double_up_to_the_longest() -> None:
    model = Model(*(failed() for _ in range(5)))
    assert await model.tried(Effort(attempts=6, backoff_s=1.0, longest_backoff_s=5.0)) == "text"
    assert (model.calls, model.waits) == (6, [1.0, 2.0, 4.0, 5.0, 5.0])


async def test_attempts_count_every_call() -> None:
    model = Model(*(failed() for _ in range(9)))
    with pytest.raises(StageFailed):
        await model.tried(Effort(attempts=3))
    assert model.calls == 3


@pytest.mark.parametrize("error", [UpstreamDenied("no"), StageTimeout("no")])
async def test_what_another_call_would_not_mend_is_not_tried_again(error: StageFailed) -> None:
    model = Model(error)
    with pytest.raises(type(error)):
        await model.tried(Effort(attempts=3))
    assert model.calls == 1


async def test_a_wait_that_the_vendor_asks_for_is_kept() -> None:
    model = Model(failed(retry_after_s=9.0))
    await model.tried(Effort(attempts=2, backoff_s=0.1))
    assert model.waits == [9.0]


async def test_no_wait_goes_over_the_deadline() -> None:
    model = Model(failed(), failed(), takes_s=4.0)
    with pytest.raises(StageFailed):
        await model.tried(Effort(attempts=3, deadline_s=10.0, backoff_s=3.0))  # 4 + 3 + 4 = 11
    assert (model.calls, model.waits) == (2, [3.0])


async def test_a_throttled_model_is_asked_more_slowly_by_the_next_caller() -> None:
    model = Model(Throttled("no", "generate", 2.0))
    pace = Pace(model.clock)
    with pytest.raises(Throttled):
        await model.tried(Effort(attempts=1), pace)
    assert await model.tried(Effort(attempts=1), pace) == "text"
    assert model.waits == [2.0]


async def test_a_place_after_the_deadline_is_a_refusal_that_says_when() -> None:
    model = Model()
    pace = Pace(model.clock)
    pace.throttled(retry_after_s=50.0)
    with pytest.raises(Throttled, match="in 50 s") as caught:
        await model.tried(Effort(deadline_s=10.0), pace)
    assert (caught.value.retry_after_s, model.calls) == (50.0, 0)


def test_a_blocking_call_is_tried_as_an_answer_is() -> None:
    model = Model()
    errors, waits = [failed(), Throttled("no", "embed", 3.0)], list[float]()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        model.now += seconds

    def call() -> str:
        model.calls += 1
        if errors:
            raise errors.pop(0)
        return "vector"

    effort, pace = Effort(attempts=3, backoff_s=1.0), Pace(model.clock)
    with_time = {"sleep": sleep, "clock": model.clock, "draw": lambda: 1.0}
    assert tried(call, "embed", model_id="m", effort=effort, pace=pace, **with_time) == "vector"
    assert (model.calls, waits) == (3, [1.0, 3.0])
    errors[:] = [failed() for _ in range(9)]
    with pytest.raises(StageFailed):
        tried(call, "embed", model_id="m", effort=effort, pace=Pace(model.clock), **with_time)
    assert model.calls == 6


def test_a_blocking_call_waits_for_what_another_caller_of_its_model_was_refused() -> None:
    now, waits = 0.0, list[float]()

    def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        now += seconds

    pace = Pace(lambda: now)
    pace.throttled(retry_after_s=4.0)  # by whoever else asks the same model
    assert tried(str, "embed", model_id="m", effort=Effort(), pace=pace, sleep=sleep, clock=lambda: now) == ""
    assert waits == [4.0]
    pace.throttled(retry_after_s=500.0)
    with pytest.raises(Throttled, match="500 s"):
        tried(str, "rerank", model_id="m", effort=Effort(deadline_s=10.0), pace=pace, sleep=sleep, clock=lambda: now)
