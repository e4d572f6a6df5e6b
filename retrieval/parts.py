"""The parts of a version folder, each written by one function of the table at the foot.

A part reads the draft row by row, and may read what the parts before it wrote. It decides nothing about what the
version is: the name covers chunks and settings only, so equal input must give equal bytes. When the parts are written
is building.py, how they are read stored.py.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from domain.types import Chunk
from retrieval.chunking import indexed_text
from retrieval.lexical_deriving import derive
from retrieval.places import source_of
from retrieval.vectors import RowNumbers, rows_of

# All rows are in the order of chunk ids.
FILES = {
    "manifest.json": "what the version is: encoder, analyser, chunker, counts; size and sha256 of every other file",
    "chunks.jsonl": "one chunk a line",
    "offsets.npy": "int64 [n_chunks + 1]: where each line begins",
    "ids.json": "chunk ids",
    "documents.json": "document ids, sorted",
    "document_of.npy": "int32 [n_chunks]: position in documents.json",
    "readers.json": "the distinct (tenant, groups) pairs",
    "readers_of.npy": "int32 [n_chunks]: position in readers.json",
    "vectors.npy": "float32 [n_chunks, dimensions], unit rows",
    "texts.npy": "uint8 [n_chunks, 16]: digest of the text that was embedded",
    "bm25/": "postings of the lexical arm",
}


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A version on its way: chunks.jsonl, offsets.npy, texts.npy and vectors.npy are written, the parts come next."""

    folder: Path
    head: Mapping[str, Any]  # the manifest without files: encoder, analyser, chunker, counts
    parent: Path | None  # the folder of the version before, to take from what has not changed

    def chunks(self) -> Iterator[Chunk]:
        """All chunks in row order, read from disk one at a time."""
        return map(chunk_of, self.lines())

    def lines(self) -> Iterator[bytes]:
        """The same as lines of JSON."""
        with (self.folder / "chunks.jsonl").open("rb") as lines:
            yield from lines

    def texts(self, rows: Iterable[bool]) -> Iterator[str]:
        """What is analysed and embedded for the rows that are True, in row order, read from disk one at a time."""
        return (indexed_text(chunk_of(line)) for line in compress(self.lines(), rows))

    def kept(self) -> RowNumbers:
        """int64 [n_chunks]: a row of the parent that holds the same text, -1 where none does or there is no parent."""
        digests = np.load(self.folder / "texts.npy", allow_pickle=False)
        if self.parent is None or not self.parent.is_dir():  # removed, perhaps, while texts were embedded
            return np.full(len(digests), -1, np.int64)
        return rows_of(digests, self.parent)


Part = Callable[[Draft], None]


def line_of(chunk: Chunk) -> bytes:
    """A chunk as one line of JSON without its end."""
    source = chunk.source
    stated = {"place": source.place, "context": chunk.context}  # most have none, and lines of before must stay the same
    return orjson.dumps(
        {
            "id": chunk.id,
            "text": chunk.text,
            "ordinal": chunk.ordinal,
            "heading": chunk.heading,
            "doc_id": source.doc_id,
            "title": source.title,
            "uri": source.uri,
            "source": source.source,
            "published": source.published,
            "tenant": chunk.tenant,
            "groups": sorted(chunk.groups),
            **{name: said for name, said in stated.items() if said},
        }
    )


def chunk_of(line: bytes) -> Chunk:
    """The chunk of a line."""
    fields = orjson.loads(line)
    source, groups, context = source_of(fields), frozenset(fields["groups"]), fields.get("context", "")
    tenant, heading = fields["tenant"], fields["heading"]
    return Chunk(fields["id"], fields["text"], fields["ordinal"], heading, source, tenant, groups, context)


def write_columns(draft: Draft) -> None:
    """What opening a version needs of each chunk without reading its text: its id, document and readers."""
    documents: dict[str, int] = {}  # in the order of appearance
    readers: dict[tuple[str, tuple[str, ...]], int] = {}
    document_of, readers_of = array("i"), array("i")
    with (draft.folder / "ids.json").open("wb") as ids:
        ids.write(b"[")
        for row, fields in enumerate(map(orjson.loads, draft.lines())):  # a Chunk of each would take longer to make
            ids.write((b"," if row else b"") + orjson.dumps(fields["id"]))
            document_of.append(documents.setdefault(fields["doc_id"], len(documents)))
            reader = (fields["tenant"], tuple(sorted(set(fields["groups"]))))
            readers_of.append(readers.setdefault(reader, len(readers)))
        ids.write(b"]")
    _write_sorted(draft.folder, "documents", documents, "document_of", document_of)
    _write_sorted(draft.folder, "readers", readers, "readers_of", readers_of)


def _write_sorted(folder: Path, name: str, seen: Mapping[Any, int], column: str, numbers: "array[int]") -> None:
    """Distinct values sorted, and for every row the place of its value among them."""
    ordered = sorted(seen)
    place = np.empty(len(ordered), np.int32)
    place[[seen[value] for value in ordered]] = np.arange(len(ordered), dtype=np.int32)
    (folder / f"{name}.json").write_bytes(orjson.dumps(ordered))
    np.save(folder / f"{column}.npy", place[np.array(numbers, np.int32)], allow_pickle=False)


def write_postings(draft: Draft) -> None:
    """The lexical arm; texts that the parent holds are not analysed again."""
    derive(draft.folder, draft.texts, draft.kept(), draft.parent)


PARTS: dict[str, Part] = {
    "columns": write_columns,
    "postings": write_postings,
}
