"""The documents of a version as the lines of their passages, taken out of its folder without parsing one.

What a sync takes over from the version before. The files that are read here are held against the manifest first, so
that damage is never copied into a version of another name.
"""

import mmap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import orjson

from domain.errors import IncompatibleIndex, StorageError
from retrieval.fingerprint import CHUNKS, sha256_of
from retrieval.sorting import KeyedLine
from retrieval.stored import manifest_of
from retrieval.work import CutDocument

NEEDED = (CHUNKS, "offsets.npy", "ids.json", "documents.json", "document_of.npy", "texts.npy")


class KeptDocuments:
    """The documents of the version in `folder`. Raises OSError or ValueError for files that are none."""

    def __init__(self, folder: Path) -> None:
        with (folder / CHUNKS).open("rb") as file:
            self._lines = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._offsets: Sequence[int] = np.load(folder / "offsets.npy", allow_pickle=False).tolist()
        self._texts = np.load(folder / "texts.npy", allow_pickle=False)
        self._ids: list[str] = orjson.loads((folder / "ids.json").read_bytes())
        documents: list[str] = orjson.loads((folder / "documents.json").read_bytes())
        document_of = np.load(folder / "document_of.npy", allow_pickle=False)
        self._rows: Sequence[int] = np.argsort(document_of, kind="stable").tolist()
        ends = np.searchsorted(document_of[self._rows], np.arange(len(documents)), side="right").tolist()
        self._spans = {doc_id: span for doc_id, *span in zip(documents, [0, *ends], ends, strict=False)}

    @classmethod
    def of(cls, folder: Path) -> "KeptDocuments | None":
        """Those of a version, None when one of the files is not what the manifest says: then all is read again."""
        try:
            files = manifest_of(folder)["files"]
            whole = all(sha256_of(folder / name) == files[name]["sha256"] for name in NEEDED)
            return cls(folder) if whole else None
        except (StorageError, IncompatibleIndex, OSError, ValueError, KeyError, TypeError):
            return None

    def cut(self, doc_id: str) -> CutDocument:
        """A document with its passages; one that has none in this version has none here."""
        start, end = self._spans.get(doc_id, (0, 0))
        return CutDocument(doc_id, tuple(map(self._line, self._rows[start:end])))

    def groups(self, doc_id: str) -> frozenset[str] | None:
        """Who may read a document as this version was built, None where it holds no passage of it."""
        start, end = self._spans.get(doc_id, (0, 0))
        return frozenset(orjson.loads(self._line(self._rows[start]).line)["groups"]) if start < end else None

    def _line(self, row: int) -> KeyedLine:
        line = self._lines[self._offsets[row] : self._offsets[row + 1] - 1]  # without its end
        return KeyedLine(self._ids[row].encode(), self._texts[row].tobytes(), line)
