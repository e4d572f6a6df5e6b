"""Where in its document a passage stands, as a person would be told: "page 12", "slides 3-5", "lines 40-52".

What the words are is up to whoever read the file (parsing/); here they are only looked up and put together.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from domain.types import Document, SourceRef

Located = Callable[[int, int], SourceRef]  # (start, length) in characters of the document's text


def sources(document: Document) -> Located:
    """What gives the source reference of any passage of a document; equal places share one."""
    plain = SourceRef(document.doc_id, document.title, document.uri, document.source, document.published)
    place = _by_mark(document) if document.marks else _by_line(document) if document.first_line else None
    if place is None:
        return lambda _start, _length: plain
    last = plain

    def located(start: int, length: int) -> SourceRef:
        nonlocal last
        told = place(start, start + max(length, 1))
        if told != last.place:
            last = replace(plain, place=told)
        return last

    return located


def source_of(fields: Mapping[str, Any]) -> SourceRef:  # JSON as written by parts.py
    """The source reference of a line's fields; versions from before there were places say none."""
    return SourceRef(
        fields["doc_id"],
        fields["title"],
        fields["uri"],
        fields["source"],
        fields["published"],
        fields.get("place", ""),
    )


def joined(first: str, last: str) -> str:
    """One place from its two ends: "page 3" and "page 5" are "pages 3-5"; unlike ones are told both."""
    if first == last:
        return first
    begins, ends = _numbered(first), _numbered(last)
    if begins and ends and begins[1] == ends[1]:
        return f"{begins[1]}s {begins[2]}-{ends[2]}"
    if not first[-1:].isalpha() and ":" in first and ":" in last:  # times
        return f"{first}-{last}"
    return f"{first} to {last}" if first and last else first or last


def _numbered(name: str) -> re.Match[str] | None:
    return re.fullmatch(r"(.*[^\W\d]) (\d+)", name)


def _by_mark(document: Document) -> Callable[[int, int], str]:
    marks = document.marks
    starts = [mark.start for mark in marks]

    def place(start: int, end: int) -> str:
        first = bisect_right(starts, start) - 1
        last = bisect_left(starts, end) - 1
        if last < 0:  # before the first mark nothing is said
            return ""
        return joined(marks[max(first, 0)].name, marks[max(last, first, 0)].name)

    return place


def _by_line(document: Document) -> Callable[[int, int], str]:
    ends = [match.start() for match in re.finditer("\n", document.text)]

    def place(start: int, end: int) -> str:
        first, last = (document.first_line + bisect_left(ends, at) for at in (start, end - 1))
        return joined(f"line {first}", f"line {last}")

    return place
