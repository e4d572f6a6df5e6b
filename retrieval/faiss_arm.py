"""The FAISS dense arm: flat inner product with the reader's rows selected *before* the search.

Runs on the CPU only. Plain GPU builds of FAISS ignore an `IDSelector` without an error, which would show a reader what
is hidden from him, so a GPU index is refused here by not existing. An HNSW graph is not used either: under a selective
filter its recall collapses (.03 at 0.1 % visible), flat stays exact.
"""

from typing import Any

import numpy as np

from domain.errors import ConfigError
from retrieval.arms import Ranking, Rows, Scores, Visible, best
from retrieval.dense import Vector, Vectors, cosines

FEW = 0.1  # below this visible share, gathering the visible rows costs less than skipping the hidden ones
MARGIN = 16  # rows fetched beyond n in the first try, so that a tie at the cut rarely needs a second one
SLACK = 1e-5  # two ways of adding up the product of unit vectors differ by far less than half of this


class FaissArm:
    """As ExactArm, bit for bit: FAISS proposes, the exact products decide.

    FAISS sums in its own order and breaks ties in its own way, so it is asked for more rows than needed, doubling until
    the last one lies clearly below the n-th; those are scored again exactly and cut with ties by row. The vectors are
    read where they are: a memory map is shared between processes and nothing is copied into an index.
    """

    name = "faiss"

    def __init__(self, vectors: Vectors) -> None:
        if vectors.ndim != 2 or vectors.dtype != np.float32 or not vectors.flags.c_contiguous:
            # FAISS reads raw memory: anything else would be nonsense or a crash, not an error.
            raise ConfigError(
                f"The vectors are {vectors.dtype} {vectors.shape}, FAISS wants row-major float32 [chunks, dimensions]: "
                "rebuild the index or set the dense arm to 'exact'."
            )
        self.vectors = vectors

    def search(self, vector: Vector, n: int, visible: Visible) -> Ranking:
        """The visible rows of highest cosine: min(n, visible) of them, ties by row, never a padded row."""
        total, seen = len(self.vectors), int(visible.rows.size)
        fetch = n + MARGIN
        while n > 0 and seen >= FEW * total and fetch < seen:
            rows, rough = self._propose(vector, fetch, visible)
            if rough[n - 1] - rough[-1] > SLACK:
                return best(rows, self.scores(vector, rows), n)
            fetch *= 2
        rows = visible.rows
        return best(rows, self.scores(vector, None if visible.everything else rows), n)

    def scores(self, vector: Vector, rows: Rows | None) -> Scores:
        """float32 [len(rows)]: the cosine of each of `rows`, in their order; None means every row."""
        return cosines(self.vectors, vector, rows)

    def _propose(self, vector: Vector, fetch: int, visible: Visible) -> tuple[Rows, Scores]:
        """`fetch` visible rows by FAISS, best first. The caller makes sure that as many are visible."""
        import faiss

        search: Any = faiss.knn_inner_product  # the C++ one; the stub describes its Python wrapper

        total, dimensions = self.vectors.shape
        if vector.shape != (dimensions,):
            raise ValueError(f"a query of shape {vector.shape} for vectors of {dimensions} dimensions: this is a bug")
        faiss.omp_set_num_threads(1)  # per calling thread; more would fight with torch for the same cores
        query = np.ascontiguousarray(vector, np.float32)
        scores, rows = np.empty(fetch, np.float32), np.empty(fetch, np.int64)
        place = [faiss.swig_ptr(a) for a in (query, self.vectors)]
        found = [faiss.swig_ptr(a) for a in (scores, rows)]
        if visible.everything:
            search(*place, dimensions, 1, total, fetch, *found)
        else:
            bits = np.packbits(visible.mask, bitorder="little")
            selector = faiss.IDSelectorBitmap(total, faiss.swig_ptr(bits))
            search(*place, dimensions, 1, total, fetch, *found, selector)
        return rows, scores
