"""Text in columns of a terminal: wrapped to so many cells, two texts beside each other."""

import re
import unicodedata
from collections.abc import Iterator
from itertools import zip_longest

GAP = 3


def cells(text: str) -> int:
    """How many cells of a terminal a text takes: two for wide characters, none for combining ones."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1 for c in text
    )


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells, broken at blanks, within a word only where it is longer than a line."""
    lines = []
    for paragraph in text.splitlines() or [""]:
        line = ""
        for word in paragraph.split():
            for piece in _cut(word, width):
                if line and cells(line) + 1 + cells(piece) > width:
                    lines.append(line)
                    line = piece
                else:
                    line = f"{line} {piece}" if line else piece
        lines.append(line)
    return lines


def beside(left: str, right: str, width: int) -> Iterator[str]:
    """Two texts in columns of equal width, `width` cells together."""
    half = (width - GAP) // 2
    for ours, theirs in zip_longest(wrapped(left, half), wrapped(right, half), fillvalue=""):
        yield f"{padded(ours, half + GAP)}{theirs}".rstrip()


def padded(text: str, width: int) -> str:
    """The text with blanks behind it up to `width` cells."""
    return text + " " * (width - cells(text))


def _cut(word: str, width: int) -> Iterator[str]:
    """A word in pieces of at most `width` cells; a letter keeps what combines with it."""
    piece = ""
    for letter in re.findall(r".[\u0300-\u036f]*", word, re.DOTALL):
        if piece and cells(piece) + cells(letter) > width:
            yield piece
            piece = ""
        piece += letter
    yield piece
