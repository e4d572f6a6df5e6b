"""The vectors of a version on disk: taken from versions that hold the same text, made once for every other text.

Texts are known by digest only. Memory is bounded: one block of rows at a time is mapped, filled and let go, because a
mapped page counts as used for as long as it is mapped.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from retrieval.stored import damaged, mapped

Vectors = NDArray[np.float32]
Digests = NDArray[np.uint8]  # [n, 16]
RowNumbers = NDArray[np.int64]
ROWS = 4096  # filled at a time: 6 MB of 384 dimensions


def write_vectors(
    path: Path,
    digests: Digests,
    dimensions: int,
    folders: Iterable[Path],
    embed: Callable[[RowNumbers], Iterator[Vectors]],
    rows_at_a_time: int = ROWS,
) -> int:
    """Writes float32 [n, dimensions] and gives back for how many rows no version in `folders` had a vector.

    The first folder that holds a text gives its vector; folders after the last that is needed are not asked for.
    `embed` is asked once, for the first row of every text that none holds, ascending, and yields their vectors in that
    order, in pieces of any length.
    A version that is removed meanwhile still gives what it had. Raises StorageError naming a damaged folder.
    """
    _, first, number = np.unique(_keys(digests), return_index=True, return_inverse=True)
    lenders, folder_of, row_there = _found(_keys(digests)[first], folders)
    missing = folder_of[number] < 0  # [n]
    fresh = _Pieces(embed(np.sort(first[folder_of < 0])))
    np.lib.format.open_memmap(path, "w+", np.float32, (len(digests), dimensions))  # zeros, which take no time
    with ExitStack() as opened:
        lent = [(i, opened.enter_context(_Lent(lenders[i]))) for i in np.unique(folder_of).tolist() if i >= 0]
        for start in range(0, len(digests), rows_at_a_time):
            rows = np.arange(start, min(start + rows_at_a_time, len(digests)))
            written: Vectors = np.load(path, mmap_mode="r+")
            texts = number[rows]
            again = missing[rows] & (first[texts] < rows)
            new = missing[rows] & ~again
            written[rows[new]] = fresh.take(int(new.sum()), dimensions)
            for i, vectors in lent:
                if (from_here := folder_of[texts] == i).any():
                    written[rows[from_here]] = vectors.rows(row_there[texts[from_here]])
            written[rows[again]] = written[first[texts[again]]]
    return int(missing.sum())


def rows_of(digests: Digests, folder: Path) -> RowNumbers:
    """int64 [n]: a row of the version in `folder` that holds the same text, -1 where none does.

    Raises StorageError naming a damaged folder.
    """
    return _rows(_keys(digests), _keys(mapped(folder / "texts.npy")))


def _rows(wanted: NDArray[np.bytes_], there: NDArray[np.bytes_]) -> RowNumbers:
    """By binary search: sorting half a million digests takes a tenth of a second, a dictionary of them a second."""
    if not there.size:
        return np.full(wanted.size, -1, np.int64)
    order = np.argsort(there, kind="stable")
    place = np.minimum(np.searchsorted(there, wanted, sorter=order), there.size - 1)
    rows = order[place]
    return np.where(there[rows] == wanted, rows, -1)


def _found(wanted: NDArray[np.bytes_], folders: Iterable[Path]) -> tuple[list[Path], NDArray[np.int32], RowNumbers]:
    """The folders that were looked into; for each text the one that has it, -1 for none, and its row there."""
    looked: list[Path] = []
    folder_of, row_there = np.full(wanted.size, -1, np.int32), np.zeros(wanted.size, np.int64)
    left = np.arange(wanted.size)
    for i, folder in enumerate(folders if left.size else ()):
        looked.append(folder)
        rows = _rows(wanted[left], _keys(mapped(folder / "texts.npy")))
        folder_of[left[rows >= 0]], row_there[left[rows >= 0]] = i, rows[rows >= 0]
        left = np.flatnonzero(folder_of < 0)
        if not left.size:
            break
    return looked, folder_of, row_there


class _Lent:
    """The vectors of a version, open until the end: embedding takes hours, and removing versions does not wait."""

    def __init__(self, folder: Path) -> None:
        path = folder / "vectors.npy"
        try:
            with ExitStack() as failing:
                self._file = failing.enter_context(path.open("rb"))
                np.lib.format.read_magic(self._file)
                self._shape, _, self._dtype = np.lib.format.read_array_header_1_0(self._file)
                self._begins = self._file.tell()
                failing.pop_all()
        except (OSError, ValueError) as error:
            raise damaged(path, str(error)) from error

    def rows(self, rows: RowNumbers) -> Vectors:
        """float32 [n, dimensions], mapped no longer than they are copied."""
        vectors: Vectors = np.memmap(self._file, self._dtype, "r", self._begins, self._shape)
        return np.array(vectors[rows])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class _Pieces:
    """Rows that come in pieces of any length, taken in pieces of any other."""

    def __init__(self, pieces: Iterator[Vectors]) -> None:
        self._pieces = pieces
        self._left: list[Vectors] = []

    def take(self, count: int, dimensions: int) -> Vectors:
        """float32 [count, dimensions]: the next rows."""
        while sum(map(len, self._left)) < count:
            self._left.append(next(self._pieces))
        rows = np.concatenate([np.empty((0, dimensions), np.float32), *self._left])
        self._left = [rows[count:]]
        return rows[:count]


def _keys(digests: Digests) -> NDArray[np.bytes_]:
    """The digests as one value each. numpy drops zero bytes at the end, from all alike, so equal stays equal."""
    return np.ascontiguousarray(digests).view("S16").ravel()
