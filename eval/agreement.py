"""How far two scorings of the same items agree in order: Spearman's and Kendall's coefficients, ties included."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """The correlation of the ranks, -1 to 1; equal values share the mean of their ranks (Spearman 1904).

    Raises ValueError for fewer than two items, for unequal lengths, and where all values of a side are equal: then
    there is no order to agree with.
    """
    mine, theirs = _checked(one, other)
    return float(np.corrcoef(_ranks(mine), _ranks(theirs))[0, 1])


def kendall(one: Sequence[float], other: Sequence[float]) -> float:
    """Pairs in the same order less pairs in the other, over the pairs that are tied on neither side: tau-b, -1 to 1
    (Kendall 1945). Errors as `spearman`.
    """
    mine, theirs = _checked(one, other)
    above = np.triu_indices(len(mine), 1)
    signs = [np.sign(values[:, None] - values)[above] for values in (mine, theirs)]
    return float(signs[0] @ signs[1] / np.sqrt((signs[0] @ signs[0]) * (signs[1] @ signs[1])))


def _checked(one: Sequence[float], other: Sequence[float]) -> tuple[Floats, Floats]:
    mine, theirs = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if mine.shape != theirs.shape or mine.ndim != 1 or mine.size < 2 or np.ptp(mine) == 0 or np.ptp(theirs) == 0:
        raise ValueError(
            f"{mine.shape} and {theirs.shape} values have no orders to compare: two lists of one length are wanted, "
            "each with two different values at least."
        )
    return mine, theirs


def _ranks(values: Floats) -> Floats:
    """Ranks from 0, tied values sharing their mean."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    first = np.cumsum(counts) - counts
    mean: Floats = (first + (counts - 1) / 2)[places]
    return mean
