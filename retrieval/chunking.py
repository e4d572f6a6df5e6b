"""Documents cut into passages: strategies as functions, and the CHUNKERS table at the foot.

Every strategy works on spans of the document's own text, so a passage is quoted exactly as it was written and
nothing between two cuts can get lost. Sizes are estimated tokens (`cost` in domain/packing.py): the bundled encoder
reads 256 and ignores the rest without a word, so the default leaves room for title and heading.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import zip_longest
from typing import TYPE_CHECKING

from domain.errors import ConfigError
from domain.packing import cost
from domain.types import Chunk, Document, SourceRef
from retrieval.cutting import Span, characters, lines, paragraphs, sentences, words

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

CHUNK_TOKENS = 200
OVERLAP = 0

# What may begin a list, a quote, code, HTML, a definition or a ruler in CommonMark, and what its parser replaces.
_BEGINS_A_BLOCK = re.compile(r"^(?:[ \t]+[^ \t\n]|[-+*=_>`~<\[]|\d{1,9}[.)])|[\r\0]", re.MULTILINE)
_PLAIN_HEADING = re.compile(r"^(#{1,6})(?![^ \t\n])([^\n]*)\n?", re.MULTILINE)

Cutter = Callable[[str, int, int], list[Span]]  # cuts text[start:end] into adjacent spans that cover it


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage before it has an id. `heading` is the path of headings above it, joined by " > ", or empty.

    `start` is the offset in the document's text, in characters, where `text` begins: text[start:] starts with it.
    """

    text: str
    heading: str
    ordinal: int
    start: int


Chunker = Callable[[Document, int, int], list[Piece]]


def chunks_of(
    document: Document, chunker: str = "heading", size: int = CHUNK_TOKENS, overlap: int = OVERLAP
) -> list[Chunk]:
    """The chunks of a document in reading order; the id of an unchanged passage at an unchanged place is unchanged.

    Raises ConfigError for an unknown chunker or sizes that contradict each other.
    """
    check(chunker, size, overlap)
    source = SourceRef(document.doc_id, document.title, document.uri, document.source, document.published)
    return [
        Chunk(
            f"{document.doc_id}#{piece.ordinal}-{_digest(piece)}",
            piece.text,
            piece.ordinal,
            piece.heading,
            source,
            document.tenant,
            document.groups,
        )
        for piece in CHUNKERS[chunker](document, size, overlap)
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
    above = [chunk.source.title, *chunk.heading.split(" > ")]
    said = [part for i, part in enumerate(above) if part and part not in above[:i] and part != first_line]
    return "\n".join([*said, chunk.text])


# ---------------------------------------------------------------------------------------------- strategies


def fixed(document: Document, size: int, overlap: int) -> list[Piece]:
    """Windows of `size` tokens cut between words, whatever they say."""
    text = document.text
    return _pieces(text, _pack(text, _fitting(text, 0, len(text), size, (words,)), size, overlap))


def sentence(document: Document, size: int, overlap: int) -> list[Piece]:
    """As many whole sentences as fit, across paragraphs."""
    text = document.text
    units = [
        unit
        for start, end in paragraphs(text, 0, len(text))
        for piece in sentences(text, start, end)
        for unit in _fitting(text, *piece, size, (words,))
    ]
    return _pieces(text, _pack(text, units, size, overlap))


def paragraph(document: Document, size: int, overlap: int) -> list[Piece]:
    """As many whole paragraphs as fit; a longer one is cut at lines, then sentences, then words."""
    text = document.text
    return _pieces(text, _passages(text, 0, len(text), size, overlap))


def heading(document: Document, size: int, overlap: int) -> list[Piece]:
    """Paragraphs packed under their Markdown heading, never across headings unless a section is tiny.

    Tiny is below a fifth of `size`: such a section is joined with the next ones under the headings they share. A
    heading without text of its own lives on in the heading path of the sections below it.
    """
    text = document.text
    found: list[tuple[Span, str]] = []
    for run in _runs(text, _sections(text), size):
        path = _shared([section.path for section in run if not section.bare])
        first = next(section for section in run if not (section.bare and section.path == path[: len(section.path)]))
        named = first.path == path and text[first.body : first.end].strip()
        start = first.body if named else first.start
        found += [(span, " > ".join(path)) for span in _passages(text, start, run[-1].end, size, overlap)]
    return _pieces(text, [span for span, _ in found], [path for _, path in found])


def whole(document: Document, size: int, overlap: int) -> list[Piece]:  # noqa: ARG001 - the shape of a Chunker
    """The document as one passage, however long: `size` and `overlap` do not matter."""
    return _pieces(document.text, [(0, len(document.text))])


# ---------------------------------------------------------------------------------------------- packing


def _passages(text: str, start: int, end: int, size: int, overlap: int) -> list[Span]:
    cutters = (paragraphs, lines, sentences, words)
    return _pack(text, _fitting(text, start, end, size, cutters), size, overlap)


def _fitting(text: str, start: int, end: int, size: int, cutters: Sequence[Cutter]) -> Iterator[Span]:
    """Adjacent spans that cover text[start:end], none above `size`: whole if it fits, else by ever finer cutters."""
    if cost(text[start:end].strip()) <= size:
        yield start, end
    elif cutters:
        for piece in cutters[0](text, start, end):
            yield from _fitting(text, *piece, size, cutters[1:])
    else:
        yield from characters(text, start, end, size)


def _pack(text: str, units: Iterable[Span], size: int, overlap: int) -> list[Span]:
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


def _pieces(text: str, spans: Sequence[Span], headings: Sequence[str] = ()) -> list[Piece]:
    found: list[Piece] = []
    for i, (start, end) in enumerate(spans):
        written = text[start:end]
        if body := written.strip():
            begins = start + len(written) - len(written.lstrip())
            found.append(Piece(body, headings[i] if headings else "", len(found), begins))
    return found


def _digest(piece: Piece) -> str:
    return sha256(f"{piece.heading}\0{piece.text}".encode()).hexdigest()[:10]


# ---------------------------------------------------------------------------------------------- headings


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading's own text: [start, end) with the heading line, [body, end) without.

    `bare` when there is none before the headings below it: the heading's words are in their paths.
    """

    path: tuple[str, ...]
    start: int
    body: int
    end: int
    bare: bool = False


def _sections(text: str) -> list[_Section]:
    """The sections of a Markdown text in order, covering it; text without headings is one section."""
    marks = _headings(text) if re.search(r"^ {0,3}(#|=+[ \t]*$|-+[ \t]*$)", text, re.MULTILINE) else []
    ends = [*(start for _, _, start, _ in marks), len(text)]
    found = [_Section((), 0, 0, ends[0])]
    above: list[tuple[int, str]] = []
    for (level, title, start, body), end in zip(marks, ends[1:], strict=True):
        above = [(upper, name) for upper, name in above if upper < level] + [(level, title)]
        found.append(_Section(tuple(name for _, name in above if name), start, body, end))
    found = [section for section in found if text[section.start : section.end].strip()]
    return [
        replace(section, bare=_is_above(section, below) and not text[section.body : section.end].strip())
        for section, below in zip_longest(found, found[1:])
    ]


def _is_above(section: _Section, other: _Section | None) -> bool:
    return other is not None and other.path[: len(section.path)] == section.path


def _headings(text: str) -> list[tuple[int, str, int, int]]:
    """Level, title, start and end offset of every top-level heading.

    By a parser, because `#` in code is no heading; by a pattern where no line could begin anything but a heading or a
    paragraph, because that is ten times faster and cutting is most of building again.
    """
    if not _BEGINS_A_BLOCK.search(text):
        return [(len(match[1]), _title(match[2]), *match.span()) for match in _PLAIN_HEADING.finditer(text)]
    lines = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text)), len(text)]
    tokens = _markdown().parse(text)
    return [
        (int(token.tag[1:]), " ".join(tokens[i + 1].content.split()), lines[token.map[0]], lines[token.map[1]])
        for i, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]


def _title(line: str) -> str:
    """What a heading says: `# Pumps ##` says "Pumps", `# C#` says "C#"."""
    said = line.strip(" \t")
    shorter = said.rstrip("#")
    return " ".join((said if shorter and shorter[-1] not in " \t" else shorter).split())


@cache
def _markdown() -> "MarkdownIt":
    """A parser of blocks only: what stands inside a line cannot make a heading, and costs half of the parsing."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["inline", "text_join"])


def _runs(text: str, sections: list[_Section], size: int) -> Iterator[list[_Section]]:
    """Neighbouring sections that share chunks: each one alone, but the tiny ones together while they fit."""
    run: list[_Section] = []
    total = 0.0
    for section in sections:
        extra = cost(text[section.start : section.end])
        if any(not held.bare for held in run) and (total >= size / 5 or total + extra > size):
            yield run
            run, total = [], 0.0
        run.append(section)
        total += extra
    if run:
        yield run


def _shared(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    shared = paths[0]
    for path in paths[1:]:
        same = next(
            (i for i, (a, b) in enumerate(zip(shared, path, strict=False)) if a != b), min(len(shared), len(path))
        )
        shared = shared[:same]
    return shared


CHUNKERS: dict[str, Chunker] = {
    "fixed": fixed,
    "sentence": sentence,
    "paragraph": paragraph,
    "heading": heading,
    "whole": whole,
}
