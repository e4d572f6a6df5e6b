"""Documents cut into passages by one of the strategies in the CHUNKERS table at the foot; each passage gets its id.

Every strategy works on spans of the document's own text, so a passage is quoted exactly as it was written and
nothing between two cuts can get lost. Sizes are estimated tokens (`cost` in domain/packing.py): the bundled encoder
reads 256 and ignores the rest without a word, so the default leaves room for title and heading.
"""

from hashlib import sha256

from domain.errors import ConfigError
from domain.ports import Embedder
from domain.types import Chunk, Document
from retrieval.chunkers_plain import fixed, heading, paragraph, sentence, whole
from retrieval.headings import JOINS
from retrieval.pieces import Chunker, Piece, Shape
from retrieval.places import sources

CHUNK_TOKENS = 200
OVERLAP = 0


def chunks_of(
    document: Document,
    chunker: str = "heading",
    size: int = CHUNK_TOKENS,
    overlap: int = OVERLAP,
    embedder: Embedder | None = None,
) -> list[Chunk]:
    """The chunks of a document in reading order; the id of an unchanged passage at an unchanged place is unchanged.

    `embedder` is for strategies that compare meanings. Raises ConfigError for an unknown chunker, for sizes that
    contradict each other, and for an embedder that is wanted and missing.
    """
    check(chunker, size, overlap)
    source = sources(document)
    return [
        Chunk(
            f"{document.doc_id}#{piece.ordinal}-{_digest(piece)}",
            piece.text,
            piece.ordinal,
            piece.heading,
            source(piece.start, len(piece.text)),
            document.tenant,
            document.groups,
        )
        for piece in CHUNKERS[chunker](document, Shape(size, overlap, embedder))
    ]


def check(chunker: str, size: int, overlap: int) -> None:
    """Raises ConfigError naming everything that is wrong with these settings."""
    wrong = []
    if chunker not in CHUNKERS:
        wrong.append(f"chunker '{chunker}' is not one of {', '.join(CHUNKERS)}")
    if size < 8:
        wrong.append(f"a chunk size of {size} tokens is below 8")
    if not 0 <= overlap < size:
        wrong.append(f"an overlap of {overlap} tokens is not between 0 and the chunk size of {size}")
    if wrong:
        raise ConfigError(f"Chunks cannot be cut like this: {'; '.join(wrong)}.")


def indexed_text(chunk: Chunk) -> str:
    """What is embedded and analysed for a chunk: title, headings and text, each said once."""
    first_line = chunk.text.partition("\n")[0].strip("# ")
    above = [chunk.source.title, *chunk.heading.split(JOINS)]
    said = [part for i, part in enumerate(above) if part and part not in above[:i] and part != first_line]
    return "\n".join([*said, chunk.text])


def _digest(piece: Piece) -> str:
    return sha256(f"{piece.heading}\0{piece.text}".encode()).hexdigest()[:10]


CHUNKERS: dict[str, Chunker] = {
    "fixed": fixed,
    "sentence": sentence,
    "paragraph": paragraph,
    "heading": heading,
    "whole": whole,
}
