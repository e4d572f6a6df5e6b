"""The exact dense arm: every visible vector is compared, in numpy. The oracle for every faster arm.

Scores come from `np.einsum`, not from a BLAS product: it adds up each row in the same order whatever rows stand around
it, so equal vectors get equal scores to the last bit and a hidden row cannot change a visible one's score. It is as
fast here: 6.6 ms against 11.6 ms for `vectors @ query` over 100,000 rows of 384 on one thread of an EPYC.

Faster arms only propose rows; what is proposed is scored and cut here, so that every arm gives a row the same score.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from domain.errors import StageFailed
from retrieval.arms import Ranking, Rows, Scores, Visible, best

MARGIN = 16  # rows proposed beyond n in the first try, so that a tie at the cut rarely needs a second one
SLACK = 1e-5  # two ways of adding up the product of unit vectors differ by far less than half of this

Vectors = NDArray[np.float32]  # [n_chunks, dimensions], unit rows; a read-only memory map will do
Vector = NDArray[np.float32]  # [dimensions], unit length


class ExactArm:
    """Cosine over all visible rows."""

    name = "exact"

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    def search(self, vector: Vector, n: int, visible: Visible) -> Ranking:
        """The visible rows of highest cosine: min(n, visible) of them, ties by row."""
        return best(visible.rows, self.scores(vector, None if visible.everything else visible.rows), n)

    def scores(self, vector: Vector, rows: Rows | None) -> Scores:
        """float32 [len(rows)]: the cosine of each of `rows`, in their order; None means every row."""
        return cosines(self.vectors, vector, rows)


def cosines(vectors: Vectors, vector: Vector, rows: Rows | None) -> Scores:
    """float32 [len(rows)]: inner products of unit vectors, each independent of the other rows asked for.

    Raises StageFailed for a query that is no vector.
    """
    vector = finite(vector)
    chosen = vectors if rows is None else vectors[rows]
    products: Scores = np.einsum("ij,j->i", chosen, vector, dtype=np.float32)
    return products


def finite(vector: Vector) -> Vector:
    """`vector`. Raises StageFailed when it holds what is no number: nothing is near it, and the search that failed
    would look like a library without a hit."""
    if not np.isfinite(vector).all():
        raise StageFailed(
            "The encoder made numbers of the question that are not finite: ask in other words or in mode 'lexical', "
            "set embedding.dtype to float32, or take another encoder and build again.",
            "retriever",
        )
    return vector


def proposed(
    vectors: Vectors, vector: Vector, n: int, visible: Visible, propose: Callable[[int], tuple[Rows, Scores]]
) -> Ranking:
    """What ExactArm.search returns, from an index that finds any number of the best visible rows on its own.

    `propose(count)` gives that many rows, best first, with scores that may differ from ours by half of SLACK. It sums
    in its own order and breaks ties in its own way, so it is asked for more rows than needed, doubling until the last
    one lies clearly below the n-th; those are scored again exactly and cut with ties by row.
    """
    seen = int(visible.rows.size)
    fetch = n + MARGIN
    while n > 0 and fetch < seen:
        rows, rough = propose(fetch)
        if rough[n - 1] - rough[-1] > SLACK:
            return best(permitted(rows, visible), cosines(vectors, vector, rows), n)
        fetch *= 2
    rows = visible.rows
    return best(rows, cosines(vectors, vector, None if visible.everything else rows), n)


def permitted(rows: Rows, visible: Visible) -> Rows:
    """`rows`, all of which this reader may see. Raises StageFailed otherwise.

    An index that ignores its filter (plain GPU builds of FAISS do, without an error) must refuse the reader, not show
    what is hidden from him.
    """
    if not visible.mask[rows].all():
        raise StageFailed(
            "The dense index proposed a chunk that is hidden from this reader, so it cannot filter and nothing of its "
            "search is shown: set retrieval.dense to 'exact' and report this as a bug.",
            "retriever",
        )
    return rows
