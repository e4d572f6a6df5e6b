"""What all chunking strategies share: what is wanted of them, what they give, and spans packed to a size.

Everything here works on spans of the document's own text, so that whoever cuts with it loses nothing. Where a text
may be cut is cutting.py; which cuts are good ones is up to the strategies in chunkers_*.py.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from domain.errors import ConfigError
from domain.packing import cost
from domain.ports import Embedder
from domain.types import Document
from retrieval.cutting import Span, characters, lines, paragraphs, sentences, words
from retrieval.headings import Paths

Cutter = Callable[[str, int, int], list[Span]]  # cuts text[start:end] into adjacent spans that cover it


@dataclass(frozen=True, slots=True)
class Shape:
    """What is wanted of a strategy: at most `size` estimated tokens a piece, `overlap` of them from the one before.

    `embedder` is for strategies that compare meanings; others do without.
    """

    size: int
    overlap: int = 0
    embedder: Embedder | None = None

    def encoder(self, chunker: str) -> Embedder:
        """The embedder. Raises ConfigError, naming the chunker, where there is none."""
        if self.embedder is None:
            raise ConfigError(
                f"Chunker '{chunker}' compares the meanings of sentences and was given no encoder: this is a bug of "
                "whoever cuts; chunking.strategy heading cuts without one."
            )
        return self.embedder


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage before it has an id. `heading` is the path of headings above it, joined by " > ", or empty.

    `start` is the offset in the document's text, in characters, where `text` begins: text[start:] starts with it.
    `context` is indexed in front of the text and is no part of it. `parts` are the texts that are searched in the
    place of a passage and join up to it; none means that the passage itself is searched.
    """

    text: str
    heading: str
    ordinal: int
    start: int
    context: str = ""
    parts: tuple[str, ...] = ()


Chunker = Callable[[Document, Shape], list[Piece]]


def pieces(text: str, spans: Iterable[Span], paths: Sequence[str] | None = None) -> list[Piece]:
    """The pieces of these spans, blank ones left out, under the given paths or those of the text's own headings."""
    headings, found = Paths.of(text) if paths is None else None, list[Piece]()
    for i, (start, end) in enumerate(spans):
        written = text[start:end]
        if body := written.strip():
            begins = start + len(written) - len(written.lstrip())
            path = headings.over((begins, begins + len(body))) if headings else paths[i] if paths else ""
            found.append(Piece(body, path, len(found), begins))
    return found


def passages(text: str, start: int, end: int, size: int, overlap: int) -> list[Span]:
    """As many whole paragraphs of text[start:end] a span as fit; longer ones cut at lines, sentences, words."""
    cutters = (paragraphs, lines, sentences, words)
    return pack(text, fitting(text, start, end, size, cutters), size, overlap)


def fitting(text: str, start: int, end: int, size: int, cutters: Sequence[Cutter]) -> Iterator[Span]:
    """Adjacent spans that cover text[start:end], none above `size`: whole if it fits, else by ever finer cutters."""
    if cost(text[start:end].strip()) <= size:
        yield start, end
    elif cutters:
        for piece in cutters[0](text, start, end):
            yield from fitting(text, *piece, size, cutters[1:])
    else:
        yield from characters(text, start, end, size)


def pack(text: str, units: Iterable[Span], size: int, overlap: int) -> list[Span]:
    """As many adjacent units per span as fit in `size`; a span repeats at most `overlap` tokens of the one before.

    A rest below a quarter of `size` stays with its predecessor where that exceeds `size` by no more than a tenth.
    """
    spans: list[Span] = []
    held: list[tuple[Span, float]] = []
    total = 0.0  # cost of `held`
    fresh = 0  # how many of `held` no span has yet
    for unit in units:
        extra = cost(text[slice(*unit)])
        if fresh and total + extra > size:
            spans.append((held[0][0][0], held[-1][0][1]))
            held, fresh = _tail(held, min(overlap, size - extra)), 0
            total = sum(c for _, c in held)
        held.append((unit, extra))
        total += extra
        fresh += 1
    if fresh:
        rest = sum(c for _, c in held[-fresh:])
        if spans and rest < size / 4 and cost(text[spans[-1][0] : held[-1][0][1]].strip()) <= 1.1 * size:
            spans[-1] = (spans[-1][0], held[-1][0][1])
        else:
            spans.append((held[0][0][0], held[-1][0][1]))
    return spans


def _tail(held: list[tuple[Span, float]], room: float) -> list[tuple[Span, float]]:
    kept = len(held)
    while kept > 1 and room >= held[kept - 1][1]:  # never all of it, or no progress would be made
        kept -= 1
        room -= held[kept][1]
    return held[kept:]
