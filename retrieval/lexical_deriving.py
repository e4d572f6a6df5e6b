"""The lexical files of a version: words of known texts are taken from the version before, only new texts are analysed.

What comes out is byte-identical to counting all texts, so it does not show which version came before. Memory does not
grow with the library: new texts are counted a piece at a time, and the pieces are merged on disk.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from domain.errors import IncompatibleIndex, StorageError
from retrieval import lexical_files
from retrieval.analysis import STAMP
from retrieval.fingerprint import sha256_of
from retrieval.lexical_merging import Taken, merge_into
from retrieval.lexical_segment import Segment
from retrieval.stored import manifest_of

LEXICAL = "bm25"  # the folder within that of a version
CHARACTERS = 1 << 23  # of texts counted together, with their postings some 100 MB

Ints = NDArray[np.int64]
Texts = Callable[[Iterable[bool]], Iterator[str]]  # for each row whether it is wanted: the texts of those, in order


def derive(folder: Path, texts: Texts, kept: Ints, parent: Path | None = None, characters: int = CHARACTERS) -> int:
    """Writes the lexical files into the version's `folder` and gives back how many texts were analysed.

    `kept` [n_rows] is for each row a row of the version in `parent` that has the same text, -1 for a new one; `texts`
    is asked once, for the texts of new rows. A parent of another analyser, or one whose files are not what its
    manifest says, is left alone: then all texts are analysed, so that damage is never copied. Raises OSError.
    """
    before = _intact(parent) if parent is not None else None
    if before is None:
        kept = np.full(kept.size, -1, np.int64)
    new, old = np.flatnonzero(kept < 0), np.flatnonzero(kept >= 0)
    with TemporaryDirectory(prefix=f".{LEXICAL}-", dir=folder) as scratch:
        parts = [Taken(before, kept[old], old)] if before is not None else []
        done = 0
        for segment in _pieces(texts((kept < 0).tolist()), Path(scratch), characters):
            size = segment.lengths.size
            parts.append(Taken(segment, np.arange(size), new[done : done + size]))
            done += size
        merge_into(folder / LEXICAL, parts, kept.size)
    return new.size


def _pieces(texts: Iterator[str], scratch: Path, characters: int) -> Iterator[Segment]:
    """Segments over some texts each, on disk."""
    piece: list[str] = []
    size = number = 0
    for text in texts:
        piece.append(text)
        size += len(text)
        if size >= characters:
            yield _on_disk(piece, scratch / str(number))
            piece, size, number = [], 0, number + 1
    if piece:
        yield _on_disk(piece, scratch / str(number))


def _on_disk(texts: list[str], folder: Path) -> Segment:
    lexical_files.write(Segment.of(texts), folder)
    return lexical_files.read(folder)


def _intact(parent: Path) -> Segment | None:
    """The segment of a version, if it was made by this analyser and every file still is what its manifest says."""
    try:
        manifest = manifest_of(parent)
        files = {name: file for name, file in manifest["files"].items() if name.startswith(f"{LEXICAL}/")}
        whole = all(sha256_of(parent / name) == file["sha256"] for name, file in files.items())
        return lexical_files.read(parent / LEXICAL) if whole and manifest["analyser"] == STAMP else None
    except (StorageError, IncompatibleIndex, OSError):
        return None
