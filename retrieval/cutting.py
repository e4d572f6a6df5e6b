"""Places where a text may be cut: between paragraphs, lines, sentences, words and, at last, characters.

Every function cuts text[start:end] into adjacent spans that cover it, so whoever packs them again loses nothing.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from domain.packing import cost

Span = tuple[int, int]  # start and end offsets into a text

_FULL_STOP = re.compile(r"[。！？；｡]+[」』”’）》】]*\s*")


def paragraphs(text: str, start: int, end: int) -> list[Span]:
    """Paragraphs: blank lines part them."""
    return _between(start, end, (match.end() for match in re.compile(r"\n[ \t]*\n\s*").finditer(text, start, end)))


def lines(text: str, start: int, end: int) -> list[Span]:
    """Lines."""
    return _between(start, end, (match.end() for match in re.compile(r"\n\s*").finditer(text, start, end)))


def words(text: str, start: int, end: int) -> list[Span]:
    """Words, each with the blanks that follow it."""
    return _between(start, end, (match.end() for match in re.compile(r"\S\s+").finditer(text, start, end)))


def sentences(text: str, start: int, end: int) -> list[Span]:
    """Sentences by syntok where there are spaces, and at full stops of scripts that put none after them."""
    cuts = {match.end() for match in _FULL_STOP.finditer(text, start, end)}
    passage = text[start:end]
    if re.search(r"[.!?…]\S*\s", passage):
        split, tokenize = _syntok()
        cuts.update(start + tokens[0].offset for tokens in split(tokenize(passage)) if tokens)
    return _between(start, end, sorted(cuts))


@cache
def _syntok() -> tuple[Any, Any]:  # syntok is untyped
    from syntok import segmenter
    from syntok.tokenizer import Tokenizer

    return segmenter.split, Tokenizer().tokenize


def characters(text: str, start: int, end: int, size: int) -> Iterator[Span]:
    """Windows of a text that offers no place to cut, never between a letter and the marks upon it."""
    begin, total = start, 0.0
    for i in range(start, end):
        one = cost(text[i])
        total += one
        if total > size and unicodedata.category(text[i])[0] != "M":
            yield begin, i
            begin, total = i, one
    if begin < end:
        yield begin, end


def _between(start: int, end: int, cuts: Iterable[int]) -> list[Span]:
    """The spans between ascending cuts, covering [start, end)."""
    inside = [cut for cut in cuts if start < cut < end]
    return list(zip([start, *inside], [*inside, end], strict=True))
