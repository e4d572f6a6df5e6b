"""The headings of a Markdown text: its sections, and the path of headings that a stretch of it stands under.

Paths go into passages as `Piece.heading`; which stretches become passages is up to the strategies in chunkers_*.py.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING

from retrieval.cutting import Span

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# What may begin a list, a quote, code, HTML, a definition or a ruler in CommonMark, and what its parser replaces.
_BEGINS_A_BLOCK = re.compile(r"^(?:[ \t]+[^ \t\n]|[-+*=_>`~<\[]|\d{1,9}[.)])|[\r\0]", re.MULTILINE)
_PLAIN_HEADING = re.compile(r"^(#{1,6})(?![^ \t\n])([^\n]*)\n?", re.MULTILINE)

JOINS = " > "  # stands between the headings of a path


@dataclass(frozen=True, slots=True)
class Section:
    """A heading's own text: [start, end) with the heading line, [body, end) without. `path` ends with that heading.

    `bare` when there is none before the headings below it: the heading's words are in their paths.
    """

    path: tuple[str, ...]
    start: int
    body: int
    end: int
    bare: bool = False


def sections(text: str) -> list[Section]:
    """The sections of a Markdown text in order, covering it; text without headings is one section."""
    marks = headings_of(text) if re.search(r"^ {0,3}(#|=+[ \t]*$|-+[ \t]*$)", text, re.MULTILINE) else []
    ends = [*(start for _, _, start, _ in marks), len(text)]
    found = [Section((), 0, 0, ends[0])]
    above: list[tuple[int, str]] = []
    for (level, title, start, body), end in zip(marks, ends[1:], strict=True):
        above = [(upper, name) for upper, name in above if upper < level] + [(level, title)]
        found.append(Section(tuple(name for _, name in above if name), start, body, end))
    found = [section for section in found if text[section.start : section.end].strip()]
    return [
        replace(section, bare=_is_above(section, below) and not text[section.body : section.end].strip())
        for section, below in zip_longest(found, found[1:])
    ]


class Paths:
    """Looks up the headings that stretches of one text stand under."""

    def __init__(self, found: Sequence[Section]) -> None:
        self._sections = found
        self._starts = [section.start for section in found]

    @classmethod
    def of(cls, text: str) -> "Paths":
        """Those of a Markdown text."""
        return cls(sections(text))

    def over(self, span: Span) -> str:
        """The headings that all of text[start:end] stands under, joined; empty where its sections share none."""
        first, after = max(bisect_right(self._starts, span[0]) - 1, 0), bisect_left(self._starts, span[1])
        touched = self._sections[first:after]
        told = [section.path for section in touched if not section.bare] or [section.path for section in touched]
        return JOINS.join(shared(told)) if told else ""


def _is_above(section: Section, other: Section | None) -> bool:
    return other is not None and other.path[: len(section.path)] == section.path


def headings_of(text: str) -> list[tuple[int, str, int, int]]:
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


def shared(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What all paths, of which there is at least one, begin with."""
    common = paths[0]
    for path in paths[1:]:
        same = next(
            (i for i, (a, b) in enumerate(zip(common, path, strict=False)) if a != b), min(len(common), len(path))
        )
        common = common[:same]
    return common
