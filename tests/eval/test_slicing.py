"""Watched slices: which are watched, chances that counting every outcome gives, and one false alarm rate for all."""

from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from scipy import stats

from eval.pairing import Pairs
from eval.slicing import LEAST_PAIRS, Watched, by_share, by_signs, chances, cut, watched


def pairs(stable: list[float], candidate: list[float]) -> Pairs:
    """Questions q0, q1 and so on, all eligible in both."""
    ours, theirs = ({f"q{i}": value for i, value in enumerate(values)} for values in (candidate, stable))
    return Pairs(ours, theirs, len(ours), 0, 0)


def test_a_slice_is_watched_that_has_enough_pairs_and_is_not_simply_everything() -> None:
    slices = {
        f"q{i}": {"tenant": "harbour", "hops": "1" if i < LEAST_PAIRS else "2" if i < 45 else "3"} for i in range(50)
    }
    found = watched("recall@6", pairs([1.0] * 50, [1.0] * 50), slices, 0.02)
    assert [(each.label, len(each.differences)) for each in found] == [
        ("recall@6 [hops=1]", 20),
        ("recall@6 [hops=2]", 25),
    ]


def test_a_question_without_slices_is_in_none() -> None:
    assert watched("recall@6", pairs([1.0] * 50, [1.0] * 50), {}, 0.02) == ()


def test_the_drop_of_a_slice_is_how_far_its_mean_fell() -> None:
    assert Watched("recall@6", "hops=1", {"a": -1.0, "b": 0.5, "c": 0.0, "d": 0.0}, 0.02).drop == 0.125


def test_a_question_is_lost_that_had_something_and_now_has_nothing_and_won_the_other_way_round() -> None:
    # q0 and q1 are lost, q2 is won; q3 is worse and not lost, q4 never had anything.
    both = pairs([1.0, 0.5, 0.0, 1.0, 0.0], [0.0, 0.0, 0.5, 0.5, 0.0])
    (test,) = cut("recall@6", both, {"hops=1": ["q1", "q2", "q3", "q4"]}, 0.02)
    assert (test.lost, test.won, test.turned, test.share) == (1, 1, 3, 0.8)
    assert test.differences == {"q1": -0.5, "q2": 0.5, "q3": -0.5, "q4": 0.0}


# ---------------------------------------------------------------------------------------------- by signs


def test_a_single_slice_has_the_chance_that_counting_all_signs_gives() -> None:
    values = [-0.5, -0.4, -0.3, -0.2, 0.1, -0.6, -0.1]
    sums = [sum(s * v for s, v in zip(signs, values, strict=True)) for signs in product((-1, 1), repeat=7)]
    exact = sum(total <= sum(values) + 1e-9 for total in sums) / len(sums)
    ((among, alone),) = by_signs([Watched("m", "s", {f"q{i}": v for i, v in enumerate(values)}, 0.02)], seed=1)
    assert among == alone == pytest.approx(exact, abs=0.01)  # three standard errors of 4,000 flips at .04 are .0093


@pytest.mark.parametrize("seed", range(3))
def test_a_single_slice_has_the_chance_that_scipy_gives(seed: int) -> None:
    values = np.random.default_rng(seed).choice([-1.0, -0.5, 0.0, 0.5], size=40, p=[0.1, 0.1, 0.6, 0.2])
    theirs = stats.permutation_test(
        (values,), lambda v, axis: v.sum(axis=axis), permutation_type="samples", alternative="less",
        n_resamples=20_000, vectorized=True, rng=seed,
    )  # fmt: skip
    ((among, _),) = by_signs([Watched("m", "s", {f"q{i:02}": float(v) for i, v in enumerate(values)}, 0.02)], seed)
    assert among == pytest.approx(theirs.pvalue, abs=0.03)


def test_ten_losses_and_no_win_are_a_thousand_to_one_and_never_nothing_to_one() -> None:
    # 2 ** -10 = .00098; with + 1 the least chance of 4,000 flips is .00025.
    ((among, _),) = by_signs([Watched("m", "s", {f"q{i}": -1.0 for i in range(10)}, 0.02)], seed=1)
    assert 0.0002 < among < 0.003


def test_a_slice_without_a_difference_is_never_worse() -> None:
    quiet = Watched("m", "quiet", {"a": 0.0, "b": 0.0}, 0.02)
    assert chances([quiet], seed=1) == (1.0,)
    assert chances([quiet, Watched("m", "loud", {"c": -1.0}, 0.02)], seed=1)[0] > 0.4
    assert chances([], seed=1) == ()


def test_looking_at_more_slices_makes_each_finding_less_sure_and_looking_twice_at_one_does_not() -> None:
    worse = Watched("m", "worse", {f"w{i}": -0.5 for i in range(7)}, 0.02)
    others = [Watched("m", f"s{j}", {f"q{j}-{i}": (-1.0) ** i for i in range(8)}, 0.02) for j in range(20)]
    alone, among, twice = (by_signs(tests, seed=1)[0] for tests in ([worse], [worse, *others], [worse, worse]))
    assert alone == twice
    assert alone[0] < among[0]
    assert among[1] < among[0], "how likely this one alone would be as low does not depend on the others"


# ---------------------------------------------------------------------------------------------- by share


def part(lost: int, turned: int, share: float, won: int = 0, metric: str = "m") -> Watched:
    """A slice of whole questions lost and won."""
    values = {f"{metric}{i}": -1.0 if i < lost else 1.0 for i in range(lost + won)}
    return Watched(metric, "s", values, 0.02, lost, won, turned, share)


@pytest.mark.parametrize(("lost", "turned", "share"), [(1, 1, 0.3), (3, 7, 0.1), (5, 5, 0.25), (4, 9, 0.6)])
def test_a_share_has_the_chance_that_counting_all_ways_to_draw_a_part_gives(
    lost: int, turned: int, share: float
) -> None:
    ways = product((True, False), repeat=turned)
    exact = sum(prod(share if inside else 1 - share for inside in way) for way in ways if sum(way) >= lost)
    assert by_share(part(lost, turned, share)) == pytest.approx(exact, rel=1e-9)


def test_a_share_has_the_chance_that_scipy_gives_with_thousands_of_questions() -> None:
    for lost, turned, share in ((6, 60, 0.05), (130, 2000, 0.05), (900, 5000, 0.2)):
        assert by_share(part(lost, turned, share)) == pytest.approx(stats.binom.sf(lost - 1, turned, share), rel=1e-7)


def test_a_chance_by_share_is_at_least_that_of_giving_the_name_of_the_slice_to_other_questions() -> None:
    # Ten questions, every slice of four of them, some turned: all 210 ways to choose the four are equally likely.
    # Drawing each question by itself spreads more than that, wherever more is lost than one above the expected number.
    for turned in range(1, 8):
        for lost in range(int(turned * 0.4) + 2, min(turned, 4) + 1):
            drawn = list(combinations(range(10), 4))
            exact = sum(sum(q < turned for q in some) >= lost for some in drawn) / len(drawn)
            assert by_share(part(lost, turned, 0.4)) >= exact


def test_a_slice_that_wins_more_than_its_share_is_expected_to_lose_as_many() -> None:
    # 5 of 20 won in a twentieth of the questions: as if it were a quarter of them.
    assert by_share(part(8, 20, 0.05, won=5)) == by_share(part(8, 20, 0.25))
    assert by_share(part(8, 20, 0.05, won=1)) == by_share(part(8, 20, 0.05))


def test_nothing_lost_or_a_slice_of_every_question_is_no_more_than_its_share() -> None:
    assert by_share(part(0, 7, 0.1)) == 1.0
    assert by_share(part(7, 7, 1.0)) == 1.0


# ---------------------------------------------------------------------------------------------- both


def test_the_smaller_of_both_chances_is_doubled() -> None:
    # Six lost of six, a tenth of all questions: 10 ** -6 by share and 2 ** -6 by signs, twice that with two ways.
    assert chances([part(6, 6, 0.1)], seed=1)[0] == pytest.approx(2e-6)
    # Six of six in a slice of nine tenths are .53 by share, and 2 ** -6 = .0156 by signs, with an error of .002.
    assert chances([part(6, 6, 0.9)], seed=1)[0] == pytest.approx(2 * 2**-6, abs=0.012)


def test_each_slice_that_is_looked_at_multiplies_the_chance_by_share() -> None:
    others = [part(0, 6, 0.1, won=1, metric=f"other{i}") for i in range(9)]
    assert chances([part(6, 6, 0.1), *others], seed=1)[0] == pytest.approx(2 * 10 * 1e-6)


def test_three_lost_questions_are_never_told_and_four_are() -> None:
    # 2 ** -3 = .125 and 2 ** -4 = .0625: the first is above what the slice must reach by itself.
    three, four = (chances([part(lost, lost, 0.01)], seed=1)[0] for lost in (3, 4))
    assert three > 0.2
    assert four < 1e-7


def test_a_slice_that_wins_as_many_as_it_loses_is_never_told_however_often_it_turns() -> None:
    assert chances([part(8, 16, 0.05, won=8)], seed=1)[0] > 0.5


@pytest.mark.slow
def test_any_false_alarm_among_forty_slices_is_as_rare_as_asked_for() -> None:
    # Versions that are equal on average: 600 questions, 40 overlapping slices, two metrics that go together, and one
    # slice of 30 in which twice as many questions turn. A rate of .05 has a standard error of .0126 over 300
    # repetitions; .09 is more than three of them above it.
    alarms, rng = 0, np.random.default_rng(5)
    slices = {f"q{i}": {"a": str(i % 20), "b": str(i % 7), "c": str(i % 13)} for i in range(600)}
    lively = np.arange(600) % 20 == 0
    for seed in range(300):
        d = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], size=600, p=[0.02, 0.02, 0.92, 0.02, 0.02])
        more = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], size=600, p=[0.04, 0.04, 0.84, 0.04, 0.04])
        d = np.where(lively, more, d)
        tests = [
            test
            for metric, size in (("m", 1.0), ("n", 0.5))
            for test in watched(
                metric,
                pairs((size * np.minimum(1.0, 1.0 - d)).tolist(), (size * np.minimum(1.0, 1.0 + d)).tolist()),
                slices,
                0.02,
            )
        ]
        assert len(tests) == 80
        alarms += min(chances(tests, seed)) <= 0.05
    assert 0.01 <= alarms / 300 <= 0.09
