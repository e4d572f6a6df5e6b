"""The strategies that look at nothing but the text: fixed, sentence, paragraph, heading, whole.

Each gives the pieces of a document in reading order. Their table is in chunking.py.
"""

from collections.abc import Iterator

from domain.packing import cost
from domain.types import Document
from retrieval.cutting import Span, paragraphs, sentences, words
from retrieval.headings import JOINS, Section, sections, shared
from retrieval.pieces import Piece, Shape, fitting, pack, passages, pieces


def fixed(document: Document, shape: Shape) -> list[Piece]:
    """Windows of `size` tokens cut between words, whatever they say."""
    text = document.text
    units = fitting(text, 0, len(text), shape.size, (words,))
    return pieces(text, pack(text, units, shape.size, shape.overlap))


def sentence(document: Document, shape: Shape) -> list[Piece]:
    """As many whole sentences as fit, across paragraphs."""
    text = document.text
    return pieces(text, pack(text, sentence_units(text, shape.size), shape.size, shape.overlap))


def paragraph(document: Document, shape: Shape) -> list[Piece]:
    """As many whole paragraphs as fit; a longer one is cut at lines, then sentences, then words."""
    text = document.text
    return pieces(text, passages(text, 0, len(text), shape.size, shape.overlap))


def heading(document: Document, shape: Shape) -> list[Piece]:
    """Paragraphs packed under their Markdown heading, never across headings unless a section is tiny.

    Tiny is below a fifth of `size`: such a section is joined with the next ones under the headings they share. A
    heading without text of its own lives on in the heading path of the sections below it.
    """
    text, found = document.text, list[tuple[Span, str]]()
    for run in _runs(text, sections(text), shape.size):
        path = shared([section.path for section in run if not section.bare])
        first = next(section for section in run if not (section.bare and section.path == path[: len(section.path)]))
        named = first.path == path and text[first.body : first.end].strip()
        start = first.body if named else first.start
        cut = passages(text, start, run[-1].end, shape.size, shape.overlap)
        found += [(span, JOINS.join(path)) for span in cut]
    return pieces(text, [span for span, _ in found], [path for _, path in found])


def whole(document: Document, shape: Shape) -> list[Piece]:  # noqa: ARG001 - the shape of a Chunker
    """The document as one passage, however long: `size` and `overlap` do not matter."""
    return pieces(document.text, [(0, len(document.text))], ())


def sentence_units(text: str, size: int) -> list[Span]:
    """The sentences of a text, covering it; one above `size` is cut between words."""
    return [
        unit
        for start, end in paragraphs(text, 0, len(text))
        for found in sentences(text, start, end)
        for unit in fitting(text, *found, size, (words,))
    ]


def _runs(text: str, sections: list[Section], size: int) -> Iterator[list[Section]]:
    """Neighbouring sections that share chunks: each one alone, but the tiny ones together while they fit."""
    run: list[Section] = []
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
