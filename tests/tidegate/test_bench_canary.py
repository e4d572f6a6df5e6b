"""The simulated canaries: what is drawn, what the fixed-size test would take, and that it tells bad from good."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from domain.releases import Observation, Outcome, Rollout, Scorecard
from eval.canary import LiveRules, weigh
from tidegate.bench_canary import (
    ALPHA,
    DROP,
    Found,
    Pool,
    fine_after,
    pool,
    shortfalls,
    simulate,
    turned_back_after,
    unpaired_requests,
    worse_after,
)

# Ten questions: one of them is found by only one of the good versions, and none of five by the worse.
VALUES = Pool(
    one=np.array([1.0] * 9 + [0.0]),
    other=np.array([0.0] + [1.0] * 9),
    worse=np.array([1.0] * 5 + [0.0] * 5),
)


def test_the_share_of_worse_answers_makes_exactly_the_drop() -> None:
    # The good versions find .9, the worse one .5: a drop of .05 is 1/8 of the requests.
    assert VALUES.share(0.05) == pytest.approx(0.125)


def test_without_a_drop_the_versions_are_exchangeable_and_with_it_the_mean_drops_by_it() -> None:
    for drop in (0.0, DROP):
        canary, stable = VALUES.draw(np.random.default_rng(1), 200_000, drop)
        # The standard deviation of a difference is below .5, that of this mean below .0012: four of them.
        assert (canary - stable).mean() == pytest.approx(-drop, abs=0.0048)
        assert set(np.unique(canary)) | set(np.unique(stable)) == {0.0, 1.0}


def test_the_fixed_size_test_takes_the_requests_of_the_textbook() -> None:
    # Stable: mean .9, variance .09. Canary: mean .85, variance .1275. z = 1.6449 + 1.2816, squared 8.5638.
    # n = 8.5638 * .2175 / .0025 = 745.05, so 746 of each version.
    assert unpaired_requests(VALUES, 0.05, 0.9) == 2 * 746


def test_only_eligible_questions_are_drawn_and_in_the_same_order_for_all() -> None:
    values = ({"a": 1.0, "b": None, "c": 0.5}, {"c": 0.0, "b": None, "a": 0.25}, {"a": 0.0, "b": None, "c": 0.125})
    cards = {str(i): Scorecard(f"v{i}", "set", {"evidence_recall@6": dict(each)}) for i, each in enumerate(values)}
    drawn = pool(cards)
    assert [each.tolist() for each in (drawn.one, drawn.other, drawn.worse)] == [[1.0, 0.5], [0.25, 0.0], [0.0, 0.125]]


def test_the_simulation_turns_back_when_a_live_canary_would() -> None:
    canary, stable = VALUES.draw(np.random.default_rng(7), 800, 3 * DROP)
    after = turned_back_after(canary - stable)
    assert after is not None
    seen = [
        Observation(f"t{i}", 0.0, "v2", {}, {"coverage": (float(pair[0]), float(pair[1]))})
        for i, pair in enumerate(zip(canary, stable, strict=True))
    ]
    pointer, rules = Rollout(stable="v1", canary="v2", share=0.5, revision=2, began=2), LiveRules(DROP, ALPHA)
    assert weigh(seen[: after - 1], pointer, 0.0, rules).outcome is Outcome.INCONCLUSIVE
    assert weigh(seen[:after], pointer, 0.0, rules).outcome is Outcome.FAIL


def test_no_difference_is_never_worse_and_soon_fine() -> None:
    assert worse_after(np.zeros(200)) is None
    assert fine_after(np.zeros(200)) == 78


def test_the_same_seed_gives_the_same_figures() -> None:
    assert simulate(VALUES, 10, 3, horizon=300) == simulate(VALUES, 10, 3, horizon=300)
    assert simulate(VALUES, 10, 3, horizon=300) != simulate(VALUES, 10, 4, horizon=300)


REACHED = Found(
    requests_ratio=0.1, requests_ratio_median=0.1, paired_requests=100.0, paired_requests_median=90.0,
    unpaired_requests=1000, unpaired_requests_at_reached_power=2000, false_alarm=0.05, false_pass=0.01, missed=0.0,
    pass_requests=80.0, turned_back=0.9, turned_back_requests=200.0, alpha=0.05, power=0.9, drop=0.05, runs=1000,
    horizon=2000, questions=10,
)  # fmt: skip


def test_what_is_reached_is_no_shortfall() -> None:
    assert shortfalls(REACHED) == []


@pytest.mark.parametrize(
    ("missed", "named"),
    [
        ({"requests_ratio": 0.21}, "requests_ratio is 0.21, wanted at most 0.2"),
        ({"false_alarm": 0.051}, "false_alarm is 0.051, wanted at most 0.05"),
        ({"false_pass": 0.071}, "false_pass is 0.071, wanted at most 0.07068"),  # .05 + 3 * sqrt(.05 * .95 / 1000)
        ({"missed": 0.3}, "missed is 0.3, wanted at most 0.1"),
        ({"requests_ratio": float("nan")}, "requests_ratio is nan, wanted at most 0.2"),
    ],
)
def test_what_is_not_reached_is_named_with_both_numbers(missed: dict[str, float], named: str) -> None:
    assert shortfalls(replace(REACHED, **missed)) == [named]  # type: ignore[arg-type]  # float fields only


@pytest.mark.slow
def test_a_drop_is_found_with_few_requests_and_few_false_alarms() -> None:
    # As in the sample library: good versions find 4 in 5 and disagree on 6 questions in 100, the worse one loses 25.
    found_by_both = np.array([1.0] * 77 + [0.0] * 17)
    values = Pool(
        one=np.concatenate([found_by_both, [1.0] * 3, [0.0] * 3]),
        other=np.concatenate([found_by_both, [0.0] * 3, [1.0] * 3]),
        worse=np.concatenate([[0.0] * 25, found_by_both[25:], [1.0] * 3, [0.0] * 3]),
    )
    runs = 300
    found = simulate(values, runs, seed=11)
    assert found.missed == 0.0
    assert found.requests_ratio <= 0.2
    # 5 of 100 may alarm in the long run; 3 standard deviations of 300 draws more.
    most = ALPHA + 3.0 * sqrt(ALPHA * (1.0 - ALPHA) / runs)
    assert found.false_alarm <= most
    assert found.false_pass <= most
