"""The two kinds of work of a build that can be shared out: cutting documents, and embedding texts.

Results come back in the order of what was asked, so it does not matter who works: this process, as here, or the
workers of a cluster. What becomes of the results is building.py.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from domain.errors import StageFailed
from domain.ports import Embedder
from domain.types import Document
from retrieval.chunking import chunks_of, indexed_text
from retrieval.parts import chunk_of, line_of
from retrieval.sorting import KeyedLine
from retrieval.vectors import Vectors

BATCH = 256  # texts embedded at a time: often enough to show progress, enough to sort by length
Spans = NDArray[np.int64]  # [n, 2]: where lines begin and end in a file


@dataclass(frozen=True, slots=True)
class Cutting:
    """How documents are cut."""

    chunker: str
    tokens: int
    overlap: int


@dataclass(frozen=True, slots=True)
class CutDocument:
    """A document as the lines of its passages: by chunk id, with the digest of what is embedded."""

    doc_id: str
    passages: tuple[KeyedLine, ...]


class Workers(Protocol):
    """Whoever does the work of a build."""

    def cut(self, documents: Iterable[Document], how: Cutting) -> Iterator[CutDocument]:
        """The documents, cut, in their order. A Corpus accounts for its files whoever reads them."""
        ...

    def embed(self, chunks: Path, spans: Spans) -> Iterator[Vectors]:
        """The vectors of the lines at `spans` of the file of chunks, `BATCH` at a time, in their order."""
        ...


@dataclass(frozen=True)
class Here:
    """This process."""

    embedder: Embedder

    def cut(self, documents: Iterable[Document], how: Cutting) -> Iterator[CutDocument]:
        """One document at a time."""
        return (cut(document, how, self.embedder) for document in documents)

    def embed(self, chunks: Path, spans: Spans) -> Iterator[Vectors]:
        """One batch at a time."""
        for batch in batches(spans):
            yield embedded(self.embedder, chunks, batch)


def cut(document: Document, how: Cutting, embedder: Embedder | None = None) -> CutDocument:
    """A document, cut. The embedder is for chunkers that compare meanings."""
    passages = [
        KeyedLine(chunk.id.encode(), text_digest(indexed_text(chunk)), line_of(chunk))
        for chunk in chunks_of(document, how.chunker, how.tokens, how.overlap, embedder)
    ]
    return CutDocument(document.doc_id, tuple(passages))


def text_digest(text: str) -> bytes:
    """The 16 bytes by which an embedded text is known."""
    return sha256(text.encode()).digest()[:16]


def batches(spans: Spans) -> Iterator[Spans]:
    """What is embedded at a time. The same wherever it is done, because a batch may move the last bits of a vector."""
    return (spans[start : start + BATCH] for start in range(0, len(spans), BATCH))


def embedded(embedder: Embedder, chunks: Path, spans: Spans) -> Vectors:
    """float32 [n, dimensions] of the lines at `spans`. Raises StageFailed for numbers that are no vectors."""
    texts = []
    with chunks.open("rb") as lines:
        for start, end in spans.tolist():
            lines.seek(start)
            texts.append(indexed_text(chunk_of(lines.read(end - start))))
    made = np.asarray(embedder.embed_documents(texts), np.float32)
    if made.shape != (len(texts), embedder.dimensions) or not np.isfinite(made).all():
        strange = np.count_nonzero(~np.isfinite(made))
        raise StageFailed(
            f"Embedder '{embedder.tag}' gave {made.shape} for {len(texts)} texts, {strange} numbers not finite: "
            f"{embedder.dimensions} finite numbers a text are wanted, check the model's files.",
            "embedder",
        )
    return made
