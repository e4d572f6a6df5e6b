"""The graph dense arm: FAISS HNSW over one byte per dimension proposes, the exact products decide.

The graph knows nothing of readers: it is asked for as many more rows as are hidden, and what this reader may see is
kept. Where that is too little, or costs more than comparing everything visible, everything visible is compared; a
filter inside the graph finds .2 of what there is at 1 % visible. When a version gets one: dense_choice.py.
"""

from pathlib import Path
from typing import Any

import numpy as np

from domain.errors import StorageError
from retrieval.arms import Ranking, Rows, Scores, Visible
from retrieval.dense import MARGIN, Vector, Vectors, cosines
from retrieval.faiss_arm import fitting, nearest_of, readable

EF_SEARCH = 64  # visible rows that are scored exactly, at least
LINKS = 32  # per row; twice as many on the lowest level, 264 bytes a row in all
CONSTRUCTION = 80  # rows kept in view while a row is linked
SAME_COST = 16  # a row on the walk costs as much as 8 compared in place, and there are WIDER * wanted * total / seen
WIDER = 2  # rows kept in view for each to choose from: .983 of the ten nearest MiniLM passages become .993
TRAINED_ON = 20_000  # rows that the range of the one-byte numbers is read off

Graph = Any  # faiss.IndexHNSWSQ, or what read_index gives back


class HnswArm:
    """Cosine over rows that a walk through the graph comes by; recall@10 is measured, not promised."""

    name = "hnsw"

    def __init__(self, vectors: Vectors, graph: Graph | None = None, ef_search: int = EF_SEARCH) -> None:
        self.vectors = readable(vectors)
        self.graph = linked(vectors) if graph is None else graph
        self.ef_search = ef_search

    def search(self, vector: Vector, n: int, visible: Visible) -> Ranking:
        """Visible rows of high cosine: min(n, visible) of them, scored exactly, ties by row.

        The graph itself is not filtered. Of the nearest rows it comes by, those that are visible are the nearest
        visible ones, as long as there are enough; where there are not, everything visible is compared.
        """
        seen, total = int(visible.rows.size), len(self.vectors)
        wanted = max(self.ef_search, n + MARGIN)  # visible rows to choose from
        rows = visible.rows
        if n > 0 and seen * seen > SAME_COST * wanted * total:
            near = self._nearest(vector, -(-WIDER * wanted * total // seen))
            near = near[visible.mask[near]]
            rows = near if near.size >= wanted else rows
        return nearest_of(self.vectors, vector, rows, n)

    def scores(self, vector: Vector, rows: Rows | None) -> Scores:
        """float32 [len(rows)]: the cosine of each of `rows`, in their order; None means every row."""
        return cosines(self.vectors, vector, rows)

    def _nearest(self, vector: Vector, count: int) -> Rows:
        """At most `count` rows, ascending: those nearest to the query, visible or not, by the graph's rough scores."""
        import faiss

        untyped: Any = faiss  # the stubs do not know all of it
        query = fitting(vector, self.vectors.shape[1])
        faiss.omp_set_num_threads(1)
        parameters = untyped.SearchParametersHNSW(efSearch=count)
        rows: Rows = self.graph.search(query[None], count, params=parameters)[1][0]
        return np.sort(rows[rows >= 0])  # FAISS fills up with -1


def linked(vectors: Vectors) -> Graph:
    """The graph of these vectors, built by one thread from a fixed seed, so that equal vectors give equal bytes."""
    import faiss

    total, dimensions = vectors.shape
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        kind: Any = faiss.ScalarQuantizer.QT_8bit
        graph: Graph = faiss.IndexHNSWSQ(dimensions, kind, LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = CONSTRUCTION
        if total:
            graph.train(np.ascontiguousarray(vectors[:: -(-total // TRAINED_ON)]))
        for start in range(0, total, 65536):
            graph.add(np.ascontiguousarray(vectors[start : start + 65536]))
    finally:
        faiss.omp_set_num_threads(threads)
    return graph


def save(graph: Graph, path: Path) -> None:
    """Writes a graph to a new file."""
    import faiss

    path.parent.mkdir(parents=True, exist_ok=True)
    faiss.write_index(graph, str(path))


def load(path: Path, shape: tuple[int, int]) -> Graph:
    """The graph for vectors of this shape, mapped. Raises StorageError for a file that does not fit them."""
    import faiss

    try:
        graph: Graph = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise _damaged(path, f"FAISS says {str(error).rsplit(': ', 1)[-1]}") from error
    if (graph.ntotal, graph.d) != shape:
        raise _damaged(path, f"{graph.ntotal} rows of {graph.d} for {shape[0]} vectors of {shape[1]}")
    return graph


def _damaged(path: Path, why: str) -> StorageError:
    return StorageError(
        f"Index file {path} cannot be used ({why}): restore the folder of its version, or remove it and build again."
    )
