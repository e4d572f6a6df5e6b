"""A segment on disk: plain arrays, byte-identical for equal texts, mapped rather than read.

Opening looks at kinds and sizes alone, whatever the size of the library. What is inside is covered by the digests of a
version (fingerprint.py) or of an update (lexical_updates.py), which are compared before anything new is made of it.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.errors import StorageError
from retrieval.lexical_segment import Segment
from retrieval.sorted_strings import SortedStrings

_KINDS: dict[str, tuple[type[np.integer[Any]], ...]] = {
    "terms": (np.uint8,),
    "term_ends": (np.int64,),
    "starts": (np.int64,),
    "rows": (np.int32,),
    "counts": (np.uint8, np.uint16, np.int32),
    "lengths": (np.int32,),
}


def write(segment: Segment, folder: Path, already: Collection[str] = ()) -> None:
    """Write a segment into `folder`, which need not exist, but for the arrays that stand there already.

    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, NDArray[Any]] = {
        "terms": segment.terms.text,
        "term_ends": segment.terms.ends,
        "starts": segment.starts,
        "rows": segment.rows,
        "counts": segment.counts,
        "lengths": segment.lengths,
    }
    for name in arrays.keys() - already:
        np.save(folder / f"{name}.npy", arrays[name], allow_pickle=False)


def fresh(file: Path, size: int, kind: type[np.integer[Any]]) -> NDArray[Any]:
    """An array to be filled where it is, in `file`: what is written to it need not fit into memory. Raises OSError."""
    if not size:  # there is nothing to map
        np.save(file, np.empty(0, kind), allow_pickle=False)
        return np.empty(0, kind)
    return np.lib.format.open_memmap(file, "w+", np.dtype(kind), (size,))


def read(folder: Path) -> Segment:
    """The segment in `folder`; arrays stay on disk until they are touched.

    Raises StorageError, naming the file, when one is missing, cut off, of another kind or of another size than the
    others ask for.
    """
    arrays = {name: array(folder / f"{name}.npy", *kinds) for name, kinds in _KINDS.items()}
    terms, ends, starts, rows, counts, lengths = arrays.values()
    if ends.size < 1 or ends[0] != 0 or ends[-1] != terms.size:
        raise damaged(folder / "term_ends.npy", f"it does not fit {terms.size} bytes of terms")
    if starts.size != ends.size or starts[0] != 0:
        raise damaged(folder / "starts.npy", f"it does not fit {ends.size - 1} terms")
    if rows.size != starts[-1]:
        raise damaged(folder / "rows.npy", f"it does not fit {starts[-1]} postings")
    if counts.size != rows.size:
        raise damaged(folder / "counts.npy", f"it does not fit {rows.size} postings")
    return Segment(SortedStrings(terms, ends), starts, rows, counts, lengths)


def array(file: Path, *kinds: type[np.integer[Any]]) -> NDArray[Any]:
    """The array in `file`, mapped: one dimension of one of these `kinds`. Raises StorageError naming the file."""
    try:
        values = np.asarray(np.load(file, mmap_mode="r", allow_pickle=False))  # a plain view: memmap slices are slow
    except (OSError, ValueError, EOFError) as error:
        raise damaged(file, str(error)) from error
    if values.dtype not in kinds or values.ndim != 1:
        wanted = f"one dimension of {' or '.join(kind.__name__ for kind in kinds)}"
        raise damaged(file, f"it holds {values.dtype} in {values.ndim} dimensions instead of {wanted}")
    return values


def damaged(file: Path, why: str) -> StorageError:
    """What to tell an operator about a file that cannot be what was written."""
    return StorageError(
        f"Lexical index file {file} cannot be read ({why}): build the version again or restore the file."
    )
