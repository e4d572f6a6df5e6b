"""Bounds of a mean of bounded values: a bootstrap, never narrower than an exact bound allows.

The bootstrap describes what was seen. A loss that one question in fifty suffers is not seen in twenty questions at
all, so every bound is also held to one that knows the range values could have had. docs/adr/0023 says why these two.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NORMAL = NormalDist()
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Sample:
    """Values with their counts, ascending by value, so that the order of questions never enters a result.

    `low` and `high` are what a value could have been at all: -1 and 1 for a difference, 0 and 1 for a metric.
    """

    values: Floats  # [n_distinct]
    counts: Floats  # [n_distinct]
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float] | Floats, low: float, high: float) -> "Sample":
        """The sample of these values; differences of floats that are equal on paper count as equal."""
        rounded = np.round(np.asarray(values, dtype=np.float64), 12)
        distinct, counts = np.unique(rounded, return_counts=True)
        return cls(distinct.astype(np.float64), counts.astype(np.float64), low, high)

    @property
    def n(self) -> int:
        """How many values."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(self.counts @ self.values / self.n)

    @property
    def sd(self) -> float:
        """Their standard deviation, with n - 1; 0 for a single value."""
        squares = float(self.counts @ (self.values - self.mean) ** 2)
        return sqrt(squares / (self.n - 1)) if self.n > 1 else 0.0

    def mirrored(self) -> "Sample":
        """The sample with every sign turned: its lower bound is this one's upper bound."""
        return Sample(-self.values[::-1], self.counts[::-1], -self.high, -self.low)


def interval(sample: Sample, alpha: float, seed: int) -> tuple[float, float]:
    """The two bounds that the true mean is beyond with a chance of at most `alpha` each; the mean seen is between."""
    mirrored, means = sample.mirrored(), resampled(sample, seed)
    low = min(exact_lower(sample, alpha), bca_quantile(sample, means, alpha), sample.mean)
    high = max(-exact_lower(mirrored, alpha), bca_quantile(sample, means, 1 - alpha), sample.mean)
    return low, high


# ---------------------------------------------------------------------------------------------- bootstrap


def resampled(sample: Sample, seed: int) -> Floats:
    """Means of RESAMPLES resamples, ascending. Drawing counts of distinct values is the same and needs less memory."""
    rng, shares = np.random.default_rng(seed), sample.counts / sample.n
    tenths = [rng.multinomial(sample.n, shares, size=RESAMPLES // 10) @ sample.values for _ in range(10)]
    return np.sort(np.concatenate(tenths) / sample.n)  # [n_resamples]


def bca_quantile(sample: Sample, means: Floats, share: float) -> float:
    """The quantile of resampled means, corrected for bias and skew; the mean itself where nothing varies.

    Source: Efron, JASA 1987.
    """
    mean = sample.mean
    deviations = sample.values - mean
    squares = float(sample.counts @ deviations**2)
    if squares == 0:
        return mean
    below = (np.searchsorted(means, mean - 1e-12) + np.searchsorted(means, mean + 1e-12)) / 2
    bias = NORMAL.inv_cdf(min(max(float(below), 0.5), RESAMPLES - 0.5) / RESAMPLES)
    acceleration = float(sample.counts @ deviations**3) / (6 * squares**1.5)
    z = bias + NORMAL.inv_cdf(share)
    return float(np.quantile(means, NORMAL.cdf(bias + z / (1 - acceleration * z))))


# ---------------------------------------------------------------------------------------------- exact


def exact_lower(sample: Sample, alpha: float) -> float:
    """The lower bound of Gaffke: the `alpha` quantile of the mean under random weights, with one value more at `low`.

    The weights are uniform on the simplex, so with losses of one size this *is* the bound of Clopper and Pearson, and
    with n equal values the rule of three, `low` having a share of 1 - alpha ** (1 / n). Source: Gaffke, Three test
    statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable, 2005; Learned-Miller and
    Thomas, 2019. Proved for n = 1 and for two distinct values, conjectured for all others; see docs/adr/0023.
    """
    points = np.concatenate([[sample.low], sample.values])
    counts = np.concatenate([[1.0], sample.counts])
    if points[-1] <= points[0]:
        return sample.low
    wanted = NORMAL.inv_cdf(alpha)

    def gap(t: float) -> float:
        """How far, in normal quantiles, the chance of a mean below `t` is from alpha: rises with t, almost straight."""
        return NORMAL.inv_cdf(min(max(weighted_mean_below(points, counts, t), 1e-300), 1 - 1e-16)) - wanted

    centre = float(counts @ points / counts.sum())
    floor, ceiling = float(points[0]), float(points[-1])
    spread = sqrt(float(counts @ (points - centre) ** 2)) / counts.sum()
    return _root(gap, floor, ceiling, max(centre + wanted * spread, (floor * 9 + centre) / 10))


def weighted_mean_below(points: Floats, counts: Floats, t: float) -> float:
    """The chance that a mean of `points` under uniform random weights, one weight per count, is at most `t`.

    Normalised exponential variables are such weights, so this is the chance that a sum of exponentials, weighted with
    the distances from t, is not positive.
    """
    a = points - t
    if a[0] >= 0 or a[-1] <= 0:
        return float(a[-1] <= 0)
    saddle = _saddle(a, counts)
    if saddle > 0:  # t lies above the middle: the chance of the other side, seen in a mirror
        return 1 - _not_positive(-a[::-1], counts[::-1], -saddle)
    return _not_positive(a, counts, saddle)


def _not_positive(a: Floats, counts: Floats, saddle: float) -> float:
    """The chance that exponentials weighted with `a`, each as often as it counts, sum to 0 at most; `saddle` <= 0.

    An inverse Laplace integral, taken up the line through its saddle point, where nothing cancels. The variable is
    sinh(v): dense where the integrand is large, far-reaching where few values make it fade slowly.
    """
    # The line must not touch the pole at 0, into which the saddle point runs when half the chance is on each side.
    s = min(saddle, -0.05 / sqrt(float(counts @ a**2)))
    scale = 1 / sqrt(float(counts @ (a / (1 - s * a)) ** 2))
    peak = -float(counts @ np.log1p(-s * a))
    step = _reach(a, counts, s, scale) / NODES
    v = (np.arange(NODES) + 0.5) * step
    line = s + 1j * scale * np.sinh(v)  # [n_nodes]
    exponent = -(np.log(1 - line[:, None] * a[None, :]) @ counts) - peak
    integrand = np.exp(exponent) / -line * scale * np.cosh(v)
    return float(np.exp(peak) * integrand.real.sum() * step / np.pi)


NODES = 256  # more change the level of a bound by less than 1e-9


def _saddle(a: Floats, counts: Floats) -> float:
    """Where the exponent is least, between the poles 1 / a on both sides of 0: Newton, kept inside by halving."""
    low, high = 1 / a[0], 1 / a[-1]
    s = 0.0
    for _ in range(60):
        terms = a / (1 - s * a)
        slope, curve = float(counts @ terms), float(counts @ terms**2)
        low, high = (s, high) if slope < 0 else (low, s)
        nxt = s - slope / curve
        if not low < nxt < high:
            nxt = (low + high) / 2
        if abs(nxt - s) <= 1e-12 * abs(nxt):
            return nxt
        s = nxt
    return s


def _reach(a: Floats, counts: Floats, s0: float, scale: float) -> float:
    """How far out, in v, the integrand still counts: beyond it is smaller than 1e-14 of its peak."""
    squares = (a / (1 - s0 * a)) ** 2
    v = 2.0
    while v < 60 and float(counts @ np.log1p(squares * (scale * np.sinh(v)) ** 2)) / 2 + v < 32:
        v += 0.5
    return v


def _root(f: Callable[[float], float], low: float, high: float, start: float) -> float:
    """The zero of a rising function in (low, high), by secants kept inside their bracket."""
    x, last_y = start, 0.0
    last_x: float | None = None
    for _ in range(60):
        y = f(x)
        low, high = (x, high) if y < 0 else (low, x)
        if abs(y) < 1e-6 or high - low < 1e-12:
            return x
        slope = (y - last_y) / (x - last_x) if last_x is not None and x != last_x else None
        last_x, last_y = x, y
        nxt = x - y / slope if slope else (low + high) / 2
        x = nxt if low < nxt < high else (low + high) / 2
    return low
