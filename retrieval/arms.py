"""What a first-stage arm is asked and what it gives back.

Rows number the chunks of one index version from 0, in the order of their ids: sorting by row *is* sorting by chunk
id, so every tie rule in this package is "lower row first".
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]


@dataclass(frozen=True, eq=False, slots=False)
class Visible:
    """The rows one reader may see. Hashed by identity: the index makes one per scope, arms may cache by it."""

    mask: NDArray[np.bool_]  # [n_chunks]

    @cached_property
    def rows(self) -> Rows:
        """The visible rows, ascending."""
        return np.flatnonzero(self.mask)

    @cached_property
    def everything(self) -> bool:
        """True when nothing is hidden from this reader."""
        return bool(self.mask.all())


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows with their scores, best first, ties by row. `rows` and `scores` have equal length, at most the n asked."""

    rows: Rows
    scores: Scores


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """What BM25 knows of the reader's whole library: its chunks, their tokens, and how many chunks hold each token.

    Only whole numbers, so those of several shards add up to exactly those of one index over all of them.
    """

    chunks: int
    tokens: int
    holding: Mapping[str, int]  # token -> visible chunks that hold it; tokens that none holds may be left out

    def __add__(self, other: "WordStatistics") -> "WordStatistics":
        holding = Counter(self.holding)
        holding.update(other.holding)
        return WordStatistics(self.chunks + other.chunks, self.tokens + other.tokens, dict(holding))


class LexicalArm(Protocol):
    """Finds chunks by words."""

    name: str

    def statistics(self, text: str, visible: Visible) -> WordStatistics:
        """What this index knows about the tokens of `text` in the visible chunks; that of several indexes adds up."""
        ...

    def search(self, text: str, n: int, visible: Visible, statistics: WordStatistics | None = None) -> Ranking:
        """Visible chunks that share a token with `text`, scores > 0. Hidden chunks change no score.

        `statistics` are those of the reader's whole library, for the same `text`; None: this index is all of it.
        """
        ...

    def score(self, text: str, rows: Rows, visible: Visible, statistics: WordStatistics | None = None) -> Scores:
        """The scores [n_rows] `search` gives to these visible rows, 0 for those that share no token with `text`."""
        ...


class DenseArm(Protocol):
    """Finds chunks by vectors."""

    name: str

    def search(self, vector: Any, n: int, visible: Visible) -> Ranking:  # numpy float32 [dimensions], unit length
        """The visible chunks of highest cosine: min(n, visible) of them, never a padded row."""
        ...

    def scores(self, vector: Any, rows: Rows | None) -> Scores:  # numpy float32 [dimensions], unit length
        """float32 [len(rows)]: the cosine of each of `rows`, in their order; None means every row."""
        ...


def best(rows: Rows, scores: Scores, n: int) -> Ranking:
    """The `n` best of scored rows, by score and then by row; exact also where the cut falls into a tie.

    A partial selection first, because sorting 100,000 scores to keep 100 costs more than the search itself.
    """
    if n <= 0 or rows.size == 0:
        return Ranking(np.empty(0, np.int64), np.empty(0, np.float32))
    if n < rows.size:
        bar = nth_largest(scores, n)
        keep = np.flatnonzero(scores > bar)
        tied = np.flatnonzero(scores == bar)
        first = tied[np.argsort(rows[tied], kind="stable")[: n - keep.size]]  # stable: quick for rows in order
        keep = np.concatenate([keep, first])
        rows, scores = rows[keep], scores[keep]
    order = np.lexsort((rows, -scores))
    return Ranking(rows[order].astype(np.int64), scores[order].astype(np.float32))


def best_above_zero(scores: NDArray[np.float64], n: int, promising: NDArray[np.integer[Any]] | None = None) -> Ranking:
    """The `n` best of the rows with a score above 0, of the scores [n_rows] of all; ranked as `best` does in float32.

    Most rows are not even looked at one by one: what n others exceed is not among the n best. `promising` rows, any n
    or more, are a guess at which those others are; it decides how fast this is and nothing else.
    """
    if promising is not None and 0 < n <= promising.size < scores.size // 16:
        bar = np.sort(scores[promising])[-n]
    else:
        bar = _exceeded(scores, n)
    if bar is None or bar <= 0:
        rows = np.flatnonzero(scores > 0)  # four times faster than of the floats
    else:
        # Whatever rounds to the same float32 is a tie, and ties are for `best` to break.
        rows = np.flatnonzero(scores >= np.float64(np.nextafter(np.float32(bar), np.float32(0))))
    return best(rows, scores[rows].astype(np.float32), n)


_GROUP = 128  # scores


def nth_largest(scores: NDArray[Any], n: int) -> Any:  # a number of the kind of the scores
    """The n-th largest of at least n scores.

    By sorting, never np.partition: where most scores are equal, its vectorised selection takes 1000 times longer.
    """
    bar = _exceeded(scores, n)
    few = scores if bar is None else scores[scores >= bar]
    return np.sort(few)[-n]


def _exceeded(scores: NDArray[Any], n: int) -> Any:  # a number of the kind of the scores
    """A bar that at least n scores reach: the n-th of the largest of each group. None with fewer groups than n."""
    n_groups = scores.size // _GROUP
    if not 0 < n <= n_groups:
        return None
    # A group is every n_groups-th score: neighbours belong to different groups, so that one instruction compares many.
    largest = scores[: n_groups * _GROUP].reshape(_GROUP, n_groups).max(axis=0)
    return np.sort(largest)[-n]


def merge_variants(rankings: Sequence[Ranking], n: int) -> Ranking:
    """One ranking from those of a query and its variants: each row keeps its best score."""
    if len(rankings) == 1:
        return rankings[0]
    rows = np.concatenate([r.rows for r in rankings])
    scores = np.concatenate([r.scores for r in rankings])
    unique, inverse = np.unique(rows, return_inverse=True)
    top = np.full(unique.size, -np.inf, np.float32)
    np.maximum.at(top, inverse, scores)
    return best(unique, top, n)
