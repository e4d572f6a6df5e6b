"""Bounds that hold after every look: the wealth on paper, a slow twin, exact expectations, simulated coverage."""

from itertools import product
from math import ceil, exp, log, pi, sqrt

import numpy as np
import pytest

from eval.sequences import (
    ALIVE,
    INTERVAL,
    MOST,
    ROWS,
    Alarm,
    Difference,
    Floats,
    Imagined,
    Restarts,
    Wealth,
    dropped,
    nulls,
    share,
    unchanged,
)

ALPHA = 0.05
DROP = 0.05
RUNS = 1_000
# At most 5 of 100 runs may cross in the long run; 3 standard deviations of 1,000 draws are sqrt(.05 * .95 / 1000) * 3.
MOST_CROSSED = ALPHA + 3.0 * sqrt(ALPHA * (1.0 - ALPHA) / RUNS)  # .0707


def array(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


def slow_log_wealth(null: float, imagined: Imagined, observed: Floats) -> list[float]:
    """The definition, one observation after the other, with the three points written out."""
    past = [(-1.0, imagined[0]), (0.0, imagined[1]), (1.0, imagined[2])]
    wealth, path = 0.0, []
    for value in observed:
        count = sum(weight for _, weight in past)
        above = [(x - null, weight) for x, weight in past if x > null]
        below = [(null - x, weight) for x, weight in past if x < null]
        gain, loss = (sum(d * weight for d, weight in side) / count for side in (above, below))
        a = sum(d * d * weight for d, weight in above) / count / gain  # size of the typical gain, and of the loss
        b = sum(d * d * weight for d, weight in below) / count / loss
        p, q = gain / a, loss / b
        bet = (p * a - q * b) / ((p + q) * a * b)
        wealth += log(1.0 + min(max(bet, 0.0), MOST / (1.0 + null)) * (value - null))
        path.append(wealth)
        past.append((float(value), 1.0))
    return path


# ---------------------------------------------------------------------------------------------- wealth


def test_the_wealth_is_the_one_on_paper() -> None:
    # Imagined: one -1 and one +1. Nothing is bet on the first; on the second (2 - 1) / (2 + 1) of the wealth,
    # on the third (3 - 1) / (3 + 1): 1, then 1 * (1 + 1/3), then 4/3 * (1 - 1/2).
    path = Wealth([0.0], (1.0, 0.0, 1.0)).add(array(1.0, 1.0, -1.0))
    assert np.exp(path[:, 0]) == pytest.approx([1.0, 4 / 3, 2 / 3])


def test_the_bet_is_kellys_for_three_points() -> None:
    # 75 gains and 25 losses of 1 in 1,000: Kelly bets (75 - 25) / (75 + 25) = 1/2.
    assert Wealth([0.0], (25.0, 900.0, 75.0)).add(array(1.0))[0, 0] == pytest.approx(log(1.5))
    # 98 times +.05, twice -.95 (from a null of -.05): (.98 * .05 - .02 * .95) / (.05 * .95) = .6316 of the wealth.
    assert Wealth([-0.05], (2.0, 98.0, 0.0)).add(array(0.0))[0, 0] == pytest.approx(log(1 + 0.03 / 0.0475 * 0.05))


@pytest.mark.parametrize("imagined", [unchanged(DROP), dropped(DROP), (1.0, 0.0, 1.0)])
def test_the_fast_wealth_is_the_slow_one(imagined: Imagined) -> None:
    random = np.random.default_rng(3)
    observed = random.choice([-1.0, -0.25, 0.0, 0.0, 0.5, 1.0], size=120)
    some = [-0.9, -DROP, 0.0, 0.1, 0.7]
    fast = Wealth(some, imagined).add(observed)
    for column, null in enumerate(some):
        assert fast[:, column] == pytest.approx(slow_log_wealth(null, imagined, observed), abs=1e-9)


def test_adding_in_pieces_gives_the_same_numbers_to_the_last_bit() -> None:
    observed = np.random.default_rng(4).uniform(-1.0, 1.0, size=2 * ROWS + 7)
    whole, pieces = (Wealth(nulls(DROP), unchanged(DROP)) for _ in range(2))
    path = whole.add(observed)
    parts = [pieces.add(part) for part in np.split(observed, [1, 2, 90, ROWS, ROWS + 1, 1_000])]
    assert (np.concatenate(parts) == path).all()
    assert (pieces.best == whole.best).all()


@pytest.mark.parametrize("null", [-0.5, -DROP, 0.0, 0.25])
def test_nobody_is_expected_to_win_while_the_null_holds(null: float) -> None:
    # All 3^5 sequences of -1, 0, +1. With the mean at the null exactly 1 is expected, below it no more.
    for mean in (null, null - 0.1):
        shares = {-1.0: (0.6 - mean) / 2.0, 0.0: 0.4, 1.0: (0.6 + mean) / 2.0}
        total = 0.0
        for sequence in product(shares, repeat=5):
            chance = float(np.prod([shares[value] for value in sequence]))
            total += chance * exp(Wealth([null], unchanged(DROP)).add(array(*sequence))[-1, 0])
        assert total == pytest.approx(1.0) if mean == null else total <= 1.0 + 1e-12


def test_no_sequence_ruins_the_bettor() -> None:
    for seed in range(50):
        random = np.random.default_rng(seed)
        kind = random.choice(np.array([-1.0, -0.999, 0.0, 0.999, 1.0]), size=(4, 300))
        worst = np.concatenate([np.sort(kind[0])[::-1], kind[1], np.repeat([1.0, -1.0], 200)])
        path = Wealth(nulls(DROP), dropped(DROP)).add(worst)
        assert np.isfinite(path).all()


DISTRIBUTIONS = {
    "rare whole losses": ([-1.0, 0.0], [0.05, 0.95]),
    "rare whole gains": ([-0.1, 0.95], [0.95, 0.05]),
    "coins": ([-1.0, 1.0], [0.525, 0.475]),
    "small steps": ([-0.1, 0.0], [0.5, 0.5]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_true_null_is_rejected_in_at_most_alpha_of_the_runs_however_often_one_looks(name: str) -> None:
    values, shares = DISTRIBUTIONS[name]
    mean = float(np.dot(values, shares))
    crossed = 0
    for run in range(RUNS):
        observed = np.random.default_rng((5, run)).choice(values, size=1_500, p=shares)
        below = Wealth([mean], unchanged(DROP)).add(observed)[:, 0].max()
        crossed += below >= log(1.0 / ALPHA)
    assert crossed / RUNS <= MOST_CROSSED


@pytest.mark.slow
def test_a_mean_that_moves_below_the_null_is_rejected_no_more_often() -> None:
    # Every mean is at most 0 given the past, though it depends on the past: good after a loss, bad after a gain.
    crossed = 0
    for run in range(RUNS):
        random = np.random.default_rng((6, run))
        draws, observed, last = random.random(600), [], 0.0
        for draw in draws:
            up = 0.5 if last <= 0.0 else 0.3
            last = 1.0 if draw < up else -1.0
            observed.append(last)
        crossed += Wealth([0.0], unchanged(DROP)).add(np.array(observed))[:, 0].max() >= log(1.0 / ALPHA)
    assert crossed / RUNS <= MOST_CROSSED


# ---------------------------------------------------------------------------------------------- both bounds


def test_nothing_seen_is_nothing_known() -> None:
    nothing = Difference(DROP, ALPHA, ALPHA)
    nothing.add(array())
    assert (nothing.n, nothing.mean, nothing.low, nothing.high, nothing.needed) == (0, 0.0, -1.0, 1.0, None)


@pytest.mark.parametrize("drop", [0.01, 0.05, 0.07, 0.3, 1.0])
def test_the_tolerated_drop_and_zero_are_among_the_tested_means(drop: float) -> None:
    tested = nulls(drop).tolist()
    assert 0.0 in tested
    assert drop == 1.0 or -drop in tested
    assert tested == sorted(set(tested))


def test_the_bounds_are_those_of_testing_every_mean_by_itself() -> None:
    random = np.random.default_rng(8)
    observed = random.choice([-1.0, -0.5, 0.0, 1.0], p=[0.2, 0.1, 0.68, 0.02], size=100)
    known = Difference(DROP, 0.05, 0.01)
    known.add(observed)
    tested = nulls(DROP).tolist()
    above = [slow_log_wealth(m, unchanged(DROP), observed)[-1] >= log(20.0) for m in tested]
    below = [max(slow_log_wealth(-m, dropped(DROP), -observed)) >= log(100.0) for m in tested]
    low = [m for i, m in enumerate(tested) if all(above[: i + 1])]
    high = [m for i, m in enumerate(tested) if all(below[i:])]
    assert (known.low, known.high) == (low[-1], high[0])
    assert known.low < known.mean < known.high < 0.0


@pytest.mark.parametrize("drop", [0.01, 0.05, 0.2])
def test_unbroken_success_excludes_a_drop_soon_but_never_sooner_than_exactness_allows(drop: float) -> None:
    # With a share `drop` of whole losses, none in n requests has probability (1 - drop)^n: 1/20 needs n of ln(1/20) /
    # ln(1 - drop), which is 59 requests for .05.
    exact = ceil(log(ALPHA) / log(1.0 - drop))
    known = Difference(drop, ALPHA, ALPHA)
    while known.low < -drop:
        known.add(array(0.0))
    assert exact <= known.n <= 1.4 * exact


def test_unbroken_failure_is_seen_within_a_dozen_requests() -> None:
    known = Difference(DROP, ALPHA, ALPHA / 8)
    known.add(np.full(12, -1.0))
    assert known.high <= 0.0


def test_what_was_shown_to_be_worse_stays_and_what_was_shown_to_be_fine_can_be_taken_back() -> None:
    known = Difference(DROP, ALPHA, ALPHA)
    known.add(np.zeros(120))
    assert known.low >= -DROP
    known.add(np.full(10, -1.0))
    assert known.low < -DROP
    worse = Difference(DROP, ALPHA, ALPHA)
    worse.add(np.full(12, -1.0))
    shown = worse.high
    worse.add(np.full(200, 1.0))
    assert worse.high == shown <= 0.0


def test_what_is_said_to_be_needed_is_about_what_it_takes() -> None:
    known = Difference(DROP, ALPHA, ALPHA)
    known.add(np.zeros(50))
    assert known.needed is not None
    # It took 78 of these in the end; the bets learn, so half-way it looks longer, never shorter.
    assert 78 <= known.needed <= 100


@pytest.mark.slow
@pytest.mark.parametrize("mean", [-DROP, 0.0, 0.02])
def test_both_bounds_hold_at_every_moment_together(mean: float) -> None:
    outside_low = outside_high = 0
    for run in range(RUNS):
        random = np.random.default_rng((9, run))
        observed = random.choice([-1.0, 0.0, 1.0], p=[0.1 - mean / 2.0, 0.8, 0.1 + mean / 2.0], size=400)
        known, lows = Difference(DROP, ALPHA, ALPHA), []
        for part in np.split(observed, 4):
            known.add(part)
            lows.append(known.low)
        outside_low += max(lows) >= mean
        outside_high += known.high <= mean
    assert outside_low / RUNS <= MOST_CROSSED
    assert outside_high / RUNS <= MOST_CROSSED


# ---------------------------------------------------------------------------------------------- fresh starts


LATELY = ALPHA / 16  # half of what one of eight alarms may use


def alarm(observed: Floats, *, null: float = 0.0, alpha: float = LATELY, least: float = DROP) -> Alarm | None:
    starts = Restarts(null, dropped(DROP), alpha, least)
    starts.add(observed)
    return starts.alarm


def test_the_shares_of_all_fresh_starts_are_one_in_all() -> None:
    # What is missing after n of them is 6 / pi^2 times the rest of the sum of 1 / j^2, between 1 / (n + 1) and 1 / n.
    missing = 1.0 - sum(share(number) for number in range(1, 1_001))
    assert 6.0 / pi**2 / 1_001 <= missing <= 6.0 / pi**2 / 1_000


def test_the_first_alarm_is_that_of_the_definition() -> None:
    random = np.random.default_rng(12)
    observed = random.choice([-1.0, 0.0, 1.0], p=[0.05, 0.9, 0.05], size=5 * INTERVAL + 60)
    observed[-100:] = random.choice([-1.0, 0.0, 1.0], p=[0.02, 0.5, 0.48], size=100)
    alarms = []
    for number in range(1, 6):
        part = observed[number * INTERVAL : (number + ALIVE) * INTERVAL]
        enough, rich = log(1.0 / (LATELY * 6.0 / (pi * number) ** 2)), False
        for n, wealth in enumerate(slow_log_wealth(0.0, dropped(DROP), part), start=1):
            rich = rich or wealth >= enough
            if rich and part[:n].sum() >= DROP * n:
                alarms.append((number * INTERVAL + n, n, float(part[:n].mean())))
    upto, n, mean = min(alarms)
    found = alarm(observed)
    assert found == Alarm(pytest.approx(mean), n, upto)
    assert upto > 5 * INTERVAL - 40


def test_an_alarm_is_the_same_in_pieces_of_any_size_and_stays() -> None:
    observed = np.concatenate([np.zeros(6 * INTERVAL + 30), np.ones(60), -np.ones(2 * INTERVAL)])
    whole = alarm(observed)
    assert whole is not None
    for size in (1, 7, INTERVAL, INTERVAL + 1):
        pieces = Restarts(0.0, dropped(DROP), LATELY, DROP)
        for at in range(0, len(observed), size):
            pieces.add(observed[at : at + size])
        assert pieces.alarm == whole


def test_nothing_starts_afresh_before_the_first_interval_is_over() -> None:
    assert alarm(np.ones(INTERVAL)) is None
    assert alarm(np.ones(INTERVAL + 60)) is not None


def test_what_is_certain_but_smaller_than_the_least_raises_no_alarm() -> None:
    observed = np.full(4 * INTERVAL, 0.04)
    assert alarm(observed) is None
    assert alarm(observed, least=0.03) is not None


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_drop_of_twenty_points_after_twenty_thousand_good_pairs_is_seen_within_a_few_hundred(noise: float) -> None:
    # `noise` of the pairs are lost by either side all the time. Without any, ln 15.0 of wealth (see share) takes 23
    # losses at the highest bet, in one pair of five: 115 pairs.
    waited = []
    for run in range(20):
        random = np.random.default_rng((13, run))
        good = random.choice([-1.0, 0.0, 1.0], p=[noise, 1.0 - 2.0 * noise, noise], size=20_000)
        bad = random.choice([-1.0, 0.0, 1.0], p=[noise, 0.8 - 2.0 * noise, 0.2 + noise], size=500)
        found = alarm(np.concatenate([good, bad]))
        assert found is not None
        assert found.mean >= DROP
        waited.append(found.upto - 20_000)
    assert min(waited) >= 23
    assert float(np.median(waited)) <= 300


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_whole_life_and_all_fresh_starts_together_alarm_wrongly_in_at_most_alpha_of_the_runs(name: str) -> None:
    values, shares = DISTRIBUTIONS[name]
    mean = float(np.dot(values, shares))
    crossed = 0
    for run in range(RUNS):
        observed = np.random.default_rng((14, run)).choice(values, size=12 * INTERVAL, p=shares)
        in_all = Wealth([mean], dropped(DROP)).add(observed)[:, 0].max() >= log(2.0 / ALPHA)
        crossed += in_all or alarm(observed, null=mean, alpha=ALPHA / 2.0, least=-1.0) is not None
    assert crossed / RUNS <= MOST_CROSSED
