"""Scores to chances: the fit, how wrong the chances are, and one encoder's bar in the terms of another.

Everything is a pure function of arrays. What is fitted is judged only where it was not fitted: on questions left out,
whole questions at a time, because the passages of one question stand or fall together.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.calibration import Curve

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

BINS, RESAMPLES, FOLDS = 10, 2000, 5
DIGITS = 6  # of a curve as it is written down


@dataclass(frozen=True, slots=True)
class Scored:
    """Passages that were found for questions: `scores` [n], `relevant` [n] 0 or 1, `question` [n] from 0, ascending."""

    scores: Floats
    relevant: Floats
    question: Places

    def at(self, places: Places) -> "Scored":
        """The passages at these places only."""
        return Scored(self.scores[places], self.relevant[places], self.question[places])


@dataclass(frozen=True, slots=True)
class Error:
    """Expected calibration error: how far chances are from what came true, on average, 0..1.

    `low` and `high` bound it with 95 %. `by_chance` is what chances that are exactly right would show on as many
    passages: an error near it is none that could be seen.
    """

    value: float
    low: float
    high: float
    by_chance: float
    passages: int
    questions: int
    bins: int


def isotonic(scores: Floats, relevant: Floats) -> Curve:
    """The rising curve closest to what was relevant (least squares), one point a level, straight lines between.

    No chance is nearer to 0 or 1 than half a passage of all. Levels stand at their mean score, so that the curve rises
    where a staircase would stay and jump. Source: Ayer et al., 1955; Oron and Flournoy, Centered Isotonic Regression,
    2017.
    """
    distinct, where, counts = np.unique(scores, return_inverse=True, return_counts=True)
    hits = np.bincount(where, weights=relevant)
    levels: list[tuple[float, float, float]] = []  # passages, sum of scores, relevant ones
    for score, n, hit in zip(distinct.tolist(), counts.tolist(), hits.tolist(), strict=True):
        level = (float(n), n * score, float(hit))
        while levels and levels[-1][2] * level[0] >= level[2] * levels[-1][0]:
            before = levels.pop()
            level = (before[0] + level[0], before[1] + level[1], before[2] + level[2])
        levels.append(level)
    least = 0.5 / len(scores)
    points = {round(total / n, DIGITS): round(min(max(hit / n, least), 1 - least), DIGITS) for n, total, hit in levels}
    return Curve(tuple(points), tuple(points.values()))


def cross_fitted(scored: Scored, seed: int, fit: Callable[[Floats, Floats], Curve] = isotonic) -> Floats:
    """[n] the chance of each passage by a curve that was fitted without its question."""
    fold_of = np.random.default_rng(seed).permutation(int(scored.question.max()) + 1) % FOLDS
    folds = fold_of[scored.question]
    chances = np.empty(len(scored.scores))
    for fold in range(FOLDS):
        out = folds == fold
        if out.any():
            chances[out] = read(fit(scored.scores[~out], scored.relevant[~out]), scored.scores[out])
    return chances


def read(curve: Curve, scores: Floats) -> Floats:
    """[n] the curve's values at `scores`; the same as `curve.at`, for many."""
    return np.interp(scores, curve.scores, curve.values)


def calibration_error(chances: Floats, scored: Scored, seed: int, bins: int = BINS) -> Error:
    """The expected calibration error over bins of equally many passages, equal chances in one bin.

    The bounds are a bootstrap over questions, reflected: what resampling adds to an error of averages, chance has added
    to the error seen, so it is taken off again. Source: Naeini et al., AAAI 2015; Davison and Hinkley, 1997.
    """
    rng = np.random.default_rng(seed)
    bin_of = _bins(chances, bins)
    found = int(bin_of.max()) + 1
    value = _error(_gaps(chances, scored.relevant, bin_of), len(chances))
    _, question = np.unique(scored.question, return_inverse=True)
    n = int(question.max()) + 1
    gaps = np.zeros((n, found))  # of each question, per bin: chances less what came true
    np.add.at(gaps, (question, bin_of), chances - scored.relevant)
    sizes = np.bincount(question)
    drawn = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES)  # [resamples, questions]
    resampled = np.abs(drawn @ gaps).sum(1) / (drawn @ sizes)
    upper, lower = np.quantile(resampled, (0.975, 0.025))
    luck = [
        _error(_gaps(chances, (rng.random(len(chances)) < chances).astype(np.float64), bin_of), len(chances))
        for _ in range(200)
    ]
    return Error(
        value=value,
        low=max(0.0, min(value, 2 * value - float(upper))),
        high=min(1.0, max(value, 2 * value - float(lower))),
        by_chance=float(np.mean(luck)),
        passages=len(chances),
        questions=n,
        bins=found,
    )


def log_loss(chances: Floats, scored: Scored) -> float:
    """Mean surprise, in nats, at what came true: low for chances that are right and far from the base rate."""
    return float(-np.mean(np.log(np.where(scored.relevant > 0, chances, 1 - chances))))


def share_under(best: Floats, bar: float) -> float:
    """Share of the questions whose best cosine is under `bar`: how often a trigger there fires."""
    return float(np.mean(best < bar))


def same_share(reference: Floats, own: Floats) -> Curve:
    """A bar of the reference encoder to the own one under which equally many of the same questions stay.

    `reference` and `own` are the best cosines of each question under either. Beyond what was seen the curve goes on
    with the ratio of the two spreads. Source: equipercentile equating, Kolen and Brennan, Test Equating, 2014.
    """
    theirs, ours = np.sort(reference), np.sort(own)
    slope = float(ours.std() / theirs.std()) if theirs.std() > 0 else 1.0
    points: dict[float, float] = {}
    for score in np.unique(theirs).tolist():
        points[round(score, DIGITS)] = float(ours[np.flatnonzero(theirs == score)].mean())
    first, last = min(points), max(points)
    if first > -1:
        points[-1.0] = max(-1.0, points[first] - slope * (first + 1))
    if last < 1:
        points[1.0] = min(1.0, points[last] + slope * (1 - last))
    scores = sorted(points)
    values = np.maximum.accumulate([round(min(max(points[score], -1.0), 1.0), DIGITS) for score in scores])
    return Curve(tuple(scores), tuple(values.tolist()))


def left_out_share(reference: Floats, own: Floats, bar: float, seed: int) -> float:
    """The share under `bar` in the own encoder's terms, on questions that were left out when those were fitted."""
    folds = np.random.default_rng(seed).permutation(len(own)) % FOLDS
    under = sum(
        int(np.count_nonzero(own[folds == fold] < same_share(reference[folds != fold], own[folds != fold]).at(bar)))
        for fold in range(FOLDS)
    )
    return under / len(own)


def _bins(chances: Floats, bins: int) -> Places:
    """[n] the bin of each chance, from 0 without gaps; equal chances share one."""
    edges = np.unique(np.quantile(chances, np.linspace(0, 1, bins + 1)[1:-1]))
    _, dense = np.unique(np.searchsorted(edges, chances, side="right"), return_inverse=True)
    return dense.astype(np.int64)


def _gaps(chances: Floats, true: Floats, bin_of: Places) -> Floats:
    """[bins] chances less what came true, summed."""
    return np.bincount(bin_of, chances - true).astype(np.float64)


def _error(gaps: Floats, n: int) -> float:
    return float(np.abs(gaps).sum() / n)
