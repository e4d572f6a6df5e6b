"""One file block by block and range by range: the same documents and the same account as in one go."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.types import Document
from retrieval.documents import Corpus
from retrieval.reading import BLOCK, Reading, Source, ranges, read

PUBLIC = frozenset({"public"})


def lines(n: int, bad: int = 3) -> str:
    """`n` lines, of which every `bad`-th is no JSON and every fifth is blank."""
    written = (f'{{"id": "d{i}", "text": "Pump {i}."}}' if i % bad else "no JSON" for i in range(n))
    return "".join(("\n" if i % 5 == 4 else "") + line + "\n" for i, line in enumerate(written))


def found(documents: Corpus, size: int) -> list[Document]:
    """The documents, every file of lines read in ranges of about `size` bytes."""

    def by_range(source: Source) -> Iterator[Reading[Document]]:
        for part in ranges(source, size):
            yield from read(part, PUBLIC, "default")

    return list(documents.read(by_range, list(documents.entries())))


def test_a_small_size_makes_many_ranges(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines(40))
    assert len(ranges(Source(tmp_path / "a.jsonl", "a.jsonl"), 40)) > 20


@pytest.mark.parametrize("size", [1, 40, 200, 1 << 20])
def test_a_file_read_in_ranges_gives_the_same_documents_and_outcomes(tmp_path: Path, size: int) -> None:
    (tmp_path / "a.jsonl").write_text(lines(40))
    (tmp_path / "b.txt").write_text("The valve sticks.")
    (tmp_path / "c.jsonl").write_text(lines(9).rstrip("\n"))
    (tmp_path / "d.png").write_bytes(b"\0")
    (tmp_path / "e.jsonl").write_text("")
    (tmp_path / "f.txt").write_bytes(b"\0\1")
    (tmp_path / "c.jsonl").write_text((tmp_path / "c.jsonl").read_text().replace('"d', '"c'))
    whole, shared = Corpus(tmp_path, default_groups=PUBLIC), Corpus(tmp_path, default_groups=PUBLIC)
    assert found(shared, size) == list(whole)
    assert shared.outcomes == whole.outcomes


def test_ranges_begin_at_lines_and_cover_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("x" * 50 + "\n" + "y" * 50 + "\nz\n")
    parts = ranges(Source(tmp_path / "a.jsonl", "a.jsonl"), 60)
    assert [(part.start, part.first_line) for part in parts] == [(0, 1), (51, 2)]
    assert [part.end for part in parts] == [51, None]


def test_a_compressed_file_and_a_text_are_one_range(tmp_path: Path) -> None:
    for name in ("a.jsonl.gz", "a.txt"):
        (tmp_path / name).write_bytes(b"x\n" * 100)
        assert len(ranges(Source(tmp_path / name, name), 1)) == 1


def test_a_file_that_is_gone_is_one_range_and_one_outcome(tmp_path: Path) -> None:
    (part,) = ranges(Source(tmp_path / "a.jsonl", "a.jsonl"))
    (reading,) = read(part, PUBLIC, "default")
    assert reading.trouble is not None
    assert (reading.trouble.path, reading.trouble.code) == ("a.jsonl", "unreadable")


def test_records_come_in_blocks(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines(BLOCK + 2, bad=BLOCK * 9))
    assert [reading.records for reading in read(Source(tmp_path / "a.jsonl", "a.jsonl"), PUBLIC, "t")] == [BLOCK, 2]
