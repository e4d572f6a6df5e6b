"""What live evidence asks for, and that nothing but shown evidence moves a canary forward."""

from itertools import product

import pytest

from domain.canary import UNDECIDED, Ramp, Step, advise
from domain.releases import Evidence, LiveMetric, Outcome, Rollout

POINTER = Rollout(stable="v1", canary="v2", share=0.05, revision=4, began=3, auto=True)
RAMP = Ramp(shares=(0.05, 0.25, 0.5), min_requests=50, timeout_s=3600.0)
FORWARD = (Step.WIDEN, Step.PROMOTE)


def metric(outcome: Outcome, name: str = "success", *, advisory: bool = False) -> LiveMetric:
    return LiveMetric(name, False, 60, 900, 0.9, 0.95, -0.1, 0.0, outcome, f"{name} in numbers", advisory)


def evidence(*metrics: LiveMetric, canary_n: int = 60, since: int = 60, canary: str = "v2", began: int = 3) -> Evidence:
    return Evidence(canary, "v1", began, canary_n, 900, since, metrics)


PASSED = evidence(metric(Outcome.PASS), metric(Outcome.PASS, "coverage"))


def test_without_a_canary_there_is_nothing_to_do() -> None:
    assert advise(Rollout(stable="v1", revision=2), PASSED, 10.0, RAMP).step is Step.WAIT


@pytest.mark.parametrize(("share", "wider"), [(0.01, 0.05), (0.05, 0.25), (0.25, 0.5), (0.3, 0.5)])
def test_a_canary_as_good_as_stable_gets_the_next_share(share: float, wider: float) -> None:
    pointer = Rollout(stable="v1", canary="v2", share=share, revision=4, began=3)
    advice = advise(pointer, PASSED, 10.0, RAMP)
    assert (advice.step, advice.share) == (Step.WIDEN, wider)


def test_beyond_the_last_share_it_is_promoted_and_the_reason_counts_the_requests() -> None:
    pointer = Rollout(stable="v1", canary="v2", share=0.5, revision=6, began=3)
    advice = advise(pointer, PASSED, 10.0, RAMP)
    assert advice.step is Step.PROMOTE
    assert "60 requests on v2, 900 on v1" in advice.reason


def test_every_share_needs_requests_of_its_own() -> None:
    advice = advise(POINTER, evidence(metric(Outcome.PASS), since=49), 10.0, RAMP)
    assert advice.step is Step.WAIT
    assert "49 of 50" in advice.reason


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.ERROR])
def test_one_metric_that_is_worse_or_unreadable_turns_the_canary_back_and_says_which(outcome: Outcome) -> None:
    seen = evidence(metric(Outcome.PASS), metric(outcome, "coverage"), metric(Outcome.INCONCLUSIVE, "found"))
    advice = advise(POINTER, seen, 10.0, RAMP)
    assert advice.step is Step.ROLL_BACK
    assert "coverage: coverage in numbers" in advice.reason
    assert "found" not in advice.reason


def test_an_advisory_metric_moves_nothing() -> None:
    seen = evidence(metric(Outcome.PASS), metric(Outcome.FAIL, "feedback", advisory=True))
    assert advise(POINTER, seen, 10.0, RAMP).step is Step.WIDEN


@pytest.mark.parametrize("seen", [0, 1, 50], ids="{} requests".format)
def test_too_little_traffic_waits_and_then_ends_at_stable(seen: int) -> None:
    little = evidence(metric(Outcome.INCONCLUSIVE), canary_n=seen, since=seen)
    assert advise(POINTER, little, 3599.9, RAMP).step is Step.WAIT
    ended = advise(POINTER, little, 3600.0, RAMP)
    assert ended.step is Step.ROLL_BACK
    assert ended.reason.startswith(UNDECIDED)
    assert f"{seen} requests on v2" in ended.reason


def test_no_metric_at_all_is_nothing_shown() -> None:
    assert advise(POINTER, evidence(), 10.0, RAMP).step is Step.WAIT
    assert advise(POINTER, evidence(), 3600.0, RAMP).step is Step.ROLL_BACK


@pytest.mark.parametrize("other", [{"canary": "v9"}, {"began": 1}])
def test_evidence_about_something_else_is_none_and_does_not_stop_the_clock(other: dict[str, str | int]) -> None:
    foreign = evidence(metric(Outcome.PASS), **other)  # type: ignore[arg-type]  # one of two literal cases
    assert advise(POINTER, foreign, 10.0, RAMP).step is Step.WAIT
    assert advise(POINTER, foreign, 3600.0, RAMP).step is Step.ROLL_BACK


def test_foreign_evidence_of_failure_turns_nothing_back() -> None:
    assert advise(POINTER, evidence(metric(Outcome.FAIL), began=1), 10.0, RAMP).step is Step.WAIT


def test_traffic_that_stops_after_a_widening_ends_at_stable() -> None:
    stopped = evidence(metric(Outcome.PASS), canary_n=300, since=0)
    assert advise(POINTER, stopped, 3600.0, RAMP).step is Step.ROLL_BACK


def test_a_canary_shown_to_be_good_does_not_run_out_of_time() -> None:
    assert advise(POINTER, PASSED, 1e9, RAMP).step is Step.WIDEN


@pytest.mark.parametrize("elapsed", [-1.0, -1e12])
def test_a_clock_set_back_ends_nothing(elapsed: float) -> None:
    assert advise(POINTER, evidence(metric(Outcome.INCONCLUSIVE)), elapsed, RAMP).step is Step.WAIT


def test_nothing_goes_forward_unless_every_binding_metric_passed() -> None:
    outcomes = (None, *Outcome)
    for first, second, since, elapsed in product(outcomes, outcomes, (0, 50), (-1.0, 10.0, 3600.0)):
        shown = [metric(outcome, f"m{i}") for i, outcome in enumerate((first, second)) if outcome is not None]
        advice = advise(POINTER, evidence(*shown, since=since), elapsed, RAMP)
        all_passed = bool(shown) and all(m.outcome is Outcome.PASS for m in shown)
        assert (advice.step in FORWARD) == (all_passed and since == 50)
