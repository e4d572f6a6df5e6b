"""Bounds on a mean that hold at every moment at once, so that looking after every request is safe.

A one-sided null is bet against with imagined money: no rule of betting is expected to win while the null holds, so
(Ville's inequality) the wealth ever reaches 1 / alpha with probability alpha at most. Source: Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting", JRSS-B 86 (2024). What is bet on is eval/canary.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Imagined: TypeAlias = tuple[float, float, float]  # weights of observations -1, 0, +1 that the bets begin with

# An estimate must not bet everything: one observation at the far end would leave nothing to win back with.
MOST = 0.95  # of the bet that could lose all
ROWS = 512  # observations at a time: a block of [ROWS, nulls] stays in the cache

INTERVAL = 250  # observations from one fresh start to the next
ALIVE = 3  # fresh starts that are bet on beside each other: each for ALIVE * INTERVAL observations


class Wealth:
    """What betting against "the mean is at most `null`" has made of 1, for several nulls beside each other.

    Observations are in [-1, 1]. The null speaks of means given the past (every one of them at most `null`), so no
    independence is needed under it. The bet is Kelly's for the distribution seen so far, taken as three points (the
    typical gain, nothing, the typical loss), which is exact when there are three; nothing is bet while the data look
    as the null says. `imagined` observations stand before the first, so that the first bets are sensible; they earn
    nothing themselves. Memory and work per observation do not grow.
    """

    def __init__(self, nulls: Sequence[float] | Floats, imagined: Imagined) -> None:
        self.nulls: Floats = np.asarray(nulls, dtype=np.float64)  # [n_nulls], each in (-1, 1)
        self.now: Floats = np.zeros(len(self.nulls))  # log wealth
        self.best: Floats = np.zeros(len(self.nulls))  # the highest it ever was
        weights = np.asarray(imagined, dtype=np.float64)[:, None]
        gain, loss = _parts(np.array([-1.0, 0.0, 1.0]), self.nulls)  # [3, n_nulls]
        # Sums of gain, loss, gain^2, loss^2 over everything before the next observation.
        self._sums: Floats = np.stack([(weights * part).sum(axis=0) for part in (gain, loss, gain**2, loss**2)])
        self._most: Floats = MOST / (1.0 + self.nulls)  # the lowest observation, -1, loses 1 + null

    def add(self, observed: Floats) -> Floats:
        """Log wealth after each of `observed`, [n, n_nulls]. Adding in pieces gives the same numbers."""
        if not len(observed):
            return np.empty((0, len(self.nulls)))
        return np.concatenate([self._add(observed[at : at + ROWS]) for at in range(0, len(observed), ROWS)])

    def _add(self, observed: Floats) -> Floats:
        gain, loss = _parts(observed, self.nulls)
        gains, losses, gains2, losses2 = (
            np.cumsum(np.concatenate([before[None], part]), axis=0)
            for before, part in zip(self._sums, (gain, loss, gain**2, loss**2), strict=True)
        )  # each [n + 1, n_nulls]; row i is what is known before observation i
        self._sums = np.stack([gains[-1], losses[-1], gains2[-1], losses2[-1]])
        # Sizes a (gain) and b (loss) with shares p and q: Kelly bets (pa - qb) / ((p + q) ab); the count cancels.
        ratio = gains[:-1] / losses[:-1]
        kelly = (gains[:-1] - losses[:-1]) / (losses2[:-1] * ratio + gains2[:-1] / ratio)
        won = np.log1p(np.clip(kelly, 0.0, self._most) * (gain - loss))
        path = np.cumsum(np.concatenate([self.now[None], won]), axis=0)[1:]
        self.now, self.best = path[-1], np.maximum(self.best, path.max(axis=0))
        return path


class Difference:
    """A sequence of differences in [-1, 1], canary less stable, bounded from both sides at every moment at once.

    The bets are sized for telling "as before" from a drop of `drop`, and stay valid for every other. `low` holds with
    probability 1 - `alpha_low`, `high` with 1 - `alpha_high`, at all times together. `high` only ever sinks, so that
    what is shown between two looks is not missed; `low` is of now, so that what was shown can be taken back when
    the later requests say otherwise.
    """

    def __init__(self, drop: float, alpha_low: float, alpha_high: float) -> None:
        self.n = 0
        self._sum = 0.0
        self._drop = drop
        self._enough_low, self._enough_high = log(1.0 / alpha_low), log(1.0 / alpha_high)
        grid = nulls(drop)
        self._above = Wealth(grid, unchanged(drop))  # bets that the mean is above each null
        self._below = Wealth(-grid[::-1], dropped(drop))  # bets that it is below: mirrored

    def add(self, differences: Floats) -> None:
        """Remember differences, oldest first."""
        self.n += len(differences)
        self._sum += float(differences.sum())
        self._above.add(differences)
        self._below.add(-differences)

    @property
    def mean(self) -> float:
        """The observed mean; 0 when there is none."""
        return self._sum / self.n if self.n else 0.0

    @property
    def low(self) -> float:
        """The mean is above this: the last null, from below, of those rejected without a gap; -1 when none is."""
        return _reached(self._above.nulls, self._above.now >= self._enough_low)

    @property
    def high(self) -> float:
        """The mean is below this; 1 when nothing is known."""
        return -_reached(self._below.nulls, self._below.best >= self._enough_high)

    @property
    def needed(self) -> int | None:
        """About how many differences in all exclude the drop if they go on as so far; None when they lead elsewhere."""
        made = float(self._above.now[np.searchsorted(self._above.nulls, -self._drop)])
        return round(self.n * self._enough_low / made) if made > 0.0 else None


@dataclass(frozen=True, slots=True)
class Alarm:
    """What a fresh start had seen when it alarmed: the mean of the last `n` of the first `upto` observations."""

    mean: float
    n: int
    upto: int


class Restarts:
    """Bets against "the mean is at most `null`" begun afresh every INTERVAL observations: a good past is no shelter.

    Source: Shin, Ramdas and Rinaldo, "E-detectors", NEJSDS 2 (2024). False alarms for ever are at most `alpha`: the
    j-th start has 1 at a time fixed before, so (Ville) it ever reaches 1 / (alpha w_j) with probability alpha w_j at
    most, and w_j = 6 / (pi^2 j^2) sums to 1. To end all but the last ALIVE takes possible alarms away, and adds none.
    An alarm also needs an observed mean since its start of at least `least`. The first alarm stays.
    """

    def __init__(self, null: float, imagined: Imagined, alpha: float, least: float) -> None:
        self.alarm: Alarm | None = None
        self._null, self._imagined, self._alpha, self._least = null, imagined, alpha, least
        self._n = 0
        self._alive: list[_Start] = []

    def add(self, observed: Floats) -> None:
        """Remember observations, oldest first. Adding in pieces gives the same alarm."""
        if self.alarm is not None:
            return
        before, end = self._n, self._n + len(observed)
        numbers = range(max(1, -(-before // INTERVAL)), -(-end // INTERVAL))  # those that start in [before, end)
        alive = self._alive + [_Start(j, self._null, self._imagined, share(j) * self._alpha) for j in numbers]
        alarms = []
        for start in alive:
            part = observed[max(start.after - before, 0) : max(start.until - before, 0)]
            if (alarm := start.add(part, self._least)) is not None:
                alarms.append(alarm)
        # The earliest; of two at the same moment the one that knows least of the time before.
        self.alarm = min(alarms, key=lambda alarm: (alarm.upto, alarm.n), default=None)
        self._alive, self._n = [start for start in alive if start.until > end], end


class _Start:
    """The `number`-th of Restarts."""

    def __init__(self, number: int, null: float, imagined: Imagined, alpha: float) -> None:
        self.after = number * INTERVAL
        self.until = self.after + ALIVE * INTERVAL
        self._wealth, self._enough = Wealth([null], imagined), log(1.0 / alpha)
        self._n, self._sum = 0, 0.0

    def add(self, observed: Floats, least: float) -> Alarm | None:
        """The first moment within `observed` at which there was wealth enough, ever, and the mean is large enough."""
        if not len(observed):
            return None
        best = self._wealth.best[0]
        rich = np.maximum.accumulate(np.maximum(self._wealth.add(observed)[:, 0], best)) >= self._enough
        sums = np.cumsum(np.concatenate([[self._sum], observed]))[1:]
        counts = np.arange(self._n + 1, self._n + len(observed) + 1)
        self._n, self._sum = int(counts[-1]), float(sums[-1])
        alarmed = rich & (sums >= least * counts)
        if not alarmed.any():
            return None
        n = int(counts[at := int(np.argmax(alarmed))])
        return Alarm(float(sums[at]) / n, n, self.after + n)


def share(number: int) -> float:
    """What the `number`-th fresh start, from 1, gets of alpha: the shares of all that will ever be sum to 1."""
    return 6.0 / (pi * number) ** 2


def unchanged(drop: float) -> Imagined:
    """What is imagined when a drop of `drop` is to be excluded: 2 / drop requests, one gained and one lost."""
    return 1.0, max(2.0 / drop - 2.0, 0.0), 1.0


def dropped(drop: float) -> Imagined:
    """What is imagined when a drop of `drop` is to be shown: the same, with the drop in it. Losses count as +1."""
    return 1.0, max(2.0 / drop - 4.0, 0.0), 3.0


def nulls(drop: float) -> Floats:
    """The means that are tested, rising: -drop and 0 exactly, fine steps around them, coarse ones to -1 and 1."""
    near = [round(drop * step / 5.0, 9) for step in range(-15, 16)]
    far = [step / 8.0 for step in range(-7, 8)]
    return np.array(sorted({value for value in (*near, *far, -drop) if abs(value) < 1.0}))


def _parts(observed: Floats, nulls: Floats) -> tuple[Floats, Floats]:
    """How far each observation is above each null, and below it; both [n, n_nulls] and not negative."""
    above = observed[:, None] - nulls
    gain = np.maximum(above, 0.0)
    return gain, gain - above


def _reached(nulls: Floats, rejected: NDArray[np.bool_]) -> float:
    """The last null of those rejected from the first on without a gap; -1 when the first is not.

    A gap stops it: were the largest rejected null taken, a mean below could be lost by any of the nulls above it.
    """
    without_gap = len(rejected) if rejected.all() else int(np.argmin(rejected))
    return float(nulls[without_gap - 1]) if without_gap else -1.0
