"""Where a passage stands: from marks of whoever read the file, or from its lines."""

from pathlib import Path

import pytest

from domain.types import Document, Mark
from retrieval.chunking import chunks_of
from retrieval.documents import Corpus
from retrieval.places import joined, sources


def document(text: str, marks: tuple[Mark, ...] = (), first_line: int = 0) -> Document:
    return Document("d", "D", text, "", "", "", frozenset({"public"}), "t", "h", marks, first_line)


PAGES = (Mark(2, "page 1"), Mark(10, "page 2"), Mark(20, "page 3"))


@pytest.mark.parametrize(
    ("start", "length", "place"),
    [
        (2, 8, "page 1"),
        (2, 9, "pages 1-2"),
        (10, 10, "page 2"),
        (5, 25, "pages 1-3"),
        (20, 1, "page 3"),
        (25, 99, "page 3"),
        (0, 2, ""),
        (0, 5, "page 1"),
    ],
)
def test_a_passage_is_where_the_last_mark_before_it_says(start: int, length: int, place: str) -> None:
    assert sources(document("x" * 30, PAGES))(start, length).place == place


@pytest.mark.parametrize(
    ("first", "last", "told"),
    [
        ("slide 3", "slide 5", "slides 3-5"),
        ("sheet Prices, row 2", "sheet Prices, row 14", "sheet Prices, rows 2-14"),
        ("sheet Prices, row 2", "sheet Costs, row 1", "sheet Prices, row 2 to sheet Costs, row 1"),
        ("paragraph 4", "table 1", "paragraph 4 to table 1"),
        ("00:01:23", "00:02:00", "00:01:23-00:02:00"),
        ("cell 5", "cell 5", "cell 5"),
        ("", "page 1", "page 1"),
    ],
)
def test_two_ends_are_told_as_one_place(first: str, last: str, told: str) -> None:
    assert joined(first, last) == told


def test_a_document_without_marks_or_lines_says_no_place_and_shares_one_reference() -> None:
    located = sources(document("one two"))
    assert located(0, 3) is located(4, 3)
    assert located(0, 3).place == ""


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_are_those_of_the_file_whatever_ends_them(tmp_path: Path, end: str) -> None:
    lines = ["---", "title: Valves", "---", "# Valves", "", "one", "two", "", "three"]
    (tmp_path / "a.md").write_bytes(end.join(lines).encode())
    (read,) = Corpus(tmp_path)
    located = sources(read)
    found = {word: located(read.text.index(word), len(word)).place for word in ("# Valves", "one", "two", "three")}
    assert found == {"# Valves": "line 4", "one": "line 6", "two": "line 7", "three": "line 9"}


def test_mixed_line_ends_count_one_line_each(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"first torque\rsecond\r\nthird\nfourth")
    (read,) = Corpus(tmp_path)
    assert [chunk.source.place for chunk in chunks_of(read, "whole")] == ["lines 1-4"]
    assert sources(read)(read.text.index("third"), 5).place == "line 3"
