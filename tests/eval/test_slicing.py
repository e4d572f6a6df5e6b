"""Watched slices: which are watched, exact chances where signs can be counted, and one false alarm rate for all."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from eval.slicing import LEAST_PAIRS, Watched, chances, watched


def test_a_slice_is_watched_that_has_enough_pairs_and_is_not_simply_everything() -> None:
    differences = {f"q{i}": 0.0 for i in range(50)}
    slices = {
        f"q{i}": {"tenant": "harbour", "hops": "1" if i < LEAST_PAIRS else "2" if i < 45 else "3"} for i in range(50)
    }
    found = watched("recall@6", differences, slices, 0.02)
    assert [(each.label, len(each.differences)) for each in found] == [
        ("recall@6 [hops=1]", 20),
        ("recall@6 [hops=2]", 25),
    ]


def test_a_question_without_slices_is_in_none() -> None:
    assert watched("recall@6", {f"q{i}": 0.0 for i in range(50)}, {}, 0.02) == ()


def test_the_drop_of_a_slice_is_how_far_its_mean_fell() -> None:
    assert Watched("recall@6", "hops=1", {"a": -1.0, "b": 0.5, "c": 0.0, "d": 0.0}, 0.02).drop == 0.125


def test_a_single_slice_has_the_chance_that_counting_all_signs_gives() -> None:
    values = [-0.5, -0.4, -0.3, -0.2, 0.1, -0.6, -0.1]
    sums = [sum(s * v for s, v in zip(signs, values, strict=True)) for signs in product((-1, 1), repeat=7)]
    exact = sum(total <= sum(values) + 1e-9 for total in sums) / len(sums)
    (chance,) = chances([Watched("m", "s", {f"q{i}": v for i, v in enumerate(values)}, 0.02)], seed=1)
    assert chance == pytest.approx(exact, abs=0.01)  # three standard errors of 4,000 flips at .04 are .0093


@pytest.mark.parametrize("seed", range(3))
def test_a_single_slice_has_the_chance_that_scipy_gives(seed: int) -> None:
    values = np.random.default_rng(seed).choice([-1.0, -0.5, 0.0, 0.5], size=40, p=[0.1, 0.1, 0.6, 0.2])
    theirs = stats.permutation_test(
        (values,), lambda v, axis: v.sum(axis=axis), permutation_type="samples", alternative="less",
        n_resamples=20_000, vectorized=True, rng=seed,
    )  # fmt: skip
    (chance,) = chances([Watched("m", "s", {f"q{i:02}": float(v) for i, v in enumerate(values)}, 0.02)], seed)
    assert chance == pytest.approx(theirs.pvalue, abs=0.03)


def test_ten_losses_and_no_win_are_a_thousand_to_one_and_never_nothing_to_one() -> None:
    # 2 ** -10 = .00098; with + 1 the least chance of 4,000 flips is .00025.
    (chance,) = chances([Watched("m", "s", {f"q{i}": -1.0 for i in range(10)}, 0.02)], seed=1)
    assert 0.0002 < chance < 0.003


def test_a_slice_without_a_difference_is_never_worse() -> None:
    quiet = Watched("m", "quiet", {"a": 0.0, "b": 0.0}, 0.02)
    assert chances([quiet], seed=1) == (1.0,)
    assert chances([quiet, Watched("m", "loud", {"c": -1.0}, 0.02)], seed=1)[0] > 0.4
    assert chances([], seed=1) == ()


def test_looking_at_more_slices_makes_each_finding_less_sure_and_looking_twice_at_one_does_not() -> None:
    worse = Watched("m", "worse", {f"w{i}": -0.5 for i in range(7)}, 0.02)
    others = [Watched("m", f"s{j}", {f"q{j}-{i}": (-1.0) ** i for i in range(8)}, 0.02) for j in range(20)]
    alone, among, twice = (chances(tests, seed=1)[0] for tests in ([worse], [worse, *others], [worse, worse]))
    assert alone == twice < among


@pytest.mark.slow
def test_any_false_alarm_among_forty_slices_is_as_rare_as_asked_for() -> None:
    # Versions that are equal on average: 600 questions, 40 overlapping slices, two metrics that go together. A rate of
    # .05 has a standard error of .0126 over 300 repetitions; .09 is more than three of them above it.
    alarms, rng = 0, np.random.default_rng(5)
    slices = [{"a": str(i % 20), "b": str(i % 7), "c": str(i % 13)} for i in range(600)]
    for seed in range(300):
        d = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], size=600, p=[0.02, 0.02, 0.92, 0.02, 0.02])
        tests = [
            test
            for metric, values in (("m", d), ("n", d * 0.5))
            for test in watched(
                metric,
                {f"q{i}": float(v) for i, v in enumerate(values)},
                {f"q{i}": part for i, part in enumerate(slices)},
                0.02,
            )
        ]
        assert len(tests) == 80
        alarms += min(chances(tests, seed)) <= 0.05
    assert 0.01 <= alarms / 300 <= 0.09
