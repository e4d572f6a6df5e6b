"""What a first-stage arm is asked and what it gives back.

Rows number the chunks of one index version from 0, in the order of their ids: sorting by row *is* sorting by chunk
id, so every tie rule in this package is "lower row first".
"""

from collections.abc import Sequence
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


class LexicalArm(Protocol):
    """Finds chunks by words."""

    name: str

    def search(self, text: str, n: int, visible: Visible) -> Ranking:
        """Visible chunks that share a token with `text`, scores > 0. Hidden chunks change no score."""
        ...

    def score(self, text: str, rows: Rows, visible: Visible) -> Scores:
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
        bar = np.partition(scores, rows.size - n)[rows.size - n]
        keep = scores >= bar  # everything tied with the last place stays in until ties are broken by row
        rows, scores = rows[keep], scores[keep]
    order = np.lexsort((rows, -scores))[:n]
    return Ranking(rows[order].astype(np.int64), scores[order].astype(np.float32))


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
