"""The FAISS dense arm: flat inner product with the reader's rows selected *before* the search.

Runs on the CPU only. Plain GPU builds of FAISS ignore an `IDSelector` without an error, which would show a reader what
is hidden from him, so a FAISS index on the GPU is refused here by not existing; gpu_arm.py masks instead. Faster and
not exact: ivf_arm.py and hnsw_arm.py. Which one a version gets: dense_choice.py.
"""

from typing import Any

import numpy as np

from domain.errors import ConfigError
from retrieval.arms import Ranking, Rows, Scores, Visible, best, nth_largest
from retrieval.dense import SLACK, Vector, Vectors, cosines, finite, proposed

FEW = 0.1  # below this visible share, visiting the visible rows one by one costs less than skipping the hidden ones


class FaissArm:
    """As ExactArm, bit for bit: FAISS proposes, the exact products decide.

    The vectors are read where they are: a memory map is shared between processes and nothing is copied into an index.
    """

    name = "faiss"

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = readable(vectors)

    def search(self, vector: Vector, n: int, visible: Visible) -> Ranking:
        """The visible rows of highest cosine: min(n, visible) of them, ties by row, never a padded row."""
        if visible.rows.size < FEW * len(self.vectors):
            return nearest_of(self.vectors, vector, visible.rows, n)
        return proposed(self.vectors, vector, n, visible, lambda count: self._propose(vector, count, visible))

    def scores(self, vector: Vector, rows: Rows | None) -> Scores:
        """float32 [len(rows)]: the cosine of each of `rows`, in their order; None means every row."""
        return cosines(self.vectors, vector, rows)

    def _propose(self, vector: Vector, fetch: int, visible: Visible) -> tuple[Rows, Scores]:
        """`fetch` visible rows by FAISS, best first. The caller makes sure that as many are visible."""
        import faiss

        search: Any = faiss.knn_inner_product  # the C++ one; the stub describes its Python wrapper

        total, dimensions = self.vectors.shape
        query = fitting(vector, dimensions)
        faiss.omp_set_num_threads(1)  # per calling thread; more would fight with torch for the same cores
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


def nearest_of(vectors: Vectors, vector: Vector, rows: Rows, n: int) -> Ranking:
    """The `n` of `rows` with the highest cosine, as ExactArm would score and cut them, ties by row.

    A rough product first, in place: copying 10,000 rows of 384 to score them takes three times as long.
    """
    import faiss

    if n <= 0 or rows.size <= n:
        return best(rows, cosines(vectors, vector, rows), n)
    dimensions = vectors.shape[1]
    query, rows = fitting(vector, dimensions), np.ascontiguousarray(rows, np.int64)
    rough = np.empty(rows.size, np.float32)
    faiss.omp_set_num_threads(1)
    untyped: Any = faiss  # the stubs do not know all of it
    place = [faiss.swig_ptr(a) for a in (rough, query, vectors, rows)]
    untyped.fvec_inner_products_by_idx(*place, dimensions, 1, rows.size)
    near = rows[rough >= nth_largest(rough, n) - SLACK]  # all that the exact products could place so high
    return best(near, cosines(vectors, vector, near), n)


def readable(vectors: Vectors) -> Vectors:
    """`vectors`, as FAISS reads them. Raises ConfigError for what it would misread: it is given a bare address."""
    if vectors.ndim != 2 or vectors.dtype != np.float32 or not vectors.flags.c_contiguous:
        # FAISS reads raw memory: anything else would be nonsense or a crash, not an error.
        raise ConfigError(
            f"The vectors are {vectors.dtype} {vectors.shape}, FAISS wants row-major float32 [chunks, dimensions]: "
            "rebuild the index or set the dense arm to 'exact'."
        )
    return vectors


def fitting(vector: Vector, dimensions: int) -> Vector:
    """`vector` as FAISS reads it. Raises ValueError for another length, StageFailed for what is no vector.

    FAISS would read past its end, or give back any rows.
    """
    if vector.shape != (dimensions,):
        raise ValueError(f"a query of shape {vector.shape} for vectors of {dimensions} dimensions: this is a bug")
    return np.ascontiguousarray(finite(vector), np.float32)
