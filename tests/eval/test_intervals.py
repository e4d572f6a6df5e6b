"""Bounds of a mean, against scipy, against exact binomial bounds, and by counting how often they are wrong."""

from itertools import product, takewhile
from math import comb

import numpy as np
import pytest
from scipy import stats

from eval.intervals import Floats, Sample, bca_quantile, exact_lower, interval, resampled, weighted_mean_below

ALPHA = 0.05


def differences(losses: int, wins: int, n: int, size: float = 1.0) -> Sample:
    """`n` differences, of which so many are losses or wins of one size and the others nothing."""
    return Sample.of([-size] * losses + [size] * wins + [0.0] * (n - losses - wins), -1.0, 1.0)


# ---------------------------------------------------------------------------------------------- samples


def test_a_sample_has_the_mean_and_the_spread_of_its_values_whatever_their_order() -> None:
    # (0.5 + 0.5 - 1) / 3 = 0; squares .25 + .25 + 1 = 1.5, over n - 1 = 2 is .75.
    one, other = (Sample.of(values, -1.0, 1.0) for values in ([0.5, -1.0, 0.5], [0.5, 0.5, -1.0]))
    assert (one.n, one.mean, round(one.sd**2, 12)) == (3, 0.0, 0.75)
    assert one.values.tolist() == other.values.tolist() == [-1.0, 0.5]
    assert interval(one, ALPHA, 1) == interval(other, ALPHA, 1)


def test_differences_that_are_equal_on_paper_are_one_value() -> None:
    assert Sample.of([0.3 - 0.1, 0.2, 0.9 - 0.7], -1.0, 1.0).values.tolist() == [0.2]


# ---------------------------------------------------------------------------------------------- bootstrap


@pytest.mark.parametrize("seed", range(5))
def test_the_bootstrap_agrees_with_the_one_of_scipy(seed: int) -> None:
    values = np.random.default_rng(seed).choice([-1.0, -0.5, 0.0, 0.5, 1.0], size=300, p=[0.05, 0.05, 0.7, 0.15, 0.05])
    sample = Sample.of(values, -1.0, 1.0)
    means = resampled(sample, seed)
    theirs = stats.bootstrap((values,), np.mean, confidence_level=0.9, n_resamples=20_000, method="BCa", rng=seed)
    # Both are quantiles of finitely many resamples: of 2,000, the 5 % one lies within about .0015 of where it would be.
    assert bca_quantile(sample, means, 0.05) == pytest.approx(theirs.confidence_interval.low, abs=0.006)
    assert bca_quantile(sample, means, 0.95) == pytest.approx(theirs.confidence_interval.high, abs=0.006)


def test_the_bootstrap_of_values_that_do_not_vary_is_their_mean() -> None:
    sample = differences(0, 0, 20)
    assert bca_quantile(sample, resampled(sample, 1), 0.05) == 0.0


# ---------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize("n", [1, 2, 3, 20, 149, 1000, 20_000])
def test_equal_values_leave_room_for_what_three_divided_by_n_of_them_might_have_been(n: int) -> None:
    assert exact_lower(differences(0, 0, n), ALPHA) == pytest.approx(-(1 - ALPHA ** (1 / n)), rel=1e-3)


@pytest.mark.parametrize(("n", "losses"), [(10, 3), (50, 1), (200, 1), (300, 6), (900, 18), (5000, 4999)])
@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.4])
def test_losses_of_one_size_have_the_bound_of_clopper_and_pearson(n: int, losses: int, alpha: float) -> None:
    expected = -stats.beta.ppf(1 - alpha, losses + 1, n - losses)
    assert exact_lower(differences(losses, 0, n), alpha) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("t", [-0.2, -0.03, 0.0, 0.01, 0.05, 0.3])
def test_the_chance_of_a_weighted_mean_is_what_drawing_weights_gives(t: float) -> None:
    points, counts = np.array([-1.0, -0.4, 0.0, 0.7]), np.array([1.0, 3.0, 40.0, 4.0])
    weights = np.random.default_rng(0).standard_gamma(counts, size=(200_000, 4))
    drawn = float((weights @ points <= t * weights.sum(axis=1)).mean())
    assert weighted_mean_below(points, counts, t) == pytest.approx(drawn, abs=0.006)  # 5 standard errors of .5


def test_values_at_the_worst_there_is_have_that_as_their_bound() -> None:
    assert exact_lower(differences(7, 0, 7), ALPHA) == -1.0


def chance_of_exceeding(support: tuple[float, ...], shares: Floats, n: int) -> float:
    """The exact chance that the bound of n values lies above their true mean, by adding up every possible sample."""
    true, chance = float(shares @ np.array(support)), 0.0
    for counts in product(range(n + 1), repeat=len(support)):
        if sum(counts) == n and (low := bounds(support, counts)) > true + 1e-9:
            assert low <= 1.0
            ways, left = 1, n
            for count in counts:
                ways, left = ways * comb(left, count), left - count
            chance += ways * float(np.prod(shares ** np.array(counts)))
    return chance


def bounds(support: tuple[float, ...], counts: tuple[int, ...]) -> float:
    key = (support, counts)
    if key not in KNOWN:
        values = [value for value, count in zip(support, counts, strict=True) for _ in range(count)]
        KNOWN[key] = exact_lower(Sample.of(values, -1.0, 1.0), ALPHA)
    return KNOWN[key]


KNOWN: dict[tuple[tuple[float, ...], tuple[int, ...]], float] = {}


@pytest.mark.parametrize("support", [(-1.0, 0.0, 1.0), (-1.0, -0.5, 0.0), (-1.0, -0.05, 0.05), (-1.0, -0.9, 0.2)])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_the_bound_is_wrong_at_most_as_often_as_it_says_for_any_shares(support: tuple[float, ...], n: int) -> None:
    rng = np.random.default_rng(n)
    for shares in np.concatenate([rng.dirichlet([0.3] * 3, 60), rng.dirichlet([0.3, 4, 1], 60)]):
        assert chance_of_exceeding(support, shares, n) <= ALPHA


@pytest.mark.parametrize("drop", [0.02, 0.05])
def test_a_rare_loss_hides_at_no_number_of_questions(drop: float) -> None:
    # A version that loses one question in 50 (or 20) and is otherwise equal is worse by exactly the drop. Nobody sees
    # that in few questions; it may be passed with a chance of alpha at any n, not only at large ones.
    for n in [*range(1, 330, 11), 149, 150, 900]:
        bounds_by_losses = (interval_low(losses, n) for losses in range(n + 1))
        passing = len(list(takewhile(lambda low: low > -drop, bounds_by_losses)))
        assert stats.binom.cdf(passing - 1, n, drop) <= ALPHA


def interval_low(losses: int, n: int) -> float:
    return interval(differences(losses, 0, n), ALPHA, 1)[0]


# ---------------------------------------------------------------------------------------------- together


def test_no_interval_is_narrower_than_either_allows_and_each_holds_its_mean() -> None:
    rng = np.random.default_rng(3)
    for n in (1, 2, 10, 60, 300):
        sample = Sample.of(rng.choice([-1.0, -0.5, 0.0, 0.5], size=n, p=[0.02, 0.03, 0.9, 0.05]), -1.0, 1.0)
        low, high = interval(sample, ALPHA, 7)
        means = resampled(sample, 7)
        assert low <= min(exact_lower(sample, ALPHA), bca_quantile(sample, means, ALPHA))
        assert high >= max(-exact_lower(sample.mirrored(), ALPHA), bca_quantile(sample, means, 1 - ALPHA))
        assert -1.0 <= low <= sample.mean <= high <= 1.0


def test_twenty_equal_questions_prove_little_and_nine_hundred_a_lot() -> None:
    # Rule of three: 1 - .05 ** (1 / 20) = .1391, 1 - .05 ** (1 / 900) = .0033.
    assert interval_low(0, 20) == pytest.approx(-0.1391, abs=1e-4)
    assert interval_low(0, 900) == pytest.approx(-0.0033, abs=1e-4)


def test_the_same_input_gives_the_same_interval() -> None:
    sample = differences(3, 2, 90, size=0.5)
    assert interval(sample, ALPHA, 5) == interval(sample, ALPHA, 5)


def test_many_distinct_values_are_no_problem() -> None:
    values = np.random.default_rng(2).uniform(-1, 1, 1500)
    low, high = interval(Sample.of(values, -1.0, 1.0), ALPHA, 1)
    # 1.645 standard errors of the mean are .0245 here.
    assert (low, high) == pytest.approx((values.mean() - 0.0245, values.mean() + 0.0245), abs=0.002)
