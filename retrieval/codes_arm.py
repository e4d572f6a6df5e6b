"""The code dense arm: every visible row is compared by one bit per dimension, and what looks nearest is scored exactly.

RaBitQ (Gao and Long, SIGMOD 2024): the sign of each dimension and two numbers a row, against the whole query. A scan
reads 56 bytes a row instead of 1,536, keeps nothing on disk, is made in a second per 100,000 rows, and no filter makes
it lose its way: it compares everything the reader may see. Its cost grows with the rows; hnsw_arm.py's hardly does.
"""

from typing import Any

import numpy as np

from retrieval.arms import Ranking, Rows, Scores, Visible
from retrieval.dense import Vector, Vectors, cosines, permitted
from retrieval.faiss_arm import FEW, fitting, nearest_of, readable

CHOICE = 512  # rows scored exactly, at least; of MiniLM vectors of real passages 256 hold .998 of the ten nearest
PER_ASKED = 8  # and for every hit asked: 500 rows hold .98 of the hundred nearest, 1,000 hold .998
BATCH = 65_536  # rows coded at a time


class CodesArm:
    """Cosine over the rows whose codes look nearest; recall@10 is measured, not promised."""

    name = "codes"

    def __init__(self, vectors: Vectors, choice: int = CHOICE) -> None:
        import faiss

        self.vectors, self.choice = readable(vectors), choice
        total, dimensions = vectors.shape
        faiss.omp_set_num_threads(1)
        self.codes: Any = faiss.IndexRaBitQ(dimensions, faiss.METRIC_INNER_PRODUCT)
        self.codes.train(np.zeros((1, dimensions), np.float32))  # codes are taken around the origin
        for start in range(0, total, BATCH):
            self.codes.add(np.ascontiguousarray(vectors[start : start + BATCH]))

    def search(self, vector: Vector, n: int, visible: Visible) -> Ranking:
        """Visible rows of high cosine: min(n, visible) of them, scored exactly, ties by row."""
        choice, rows = max(self.choice, PER_ASKED * n), visible.rows
        if n > 0 and choice < rows.size >= FEW * len(self.vectors):
            near = permitted(self._looking_nearest(vector, choice, visible), visible)
            rows = near if near.size == choice else rows  # a rough score that is no number is not proposed
        return nearest_of(self.vectors, vector, rows, n)

    def scores(self, vector: Vector, rows: Rows | None) -> Scores:
        """float32 [len(rows)]: the cosine of each of `rows`, in their order; None means every row."""
        return cosines(self.vectors, vector, rows)

    def _looking_nearest(self, vector: Vector, choice: int, visible: Visible) -> Rows:
        """`choice` visible rows, ascending, where FAISS finds as many."""
        import faiss

        query = fitting(vector, self.vectors.shape[1])
        faiss.omp_set_num_threads(1)
        if visible.everything:
            found = self.codes.search(query[None], choice)[1][0]
        else:
            bits = np.packbits(visible.mask, bitorder="little")
            parameters = faiss.RaBitQSearchParameters()
            parameters.sel = selector = faiss.IDSelectorBitmap(visible.mask.size, faiss.swig_ptr(bits))
            found = self.codes.search(query[None], choice, params=parameters)[1][0]
            del selector  # alive until here: FAISS keeps a bare pointer
        rows: Rows = np.sort(found[found >= 0])
        return rows
