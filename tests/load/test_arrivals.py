"""When requests are due."""

import pytest

from load.arrivals import due_times


def test_equal_seeds_give_equal_arrivals_and_others_others() -> None:
    assert due_times(20.0, 5.0, seed=1) == due_times(20.0, 5.0, seed=1) != due_times(20.0, 5.0, seed=2)


def test_they_are_in_order_and_inside_the_run() -> None:
    due = due_times(50.0, 3.0)
    assert due == sorted(due)
    assert 0 < due[0] <= due[-1] < 3.0


@pytest.mark.parametrize("rate", [5.0, 200.0])
def test_they_come_at_their_rate_with_the_spread_of_poisson_arrivals(rate: float) -> None:
    seconds, seeds = 20.0, 200
    counts = [len(due_times(rate, seconds, seed)) for seed in range(seeds)]
    mean = sum(counts) / seeds
    variance = sum((count - mean) ** 2 for count in counts) / (seeds - 1)
    # Mean and variance of a Poisson count are both rate x seconds; five standard errors of each.
    expected = rate * seconds
    assert mean == pytest.approx(expected, abs=5 * (expected / seeds) ** 0.5)
    assert variance == pytest.approx(expected, abs=5 * expected * (2 / seeds) ** 0.5)
