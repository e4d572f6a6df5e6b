"""The files of one index version, open for reading: who may see which row, and the chunks themselves.

Everything is mapped rather than read, so several processes share one copy in memory; chunks are parsed when they are
asked for. Written by building.py, searched by index.py.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from domain.amending import Amendments
from domain.errors import IncompatibleIndex, StorageError
from domain.types import Chunk, Scope
from retrieval.arms import Visible
from retrieval.families import after_parts, joined, part_id, passage_id
from retrieval.places import source_of

FORMAT = 2  # of the folder; another number is another layout
SCOPES = 256  # visible rows are kept for as many readers; one takes a byte a chunk and eight more for each he sees
CHUNKS = 8192  # parsed chunks kept, about a kilobyte each


class StoredVersion:
    """A version folder. Opening raises StorageError naming a damaged file; contents are trusted if sizes are right."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = manifest_of(folder)
        self.id: str = self.manifest["id"]
        self.ids: list[str] = _json(folder / "ids.json")
        self.documents = documents_of(folder)
        self._readers = [(tenant, frozenset(groups)) for tenant, groups in _json(folder / "readers.json")]
        self._readers_of = mapped(folder / "readers_of.npy")
        self._document_of = mapped(folder / "document_of.npy")
        self._offsets = mapped(folder / "offsets.npy")
        path = folder / "chunks.jsonl"
        # An empty file cannot be mapped, and a shard may hold nothing.
        self._lines = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.empty(0, np.uint8)
        self.parts: int = self.manifest.get("chunker", {}).get("parts", 1)  # rows that a passage has at most
        self.visible = lru_cache(SCOPES)(self._visible)
        self.chunk = lru_cache(CHUNKS)(self._passage)

    def _visible(self, scope: Scope, amended: Amendments) -> Visible:
        """The rows this reader may see as things stand now. The same object for the same reader and amendments."""
        allowed = np.array([scope.may_read(tenant, groups) for tenant, groups in self._readers], np.bool_)
        mask = allowed[self._readers_of]  # [n_chunks]
        if amended.access:
            theirs = np.array([tenant == scope.tenant for tenant, _ in self._readers], np.bool_)[self._readers_of]
            changed, open_to = self._changed_readers(scope, amended.access)
            mask = np.where(changed[self._document_of], theirs & open_to[self._document_of], mask)
        if amended.gone:
            kept = np.array([doc_id not in amended.gone for doc_id in self.documents], np.bool_)
            mask &= kept[self._document_of]
        return Visible(mask)

    def _changed_readers(
        self, scope: Scope, access: Mapping[str, frozenset[str]]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Per document: have its readers changed since it was built, and is this reader one of those it has now."""
        changed, open_to = np.zeros(len(self.documents), np.bool_), np.zeros(len(self.documents), np.bool_)
        for doc_id, groups in access.items():
            place = bisect_left(self.documents, doc_id)
            if place < len(self.documents) and self.documents[place] == doc_id:
                changed[place], open_to[place] = True, not scope.groups.isdisjoint(groups)
        return changed, open_to

    def _passage(self, row: int) -> Chunk:
        """What is shown and cited of a row: its chunk, or the passage that it is a part of."""
        if self.parts == 1:
            return self._chunk(row)
        name = self.passage_id(row)
        first = bisect_left(self.ids, part_id(name))
        return joined(self._chunk(each) for each in range(first, bisect_left(self.ids, after_parts(name), first)))

    def passage_id(self, row: int) -> str:
        """The id of what is shown and cited of a row."""
        return self.ids[row] if self.parts == 1 else passage_id(self.ids[row])

    def _chunk(self, row: int) -> Chunk:
        """The chunk of a row, as it is searched."""
        fields = orjson.loads(self._lines[self._offsets[row] : self._offsets[row + 1]].tobytes())
        source = source_of(fields)
        tenant, groups = self._readers[self._readers_of[row]]  # shared, where the line holds a copy
        told = (fields["heading"], source, tenant, groups, fields.get("context", ""))
        return Chunk(fields["id"], fields["text"], fields["ordinal"], *told)

    def chunks(self) -> Iterator[Chunk]:
        """All chunks in row order, as they are searched, none of them kept."""
        return (self._chunk(row) for row in range(len(self.ids)))

    def passages(self) -> Iterator[Chunk]:
        """Everything that can be shown and cited, in the order of ids, none of it kept."""
        for row, name in enumerate(self.ids):
            if self.parts == 1 or name == part_id(passage_id(name)):
                yield self._passage(row)

    def row(self, chunk_id: str) -> int | None:
        """The row of a chunk id, the first one of a passage with parts; None when there is no such chunk."""
        name = chunk_id if self.parts == 1 else part_id(chunk_id)
        place = bisect_left(self.ids, name)
        return place if place < len(self.ids) and self.ids[place] == name else None

    def vectors(self) -> NDArray[np.float32]:
        """float32 [n_chunks, dimensions], on disk until touched."""
        return mapped(self.folder / "vectors.npy")


def documents_of(folder: Path) -> list[str]:
    """The ids of a version's documents, sorted. Raises StorageError naming the file."""
    documents: list[str] = _json(folder / "documents.json")
    return documents


def mapped(path: Path) -> NDArray[Any]:  # the dtype is that of the file
    """An array on disk, read where it is touched. Raises StorageError naming the file."""
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise damaged(path, str(error)) from error


def manifest_of(folder: Path) -> dict[str, Any]:  # JSON as written by building.py
    """The manifest, after a look at the size of every file: a copy that broke off is found before it is searched.

    Raises StorageError naming a damaged file, IncompatibleIndex for a folder of another format.
    """
    path = folder / "manifest.json"
    manifest = _json(path)
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise damaged(path, "it is no manifest")
    if manifest["format"] != FORMAT:
        raise IncompatibleIndex(
            f"Index {folder.name} has format {manifest['format']}, this program reads {FORMAT}: "
            "build it again with `tidegate build`, or use the program that built it."
        )
    for name, described in manifest["files"].items():
        try:
            size = (folder / name).stat().st_size
        except OSError as error:
            raise damaged(folder / name, str(error.strerror)) from error
        if size != described["bytes"]:
            raise damaged(folder / name, f"{size} bytes instead of {described['bytes']}")
    return manifest


def _json(path: Path) -> Any:  # JSON as written by building.py
    try:
        return orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise damaged(path, str(error)) from error


def damaged(path: Path, why: str) -> StorageError:
    """What to say of a file of a version that is not what was written."""
    # A build finds a version by its name and leaves it as it is, so what is damaged must be out of its way first.
    return StorageError(
        f"Index file {path} cannot be read ({why}): restore the folder of its version, or remove it and build again."
    )
