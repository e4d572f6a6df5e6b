"""Documents to an index version: chunked, embedded, written to a staged folder and published in one step.

The version is named by its content, so equal inputs give an equal id and byte-identical files, in whatever order they
come. Text that any version with the same embedder has seen before is not embedded again. Opening what is written here
is index.py; the files are described by `FILES`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from domain.errors import CorpusError, StageFailed, StorageError
from domain.ports import Embedder, IndexRegistry
from domain.releases import IndexVersion
from domain.types import Chunk, Document
from retrieval.analysis import STAMP
from retrieval.chunking import CHUNK_TOKENS, OVERLAP, check, chunks_of, indexed_text
from retrieval.documents import Corpus, FileOutcome
from retrieval.fingerprint import fingerprint, sha256_of
from retrieval.lexical import Bm25Arm
from retrieval.registry import cannot_write
from retrieval.stored import FORMAT, manifest_of
from retrieval.workplace import workplace

BATCH = 256  # texts handed to the embedder at a time: often enough to show progress, enough to sort by length

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
    progress: Progress = quiet,
) -> BuildReport:
    """The version of these documents, published in `registry`. `outcomes` are those of a Corpus, otherwise empty.

    Work in progress stands in a folder of its own under `staging`, which is removed in any case. Raises ConfigError
    for impossible chunk settings, CorpusError when there is nothing to index or two documents share an id, and
    StorageError when the disk does not take it.
    """
    check(chunker, chunk_tokens, overlap)
    chunks, n_documents = _chunked(documents, chunker, chunk_tokens, overlap, progress)
    outcomes = tuple(documents.outcomes) if isinstance(documents, Corpus) else ()
    lines = [_line(chunk) for chunk in chunks]
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "embedder": {"tag": embedder.tag, "dimensions": embedder.dimensions},
        "analyser": STAMP,
        "chunker": {"name": chunker, "tokens": chunk_tokens, "overlap": overlap},
        "counts": {"documents": n_documents, "chunks": len(chunks)},
    }
    version = IndexVersion(
        id=fingerprint(manifest, lines),
        parent=parent,
        chunker=f"{chunker}-{chunk_tokens}-{overlap}",
        analyser=STAMP,
        embedder=embedder.tag,
        documents=n_documents,
        chunks=len(chunks),
        built_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    known = {there.id: there for there in registry.versions()}
    if version.id in known:
        manifest_of(registry.folder(version.id))  # being there is not enough: a damaged one is no result
        return BuildReport(known[version.id], False, outcomes, 0, 0)

    texts = [indexed_text(chunk) for chunk in chunks]
    digests = np.frombuffer(b"".join(_text_digest(text) for text in texts), np.uint8).reshape(-1, 16)
    relatives = _relatives(known, parent, embedder.tag)
    vectors, embedded = _vectors(texts, digests, embedder, [registry.folder(name) for name in relatives], progress)
    progress("writing", 0, 0)
    try:
        with workplace(staging, version.id) as staged:
            described = manifest | {"id": version.id}
            _write(
                staged, manifest=described, chunks=chunks, lines=lines, texts=texts, digests=digests, vectors=vectors
            )
            new = registry.publish(staged, version)
    except OSError as error:
        raise cannot_write(staging, error) from error
    return BuildReport(version, new, outcomes, len(chunks) - embedded, embedded)


# ---------------------------------------------------------------------------------------------- chunks


def _chunked(
    documents: Iterable[Document], chunker: str, tokens: int, overlap: int, progress: Progress
) -> tuple[list[Chunk], int]:
    """All chunks by id, and the number of documents."""
    chunks: list[Chunk] = []
    seen: set[str] = set()
    for document in documents:
        if document.doc_id in seen:
            raise CorpusError(
                f"Document id '{document.doc_id}' occurs twice: ids must be unique, rename one of the two."
            )
        seen.add(document.doc_id)
        chunks += chunks_of(document, chunker, tokens, overlap)
        if len(seen) % 50 == 0:
            progress("reading", len(seen), 0)
    progress("reading", len(seen), len(seen))
    if not chunks:
        place = f"Corpus {documents.root}" if isinstance(documents, Corpus) else "The corpus"
        left_out = (
            f" ({len(documents.outcomes)} files or records were left out)" if isinstance(documents, Corpus) else ""
        )
        raise CorpusError(
            f"{place} has no text to index{left_out}: add documents with words in them, or name another folder."
        )
    chunks.sort(key=lambda chunk: chunk.id)
    return chunks, len(seen)


def _line(chunk: Chunk) -> bytes:
    """A chunk as one line of JSON without its end."""
    source = chunk.source
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
        }
    )


# ---------------------------------------------------------------------------------------------- vectors


def _text_digest(text: str) -> bytes:
    return sha256(text.encode()).digest()[:16]


def _relatives(known: Mapping[str, IndexVersion], parent: str | None, tag: str) -> list[str]:
    """Versions whose vectors are comparable: the parent first, then the newest."""
    newest_first = [name for name, version in reversed(list(known.items())) if version.embedder == tag]
    return sorted(newest_first, key=lambda name: name != parent)  # stable: only the parent moves


def _vectors(
    texts: Sequence[str], digests: NDArray[np.uint8], embedder: Embedder, folders: Sequence[Path], progress: Progress
) -> tuple[NDArray[np.float32], int]:
    """float32 [n_chunks, dimensions], and how many chunks no earlier version had a vector for."""
    keys = [row.tobytes() for row in digests]
    vectors = np.zeros((len(texts), embedder.dimensions), np.float32)
    missing: dict[bytes, list[int]] = {}
    for row, key in enumerate(keys):
        missing.setdefault(key, []).append(row)
    for folder in folders:
        if not missing:
            break
        for key, vector in _remembered(folder, missing):
            vectors[missing.pop(key)] = vector
    embedded = sum(len(rows) for rows in missing.values())
    rows_of = list(missing.values())
    for start in range(0, len(rows_of), BATCH):
        progress("embedding", start, len(rows_of))
        batch = rows_of[start : start + BATCH]
        made = np.asarray(embedder.embed_documents([texts[rows[0]] for rows in batch]), np.float32)
        if made.shape != (len(batch), embedder.dimensions) or not np.isfinite(made).all():
            strange = np.count_nonzero(~np.isfinite(made))
            raise StageFailed(
                f"Embedder '{embedder.tag}' gave {made.shape} for {len(batch)} texts, {strange} numbers not finite: "
                f"{embedder.dimensions} finite numbers a text are wanted, check the model's files.",
                "embedder",
            )
        for rows, vector in zip(batch, made, strict=True):
            vectors[rows] = vector
    progress("embedding", len(rows_of), len(rows_of))
    return vectors, embedded


def _remembered(folder: Path, wanted: Mapping[bytes, object]) -> list[tuple[bytes, NDArray[np.float32]]]:
    """Digests and vectors of those `wanted` texts that the version in `folder` holds."""
    try:
        digests = np.load(folder / "texts.npy", allow_pickle=False)
        vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise StorageError(f"Index version {folder} is damaged ({error}): remove that folder or restore it.") from error
    row_of = {row.tobytes(): i for i, row in enumerate(digests)}
    return [(key, vectors[row_of[key]]) for key in wanted if key in row_of]


# ---------------------------------------------------------------------------------------------- files


def _write(
    folder: Path,
    *,
    manifest: Mapping[str, Any],
    chunks: Sequence[Chunk],
    lines: Sequence[bytes],
    texts: Sequence[str],
    digests: NDArray[np.uint8],
    vectors: NDArray[np.float32],
) -> None:
    """All files of a version; see FILES."""
    documents = sorted({chunk.source.doc_id for chunk in chunks})
    readers = sorted({(chunk.tenant, tuple(sorted(chunk.groups))) for chunk in chunks})
    position = {doc_id: i for i, doc_id in enumerate(documents)}
    class_of = {reader: i for i, reader in enumerate(readers)}
    (folder / "chunks.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    (folder / "ids.json").write_bytes(orjson.dumps([chunk.id for chunk in chunks]))
    (folder / "documents.json").write_bytes(orjson.dumps(documents))
    (folder / "readers.json").write_bytes(orjson.dumps(readers))
    arrays: dict[str, NDArray[Any]] = {
        "offsets": np.cumsum([0, *(len(line) + 1 for line in lines)], dtype=np.int64),
        "document_of": np.array([position[chunk.source.doc_id] for chunk in chunks], np.int32),
        "readers_of": np.array([class_of[chunk.tenant, tuple(sorted(chunk.groups))] for chunk in chunks], np.int32),
        "vectors": vectors,
        "texts": digests,
    }
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values, allow_pickle=False)
    Bm25Arm.build(texts).save(folder / "bm25")
    files = {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    whole = orjson.dumps({**manifest, "files": files}, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    (folder / "manifest.json").write_bytes(whole)
