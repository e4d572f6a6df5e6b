"""Documents to an index version: cut, put in order, embedded, written to a staged folder and published in one step.

The version is named by its content, so equal inputs give an equal id and byte-identical files, in whatever order they
come and whoever does the work; only a vector that an earlier version lends may differ in its last bits from one made
now. Text that any version with the same embedder has seen before is not embedded again.
Memory does not grow with the text: lines are sorted on disk (sorting.py) and vectors written block by block
(vectors.py); what a version folder holds is parts.py, and opening it index.py.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from domain.errors import CorpusError, IncompatibleIndex, NotFound, StorageError
from domain.ingestion import FileOutcome
from domain.ports import Embedder, IndexRegistry
from domain.releases import IndexVersion
from domain.types import Document
from retrieval import passage_tokens
from retrieval.analysis import STAMP
from retrieval.chunking import BY_PARTS, CHUNK_TOKENS, OVERLAP, check
from retrieval.disk import cannot_write, check_room, text_bytes
from retrieval.documents import Corpus
from retrieval.fingerprint import CHUNKS, fingerprint, sha256_of
from retrieval.parts import PARTS, Draft, Part
from retrieval.sorting import KeyedLine, SortedLines
from retrieval.stored import FORMAT, manifest_of
from retrieval.tokenizing import Tokenizer
from retrieval.vectors import RowNumbers, Vectors, write_vectors
from retrieval.work import CutDocument, Cutting, Here, Workers
from retrieval.workplace import workplace

LENT = ("texts.npy", "vectors.npy")  # files that lend vectors

Progress = Callable[[str, int, int], None]  # (what is being done, done, total); total 0 when it is not known


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build came to. `new` is False when that very version was there already, and nothing was embedded."""

    version: IndexVersion
    new: bool
    outcomes: tuple[FileOutcome, ...]
    reused_vectors: int
    embedded: int


def quiet(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody watches."""


def build(
    documents: Iterable[Document],
    *,
    embedder: Embedder,
    registry: IndexRegistry,
    staging: Path,
    chunker: str = "heading",
    chunk_tokens: int = CHUNK_TOKENS,
    overlap: int = OVERLAP,
    parent: str | None = None,
    tokenizer: Tokenizer | None = None,
    extra: Sequence[Part] = (),
    workers: Workers | None = None,
    progress: Progress = quiet,
) -> BuildReport:
    """The version of these documents, published in `registry`. `outcomes` are those of a Corpus, otherwise empty.

    With a `tokenizer` the passages are also kept as its tokens, except where their parts are searched. `extra` are
    parts of the folder that need more than the draft; they are written last.
    `workers` cut and embed, this process when there are none. Work in progress stands in a folder of its own under
    `staging`, which is removed in any case. Raises ConfigError for impossible chunk settings, CorpusError when there
    is nothing to index or two documents share an id, and StorageError when the disk does not take it.
    """
    check(chunker, chunk_tokens, overlap)
    if chunker in BY_PARTS:  # a row is a part there, and what a cross-encoder reads is the passage
        tokenizer = None
    if isinstance(documents, Corpus):
        check_room(staging, text_bytes(documents.root), f"a version of {documents.root}")
    work = workers or Here(embedder)
    reading = _Reading(work.cut(documents, Cutting(chunker, chunk_tokens, overlap)), progress)
    passages = reading.passages()
    first = next(passages, None)  # before a folder is made: what has no text leaves nothing
    if first is None:
        raise _nothing_in(documents)
    try:
        with workplace(staging, "build") as staged, closing(SortedLines(staged)) as lines:
            for passage in chain([first], passages):
                lines.add(passage)
            outcomes = tuple(documents.outcomes) if isinstance(documents, Corpus) else ()
            head: dict[str, Any] = {
                "format": FORMAT,
                "embedder": _described(embedder),
                "analyser": STAMP,
                "chunker": _cut_by(chunker, chunk_tokens, overlap),
                "counts": {"documents": reading.documents, "chunks": len(lines)},
            }
            if tokenizer is not None:
                head["tokenizer"] = tokenizer.stamp
            name = _write_chunks(staged, head, lines)
            known = {there.id: there for there in registry.versions()}  # as of now: reading may have taken hours
            if name in (damaged := registry.damaged()):
                raise StorageError(damaged[name])
            if name in known:
                manifest_of(registry.folder(name))  # being there is not enough: a damaged one is no result
                return BuildReport(known[name], False, outcomes, 0, 0)
            check_room(staged, _still_needed(staged, len(lines), embedder), f"version {name}")
            before = _whole(registry, parent) if parent and parent in known else None
            draft = Draft(staged, head | {"id": name}, before)
            embedded = _write_vectors(draft, _lenders(registry, known, parent, head), work, progress)
            progress("writing", 0, 0)
            tokens = () if tokenizer is None else (passage_tokens.part(tokenizer),)
            for write in (*PARTS.values(), *tokens, *extra):
                write(draft)
            write_manifest(draft)
            version = IndexVersion(
                id=name,
                parent=parent,
                chunker=f"{chunker}-{chunk_tokens}-{overlap}",
                analyser=STAMP,
                embedder=embedder.tag,
                documents=reading.documents,
                chunks=len(lines),
                built_at=datetime.now(UTC).isoformat(timespec="seconds"),
            )
            new = registry.publish(staged, version)
    except OSError as error:
        raise cannot_write(staging, error) from error
    return BuildReport(version, new, outcomes, len(lines) - embedded, embedded)


# ---------------------------------------------------------------------------------------------- chunks


class _Reading:
    """The passages of documents as they are cut, and how many documents they came from so far."""

    def __init__(self, cut: Iterable[CutDocument], progress: Progress) -> None:
        self._cut, self._progress = cut, progress
        self._seen: set[str] = set()

    @property
    def documents(self) -> int:
        return len(self._seen)

    def passages(self) -> Iterator[KeyedLine]:
        """Every passage once. Raises CorpusError when two documents share an id."""
        for document in self._cut:
            if document.doc_id in self._seen:
                raise CorpusError(
                    f"Document id '{document.doc_id}' occurs twice: ids must be unique, rename one of the two."
                )
            self._seen.add(document.doc_id)
            yield from document.passages
            if len(self._seen) % 50 == 0:
                self._progress("reading", len(self._seen), 0)
        self._progress("reading", len(self._seen), len(self._seen))


def _nothing_in(documents: Iterable[Document]) -> CorpusError:
    place, left_out = "The corpus", ""
    if isinstance(documents, Corpus):
        place = f"Corpus {documents.root}"
        left_out = f" ({len(documents.outcomes)} files or records were left out)"
    return CorpusError(
        f"{place} has no text to index{left_out}: add documents with words in them, or name another folder."
    )


def _write_chunks(folder: Path, head: Mapping[str, Any], lines: SortedLines) -> str:
    """Writes the lines, where each begins and the digests of their texts; the name that all this gives comes back."""
    ends, digests = array("q", [0]), bytearray()

    def written() -> Iterator[bytes]:
        with (folder / "chunks.jsonl").open("wb") as file:
            for _, digest, line in lines:
                file.write(line + b"\n")
                ends.append(ends[-1] + len(line) + 1)
                digests.extend(digest)
                yield line

    name = fingerprint(head, written())
    lines.close()  # now: what follows wants the disk
    np.save(folder / "offsets.npy", np.array(ends, np.int64), allow_pickle=False)
    np.save(folder / "texts.npy", np.frombuffer(digests, np.uint8).reshape(-1, 16), allow_pickle=False)
    return name


# ---------------------------------------------------------------------------------------------- vectors


def _relatives(known: Mapping[str, IndexVersion], parent: str | None, tag: str) -> list[str]:
    """Versions whose vectors are comparable: the parent first, then the newest."""
    newest_first = [name for name, version in reversed(list(known.items())) if version.embedder == tag]
    return sorted(newest_first, key=lambda name: name != parent)  # stable: only the parent moves


def _cut_by(chunker: str, tokens: int, overlap: int) -> dict[str, Any]:
    """What a manifest says of how documents were cut; `parts`, how many rows a passage may have, where it may."""
    cut: dict[str, Any] = {"name": chunker, "tokens": tokens, "overlap": overlap}
    return cut | ({"parts": BY_PARTS[chunker]} if chunker in BY_PARTS else {})


def _described(embedder: Embedder) -> dict[str, Any]:
    """What a manifest says of an encoder: tag and dimensions decide what can be searched, the runtime whose bits."""
    described = {"tag": embedder.tag, "dimensions": embedder.dimensions}
    return described | ({"runtime": embedder.runtime} if embedder.runtime else {})


def _lenders(
    registry: IndexRegistry, known: Mapping[str, IndexVersion], parent: str | None, head: Mapping[str, Any]
) -> Iterator[Path]:
    """The folders of versions whose vectors are of this encoder on this runtime, each looked for when it is its turn:
    it may have to be fetched first. One that is gone or damaged lends nothing and stands in nobody's way.
    """
    for name in _relatives(known, parent, head["embedder"]["tag"]):
        folder = _whole(registry, name, LENT)
        if folder is not None and manifest_of(folder)["embedder"] == head["embedder"]:
            yield folder


def _whole(registry: IndexRegistry, name: str, held_against: Sequence[str] = ()) -> Path | None:
    """The folder of a version; None when it is gone, damaged or of another format. The files named are read whole, so
    that damage to them is never taken over into a version of another name.
    """
    with suppress(NotFound):
        folder = registry.folder(name)
        # Of another program: building again is the way out of it, so it must not stand in it.
        with suppress(StorageError, IncompatibleIndex, OSError):
            files = manifest_of(folder)["files"]
            if all(sha256_of(folder / each) == files[each]["sha256"] for each in held_against):
                return folder
    return None


def _still_needed(folder: Path, rows: int, embedder: Embedder) -> int:
    """About how many bytes follow once the chunks are written: vectors, and postings and the like about as long as the
    text (examples/corpus: 1.0 times, large ones less).
    """
    return rows * embedder.dimensions * 4 + (folder / CHUNKS).stat().st_size


def _write_vectors(draft: Draft, relatives: Iterable[Path], work: Workers, progress: Progress) -> int:
    """Writes the vectors; for how many chunks no earlier version had one comes back."""
    digests, offsets = (np.load(draft.folder / f"{name}.npy", allow_pickle=False) for name in ("texts", "offsets"))

    def embed(rows: RowNumbers) -> Iterator[Vectors]:
        spans = np.stack([offsets[rows], offsets[rows + 1]], axis=1)  # [n_rows, 2]
        done = 0
        progress("embedding", done, len(rows))
        for made in work.embed(draft.folder / "chunks.jsonl", spans):
            done += len(made)
            progress("embedding", done, len(rows))
            yield made

    dimensions = draft.head["embedder"]["dimensions"]
    return write_vectors(draft.folder / "vectors.npy", digests, dimensions, relatives, embed)


# ---------------------------------------------------------------------------------------------- manifest


def write_manifest(draft: Draft) -> None:
    """Writes the manifest over everything that is in the folder: the last file of a version."""
    files = {
        path.relative_to(draft.folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for path in sorted(draft.folder.rglob("*"))
        if path.is_file()
    }
    whole = orjson.dumps({**draft.head, "files": files}, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    (draft.folder / "manifest.json").write_bytes(whole)
