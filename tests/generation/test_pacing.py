"""The pace of a model: none until it refuses, then slower, then back; shared by all who ask it."""

import pytest

from generation.pacing import CUT, LEAST_PER_S, LIFTED_AT, RAISE_PER_S, Pace, Paces


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def ask_at_two_a_second(pace: Pace, clock: Clock, seconds: int = 10) -> None:
    for _ in range(2 * seconds):
        assert pace.reserve(60.0) == 0.0
        clock.now += 0.5


def test_a_model_that_never_refuses_is_asked_at_once_by_any_number() -> None:
    pace = Pace(Clock())
    assert {pace.reserve(0.0) for _ in range(10_000)} == {0.0}
    assert pace.per_second is None


def test_a_refusal_cuts_the_rate_at_which_calls_were_made_and_spaces_them() -> None:
    clock = Clock()
    pace = Pace(clock)
    ask_at_two_a_second(pace, clock)
    pace.throttled()
    assert pace.per_second == pytest.approx(2 * CUT)
    waits = [pace.reserve(60.0) for _ in range(4)]
    assert waits == pytest.approx([0.0, 1 / (2 * CUT), 2 / (2 * CUT), 3 / (2 * CUT)])


def test_refusals_of_calls_that_were_on_their_way_together_are_one() -> None:
    clock = Clock()
    pace = Pace(clock)
    ask_at_two_a_second(pace, clock)
    for _ in range(20):
        pace.throttled()
    assert pace.per_second == pytest.approx(2 * CUT)


def test_a_second_refusal_cuts_again_and_never_to_a_standstill() -> None:
    clock = Clock()
    pace = Pace(clock)
    ask_at_two_a_second(pace, clock)
    rates = []
    for _ in range(40):
        pace.throttled()
        rates.append(pace.per_second)
        clock.now += 1.0
    assert rates[1] is not None
    assert rates[1] < 2 * CUT
    assert rates[-1] == LEAST_PER_S


def test_the_rate_comes_back_by_equal_steps_and_the_limit_is_lifted() -> None:
    clock = Clock()
    pace = Pace(clock)
    ask_at_two_a_second(pace, clock)
    pace.throttled()
    for seconds in (1, 2, 3):
        clock.now += 1.0
        assert pace.per_second == pytest.approx(2 * (CUT + seconds * RAISE_PER_S))
    clock.now += LIFTED_AT / RAISE_PER_S
    assert pace.per_second is None


def test_nobody_asks_before_the_time_that_the_vendor_names() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.throttled(retry_after_s=7.0)
    assert pace.reserve(60.0) == pytest.approx(7.0)


def test_a_place_that_comes_too_late_is_not_taken() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.throttled(retry_after_s=7.0)
    assert [pace.reserve(1.0) for _ in range(3)] == pytest.approx([7.0] * 3)
    assert pace.reserve(10.0) == pytest.approx(7.0), "those who could not wait stand in nobody's way"


def test_the_same_model_has_one_pace_and_another_model_another() -> None:
    paces = Paces()
    assert paces.of("a") is paces.of("a")
    assert paces.of("a") is not paces.of("b")


def test_a_quota_of_five_a_second_is_found_and_kept_near() -> None:
    """A vendor that grants 5 calls a second, and 40 callers a second who want one: most of the quota is used, and
    refusals become few. Time is simulated.
    """
    clock = Clock()
    pace = Pace(clock)
    granted, refused, starts = 0, 0, list[float]()
    window: list[float] = []
    for tick in range(40 * 60):
        clock.now = 100.0 + tick / 40
        wait = pace.reserve(2.0)
        if wait <= 2.0:
            starts.append(clock.now + wait)
        for start in sorted(start for start in starts if start <= clock.now):
            starts.remove(start)
            window = [at for at in window if at > start - 1.0]
            if len(window) < 5:
                window.append(start)
                granted += tick >= 40 * 20
            else:
                pace.throttled()
                refused += tick >= 40 * 20
    assert granted / 40 > 0.6 * 5
    assert refused / granted < 0.25
