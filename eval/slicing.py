"""Is any part of the question set worse? Many parts are looked at, and the chance of one false alarm is held for all.

A slice is too small to be shown as good as before, so it is only watched. Source of the correction: Westfall and
Young, Resampling-Based Multiple Testing, 1993 (single-step minP over a shared resampling).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

FLIPS = 4000
LEAST_PAIRS = 20  # fewer say nothing that the reader should be woken for


@dataclass(frozen=True, slots=True)
class Watched:
    """Paired differences of one metric within one slice, by question id, and the drop that would matter."""

    metric: str
    slice: str
    differences: Mapping[str, float]
    max_drop: float

    @property
    def label(self) -> str:
        """The slice as a verdict calls it."""
        return f"{self.metric} [{self.slice}]"

    @property
    def drop(self) -> float:
        """How far the mean fell; negative when it rose."""
        return -fsum(self.differences.values()) / len(self.differences)


def watched(
    metric: str, differences: Mapping[str, float], slices: Mapping[str, Mapping[str, str]], max_drop: float
) -> tuple[Watched, ...]:
    """The slices of one metric that can be watched: at least LEAST_PAIRS pairs, and not simply every question."""
    parts: dict[str, dict[str, float]] = {}
    for question, difference in differences.items():
        for dimension, value in slices.get(question, {}).items():
            parts.setdefault(f"{dimension}={value}", {})[question] = difference
    return tuple(
        Watched(metric, name, part, max_drop)
        for name, part in sorted(parts.items())
        if LEAST_PAIRS <= len(part) < len(differences)
    )


def chances(tests: Sequence[Watched], seed: int) -> tuple[float, ...]:
    """Per test, how likely *any* of them would look this much worse if nothing had changed; small means worse.

    If nothing changed, which version a question's two values came from is a coin toss, so each sign of a difference
    is as likely as the other. All differences of one question are flipped together, in every metric and slice: they
    are not independent, and pretending so would cost power. Differences are scaled by their root sum of squares.
    """
    if not tests:
        return ()
    ids = sorted({question for test in tests for question, d in test.differences.items() if d})
    if not ids:
        return (1.0,) * len(tests)
    place = {question: row for row, question in enumerate(ids)}
    scaled = np.zeros((len(ids), len(tests)))  # [n_questions, n_tests]
    for column, test in enumerate(tests):
        for question, d in test.differences.items():
            if d:
                scaled[place[question], column] = d
    norms = np.sqrt((scaled**2).sum(axis=0))
    scaled /= np.where(norms > 0, norms, 1.0)
    seen = scaled.sum(axis=0)  # [n_tests], the more negative the worse
    signs = np.random.default_rng(seed).integers(0, 2, size=(FLIPS, len(ids)), dtype=np.int8)
    lowest = ((2.0 * signs - 1.0) @ scaled).min(axis=1)  # [n_flips]
    # What was seen is one of the equally likely outcomes, hence the + 1; sums that are equal on paper count as equal.
    beaten = np.searchsorted(np.sort(lowest), seen + 1e-9, side="right")
    return tuple(float((1 + count) / (FLIPS + 1)) for count in beaten)
