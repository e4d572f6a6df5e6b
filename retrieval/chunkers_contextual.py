"""The strategy whose passages say where they come from: those of `heading`, each with a context line made up for it.

The line is title > headings > a sentence: the one before the passage where it begins in the middle of a section,
otherwise the sentence that sums the document up best. No model writes it, so it costs next to nothing, and it says
nothing that the document does not say. It is indexed and never quoted: docs/adr/0052.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

from domain.packing import cost
from domain.types import Document
from retrieval.analysis import analyse
from retrieval.chunkers_plain import heading
from retrieval.cutting import Span, paragraphs, sentences, words
from retrieval.headings import JOINS
from retrieval.pieces import Piece, Shape

SENTENCE_TOKENS = 40  # of a context line's sentence: with title and headings it must fit beside a passage
LEAST_TOKENS = 6  # a shorter sentence sums nothing up
WINDOW = 1200  # characters before a passage in which the sentence before it is looked for
READ = 400  # sentences of a document that may sum it up: it says early what it is about


def contextual(document: Document, shape: Shape) -> list[Piece]:
    """The pieces of `heading`, each with its context; where nothing else is known that is the title alone."""
    found = heading(document, shape)
    if not found:
        return []
    summary = summed_up(document.text)
    told: list[Piece] = []
    for i, piece in enumerate(found):
        follows = i > 0 and found[i - 1].heading == piece.heading
        said = _before(document.text, found[i - 1].start, piece.start) if follows else summary
        if said in piece.text:  # it is there already
            said = ""
        told.append(replace(piece, context=_line(document.title, piece.heading, said)))
    return told


def summed_up(text: str) -> str:
    """The sentence that shares most with its document: by how often its words occur there, for its length.

    Ties go to the earlier one. Empty where no sentence is of a size to sum anything up.
    """
    spans = [span for block in paragraphs(text, 0, len(text)) for span in _prose(text, block)][:READ]
    tokens = [analyse(text[slice(*span)]) for span in spans]
    often = Counter(token for of_one in tokens for token in set(of_one))
    best, most = "", 0.0
    for span, of_one in zip(spans, tokens, strict=True):
        distinct = set(of_one)
        weight = sum(often[token] for token in distinct) / sqrt(len(of_one)) if of_one else 0.0
        if weight > most:
            best, most = text[slice(*span)].strip(), weight
    return " ".join(best.split())


def _prose(text: str, block: Span) -> list[Span]:
    """The sentences of a paragraph; none where it is a heading, code, a table or a list."""
    written = text[slice(*block)].lstrip()
    if written.startswith(("#", "```", "~~~", "|", ">", "- ", "* ", "+ ", "<", "    ")):
        return []
    return [
        span for span in sentences(text, *block) if LEAST_TOKENS <= cost(text[slice(*span)].strip()) <= SENTENCE_TOKENS
    ]


def _before(text: str, earliest: int, start: int) -> str:
    """The sentence that ends where a passage begins, no further back than `earliest`; shortened where it is long."""
    begins = max(earliest, start - WINDOW)
    last = sentences(text, begins, start)[-1:]
    said = " ".join(text[slice(*last[0])].split()) if last else ""
    return _shortened(said)


def _shortened(said: str) -> str:
    """As many of the last words as fit: what comes right before a passage says most about it."""
    kept: list[str] = []
    room = float(SENTENCE_TOKENS)
    for start, end in reversed(words(said, 0, len(said))):
        room -= cost(said[start:end])
        if room < 0:
            break
        kept.append(said[start:end])
    return "".join(reversed(kept)).strip()


def _line(title: str, path: str, said: str) -> str:
    parts: Sequence[str] = [title, *path.split(JOINS), said]
    return JOINS.join(part for i, part in enumerate(parts) if part and part not in parts[:i])
