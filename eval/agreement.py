"""How far two scorings of the same items agree: in order by Spearman's and Kendall's coefficients, ties included, and
label by label by Cohen's kappa.
"""

from collections import Counter
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


def kappa(one: Sequence[str], other: Sequence[str]) -> float:
    """Agreement beyond what the two would reach by luck with as many of each label: 1 is whole, 0 is luck, below is
    worse than luck (Cohen 1960).

    A side that always gives the same label has 0, however often it agrees. Raises ValueError for unequal lengths, for
    no item, and where both sides give one and the same label throughout: then luck alone agrees wholly.
    """
    n, by_luck = len(one), luck(one, other)
    if by_luck == 1:
        raise ValueError(f"All {n} items have one label on both sides: kappa is not defined, two labels are wanted.")
    agreed = sum(a == b for a, b in zip(one, other, strict=True)) / n
    return (agreed - by_luck) / (1 - by_luck)


def luck(one: Sequence[str], other: Sequence[str]) -> float:
    """The share of items on which two who give as many of each label, and do not look, agree. Errors as `kappa`."""
    if len(one) != len(other) or not one:
        raise ValueError(f"{len(one)} and {len(other)} labels: as many of both are wanted, and at least one.")
    mine, theirs = Counter(one), Counter(other)
    return sum(mine[label] * theirs[label] for label in mine) / len(one) ** 2


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
