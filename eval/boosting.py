"""Boosted trees for a yes or no, in numpy: small, the same for the same input, and nothing but numbers afterwards.

Gradient boosting of the log-odds with Newton steps (Friedman, Annals of Statistics 29, 2001; Chen and Guestrin, KDD
2016, for the leaves). Every tree is full and of equal depth, so that it is three short lists and no objects.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BINS = 32  # cuts that a column may be split at, at quantiles
SHRUNK = 0.07  # share of its Newton step that a leaf takes
RIDGE = 2.0  # added to the curvature of a leaf: few examples move it little
FEWEST = 8.0  # examples in a leaf, by weight


@dataclass(frozen=True, slots=True)
class Grown:
    """A tree row by row: node `i` has children `2i + 1` (value below the bar) and `2i + 2`."""

    asks: tuple[int, ...]
    bars: tuple[float, ...]
    leaves: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Boosted:
    """Log-odds: `start` plus one leaf of every tree."""

    start: float
    trees: tuple[Grown, ...]

    def log_odds(self, rows: Floats) -> Floats:
        """[n] for rows [n, columns]."""
        return self.start + sum((_leaf_values(tree, rows) for tree in self.trees), np.zeros(len(rows)))


def boost(rows: Floats, labels: Floats, weights: Floats, rounds: int, depth: int) -> Boosted:
    """`rounds` trees over rows [n, columns] with labels 0 or 1. Raises ValueError where only one label is there."""
    share = float(np.average(labels, weights=weights))
    if not 0 < share < 1:
        raise ValueError("examples of both kinds are wanted")
    start = float(np.log(share / (1 - share)))
    cuts = [_cuts(column) for column in rows.T]
    bins = np.stack([np.searchsorted(cut, column, side="right") for cut, column in zip(cuts, rows.T, strict=True)])
    odds, trees = np.full(len(rows), start), []
    for _ in range(rounds):
        chances = 1 / (1 + np.exp(-odds))
        tree, moved = _grow(bins, cuts, weights * (labels - chances), weights * chances * (1 - chances), weights, depth)
        trees.append(tree)
        odds += moved
    return Boosted(start, tuple(trees))


def _cuts(column: Floats) -> Floats:
    """The bars a column may be split at: between neighbouring values, at most BINS of them."""
    distinct = np.unique(column)
    between = (distinct[1:] + distinct[:-1]) / 2
    if len(between) <= BINS:
        return between
    return np.unique(np.quantile(column, np.linspace(0, 1, BINS + 2)[1:-1], method="lower")) + 1e-9


def _grow(
    bins: Ints, cuts: list[Floats], slope: Floats, curve: Floats, weights: Floats, depth: int
) -> tuple[Grown, Floats]:
    """One tree, and how far it moves every example."""
    nodes = 2**depth - 1
    asks, bars = np.zeros(nodes, np.int64), np.zeros(nodes)
    place = np.zeros(bins.shape[1], np.int64)  # the node in which an example is
    for node in range(nodes):
        here = np.flatnonzero(place == node)
        column, cut = _best_split(bins[:, here], cuts, slope[here], curve[here], weights[here])
        asks[node] = column
        # Where nothing is gained everything goes left, below a bar that no value reaches.
        bars[node] = 1e9 if cut < 0 else cuts[column][cut]
        left = np.ones(len(here), np.bool_) if cut < 0 else bins[column, here] <= cut
        place[here] = 2 * node + np.where(left, 1, 2)
    leaf = place - nodes
    top = np.bincount(leaf, slope, minlength=nodes + 1)
    below = np.bincount(leaf, curve, minlength=nodes + 1) + RIDGE
    leaves = np.round(SHRUNK * top / below, 5)
    return Grown(tuple(asks.tolist()), tuple(bars.tolist()), tuple(leaves.tolist())), leaves[leaf]


def _best_split(bins: Ints, cuts: list[Floats], slope: Floats, curve: Floats, weights: Floats) -> tuple[int, int]:
    """Column and cut that gain most; the first of equals, and cut -1 where none gains."""
    best, found = 1e-6, (0, -1)
    whole, curved, heavy = slope.sum(), curve.sum(), weights.sum()
    for column, cut in enumerate(cuts):
        if not len(cut):
            continue
        left, bent, weight = (
            np.cumsum(np.bincount(bins[column], values, minlength=len(cut) + 1))[:-1]
            for values in (slope, curve, weights)
        )
        gain = left**2 / (bent + RIDGE) + (whole - left) ** 2 / (curved - bent + RIDGE) - whole**2 / (curved + RIDGE)
        gain = np.where((weight >= FEWEST) & (heavy - weight >= FEWEST), gain, -1.0)
        at = int(np.argmax(gain))
        if gain[at] > best:
            best, found = float(gain[at]), (column, at)
    return found


def _leaf_values(tree: Grown, rows: Floats) -> Floats:
    """[n] the leaf that every row comes to."""
    asks, bars, node = np.array(tree.asks), np.array(tree.bars), np.zeros(len(rows), np.int64)
    for _ in range(int(np.log2(len(tree.leaves)))):
        below = rows[np.arange(len(rows)), asks[node]] < bars[node]
        node = 2 * node + np.where(below, 1, 2)
    return np.array(tree.leaves)[node - len(asks)]
