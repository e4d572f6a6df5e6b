"""What a score is worth: curves from scores to chances, and from one encoder's bar to another's.

A curve is data: it was fitted elsewhere (eval/calibrating.py) and is only read here. A score that comes from a list
means nothing outside of it, so what is read there is a hit's lead over the best other one.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import isfinite

from domain.types import Hit


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve that never falls: straight between its points, level beyond its ends. Scores rise strictly.

    Raises ValueError for points that are none.
    """

    scores: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        scores, values = self.scores, self.values
        if not scores or len(scores) != len(values) or not all(map(isfinite, (*scores, *values))):
            raise ValueError(f"a curve needs as many finite values as scores, not {len(values)} for {len(scores)}")
        if any(b <= a for a, b in pairwise(scores)):
            raise ValueError("the scores of a curve must rise, each once")
        if any(b < a for a, b in pairwise(values)):
            raise ValueError("the values of a curve must not fall")

    def at(self, score: float) -> float:
        """The curve's value at `score`."""
        right = bisect_right(self.scores, score)
        if right == 0:
            return self.values[0]
        if right == len(self.scores):
            return self.values[-1]
        (x0, x1), (y0, y1) = self.scores[right - 1 : right + 1], self.values[right - 1 : right + 1]
        return y0 + (y1 - y0) * (score - x0) / (x1 - x0)


class Signal(StrEnum):
    """What of a hit is read: its score, or, of scores that are made for one list, its lead in the list."""

    SCORE = "score"
    LEAD = "lead"


@dataclass(frozen=True, slots=True)
class Order:
    """What the hits of one method are worth: `chance` leads from the `signal` of a hit to the chance that it holds
    evidence, whatever its place.
    """

    method: str
    signal: Signal
    chance: Curve

    def of(self, hits: Sequence[Hit], place: int) -> float:
        """The chance of the hit at `place`."""
        return self.chance.at(hits[place].score if self.signal is Signal.SCORE else lead(hits, place))


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the scores of one encoder, and of the orders made over it, are worth. All curves are of one question set.

    `relevance` leads from a cosine to the chance that a passage of a first round holds evidence; for one that stands
    first it is too low, because a cosine does not say what else was there. `bar` leads from a cosine of the bundled
    encoder to the one that as many questions stay under here; None where that was not measured.
    """

    embedder: str
    relevance: Curve
    bar: Curve | None = None
    orders: tuple[Order, ...] = ()


def lead(hits: Sequence[Hit], place: int) -> float:
    """How far the score of the hit at `place` is above the best other one of its method; 0 when it is alone."""
    mine = hits[place]
    others = [hit.score for i, hit in enumerate(hits) if i != place and hit.method == mine.method]
    return mine.score - max(others) if others else 0.0


def relevance(hits: Sequence[Hit], calibration: Calibration | None) -> float | None:
    """The chance, 0..1, that the best hit holds evidence on what was asked; None where its order is not calibrated."""
    if calibration is None or not hits:
        return None
    order = next((order for order in calibration.orders if order.method == hits[0].method), None)
    return None if order is None else order.of(hits, 0)
