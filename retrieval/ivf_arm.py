"""The inverted-file dense arm: rows grouped around centroids, and of the nearest groups every visible row is scored.

Keeps no second copy of the vectors: it is a list of rows per centroid beside the mapped vectors, so a reader's filter
is a look at the rows themselves and cannot be ignored by a library. Effort is counted in *visible* rows: under a filter
more lists are probed, and a reader who sees little has everything of his compared. See dense_choice.py for when.
"""

from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from domain.errors import StorageError
from retrieval.arms import Ranking, Rows, Scores, Visible
from retrieval.dense import MARGIN, Vector, Vectors, cosines
from retrieval.faiss_arm import nearest_of, readable

NPROBE = 256  # lists: a fifth of those over 100,000 rows; less finds less than .99 of the ten nearest there
LISTS_PER_ROOT = 4  # lists = 4 * sqrt(rows): as many centroids are compared as rows are scored, within a factor of two
TRAINED_ON = 48  # rows per centroid that k-means looks at; more moved recall@10 by less than .001
ROUNDS = 10  # of k-means
SEED = 7
EXACT_AT = 2  # a reader who sees at most twice the rows that would be scored has all of them scored: same cost, no loss


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Rows by nearest centroid. List i is `rows[starts[i]:starts[i + 1]]`, ascending."""

    centroids: Vectors  # float32 [n_lists, dimensions], unit rows
    starts: NDArray[np.int64]  # [n_lists + 1]
    rows: NDArray[np.int32]  # [n_chunks]

    def save(self, folder: Path) -> None:
        """Writes the three arrays into a new folder."""
        folder.mkdir(parents=True)
        for name in ("centroids", "starts", "rows"):
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)

    @classmethod
    def load(cls, folder: Path, shape: tuple[int, int]) -> "Lists":
        """The lists for vectors of this shape, mapped. Raises StorageError for files that do not fit them."""
        try:
            arrays = [np.load(folder / f"{name}.npy", "r", allow_pickle=False) for name in cls.__slots__]
        except (OSError, ValueError, EOFError) as error:
            raise _damaged(folder, str(error)) from error
        centroids, starts, rows = arrays
        if centroids.shape != (starts.size - 1, shape[1]) or rows.shape != (shape[0],) or starts[-1] != shape[0]:
            raise _damaged(folder, f"{centroids.shape} centroids over {rows.shape} rows for {shape} vectors")
        return cls(centroids, starts, rows)


class IvfArm:
    """Cosine over the visible rows near the query; recall@10 is measured in docs/benchmarks.md, not promised."""

    name = "ivf"

    def __init__(self, vectors: Vectors, lists: Lists | None = None, nprobe: int = NPROBE) -> None:
        self.vectors = readable(vectors)
        self.lists = grouped(vectors) if lists is None else lists
        self.nprobe = nprobe
        self._sizes: WeakKeyDictionary[Visible, NDArray[np.int64]] = WeakKeyDictionary()

    def search(self, vector: Vector, n: int, visible: Visible) -> Ranking:
        """Visible rows of high cosine: min(n, visible) of them, scored exactly, ties by row. A larger `nprobe` scores
        the same rows and more, so that recall never falls with it."""
        total, n_lists = len(self.vectors), len(self.lists.centroids)
        effort = max(-(-self.nprobe * total // max(1, n_lists)), n + MARGIN)  # visible rows to score, at least
        if n <= 0 or visible.rows.size <= EXACT_AT * effort:
            return nearest_of(self.vectors, vector, visible.rows, n)
        nearest = np.argsort(-cosines(self.lists.centroids, vector, None), kind="stable")
        reached = np.cumsum(self._visible_sizes(visible)[nearest])  # visible rows in the nearest 1, 2, 3.. lists
        probed = max(self.nprobe, int(np.searchsorted(reached, effort)) + 1)
        return nearest_of(self.vectors, vector, self._rows_of(nearest[:probed], visible), n)

    def scores(self, vector: Vector, rows: Rows | None) -> Scores:
        """float32 [len(rows)]: the cosine of each of `rows`, in their order; None means every row."""
        return cosines(self.vectors, vector, rows)

    def _visible_sizes(self, visible: Visible) -> NDArray[np.int64]:
        """Visible rows per list, counted once per reader."""
        sizes = self._sizes.get(visible)
        if sizes is None:
            seen = np.concatenate([[0], np.cumsum(visible.mask[self.lists.rows])])
            sizes = np.diff(seen[self.lists.starts])
            self._sizes[visible] = sizes
        return sizes

    def _rows_of(self, chosen: Rows, visible: Visible) -> Rows:
        """The visible rows of the chosen lists, list after list."""
        starts = self.lists.starts[chosen]
        sizes = self.lists.starts[chosen + 1] - starts
        ends = np.cumsum(sizes)
        places = np.arange(ends[-1]) + np.repeat(starts - ends + sizes, sizes)
        rows: Rows = self.lists.rows[places].astype(np.int64)
        return rows if visible.everything else rows[visible.mask[rows]]


def grouped(vectors: Vectors) -> Lists:
    """The lists of these vectors: spherical k-means on a sample, one thread and a fixed seed, so that equal vectors
    give equal bytes. Memory beyond the vectors: the sample and a few megabytes."""
    import faiss

    total, dimensions = vectors.shape
    n_lists = max(1, min(round(LISTS_PER_ROOT * total**0.5), total // 8))
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        kmeans = faiss.Kmeans(
            dimensions,
            n_lists,
            niter=ROUNDS,
            seed=SEED,
            spherical=True,
            min_points_per_centroid=1,
            max_points_per_centroid=TRAINED_ON,
        )
        if total:
            kmeans.train(_sample(vectors, n_lists * TRAINED_ON))
        list_of = np.empty(total, np.int64)
        for start in range(0, total, 65536):
            part = np.ascontiguousarray(vectors[start : start + 65536])
            list_of[start : start + len(part)] = kmeans.index.search(part, 1)[1][:, 0]
    finally:
        faiss.omp_set_num_threads(threads)
    centroids = kmeans.centroids if total else np.zeros((n_lists, dimensions), np.float32)
    order = np.argsort(list_of, kind="stable")  # stable: rows of a list stay ascending
    starts = np.searchsorted(list_of[order], np.arange(n_lists + 1)).astype(np.int64)
    return Lists(np.ascontiguousarray(centroids, np.float32), starts, order.astype(np.int32))


def _sample(vectors: Vectors, size: int) -> Vectors:
    """At most `size` rows, evenly apart: rows are in the order of chunk ids, so neighbours are of one document."""
    size = min(size, len(vectors))
    return np.ascontiguousarray(vectors[np.arange(size) * len(vectors) // size])


def _damaged(folder: Path, why: str) -> StorageError:
    return StorageError(
        f"Index files {folder} cannot be used ({why}): restore the folder of its version, or remove it and build again."
    )
