"""Documents cut into passages by one of the strategies in the CHUNKERS table at the foot; each passage gets its id.

Every strategy works on spans of the document's own text, so a passage is quoted exactly as it was written and
nothing between two cuts can get lost. Sizes are estimated tokens (`cost` in domain/packing.py): the bundled encoder
reads 256 and ignores the rest without a word, so the default leaves room for title and heading.
"""

from hashlib import sha256

from domain.errors import ConfigError
from domain.ports import Embedder
from domain.types import Chunk, Document
from retrieval.chunkers_contextual import contextual
from retrieval.chunkers_hierarchical import MOST_PARTS, hierarchical
from retrieval.chunkers_plain import fixed, heading, paragraph, sentence, whole
from retrieval.chunkers_semantic import semantic
from retrieval.families import parted
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

    Where passages are searched by their parts, the chunks are the parts (families.py).
    `embedder` is for strategies that compare meanings. Raises ConfigError for an unknown chunker, for sizes that
    contradict each other, and for an embedder that is wanted and missing.
    """
    check(chunker, size, overlap)
    source = sources(document)

    def passage(piece: Piece) -> Chunk:
        return Chunk(
            f"{document.doc_id}#{piece.ordinal}-{_digest(piece)}",
            piece.text,
            piece.ordinal,
            piece.heading,
            source(piece.start, len(piece.text)),
            document.tenant,
            document.groups,
            piece.context,
        )

    found = CHUNKERS[chunker](document, Shape(size, overlap, embedder))
    return [chunk for piece in found for chunk in parted(passage(piece), piece.parts)]


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
    """What is embedded and analysed for a chunk: its context, or title and headings, and its text; each said once."""
    if chunk.context:
        return f"{chunk.context}\n{chunk.text}"
    first_line = chunk.text.partition("\n")[0].strip("# ")
    above = [chunk.source.title, *chunk.heading.split(JOINS)]
    said = [part for i, part in enumerate(above) if part and part not in above[:i] and part != first_line]
    return "\n".join([*said, chunk.text])


def _digest(piece: Piece) -> str:
    """What a passage is known by: what is quoted of it. Its context may change without making it another passage."""
    return sha256(f"{piece.heading}\0{piece.text}".encode()).hexdigest()[:10]


CHUNKERS: dict[str, Chunker] = {
    "fixed": fixed,
    "sentence": sentence,
    "paragraph": paragraph,
    "heading": heading,
    "semantic": semantic,
    "contextual": contextual,
    "hierarchical": hierarchical,
    "whole": whole,
}

# Strategies that are given the encoder, because they compare meanings.
BY_MEANING = frozenset({"semantic"})

# Strategies whose passages are searched by their parts, and how many parts a passage may have.
BY_PARTS = {"hierarchical": MOST_PARTS}
