"""One file block by block and range by range: the same documents and the same account as in one go."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from domain.types import Document
from retrieval.documents import Corpus
from retrieval.parsing.parsed import DEFAULTS, Limits
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


def outcomes(root: Path, limits: Limits = DEFAULTS) -> dict[str, tuple[str, str]]:
    """What became of every file and record by name, when nobody says otherwise who may read it but for the default."""
    corpus = Corpus(root, "folder", PUBLIC, limits=limits)
    shown = {document.doc_id: ",".join(sorted(document.groups)) for document in corpus}
    return {o.path: (o.code, shown.get(o.path, "")) for o in corpus.outcomes}


@pytest.mark.parametrize(
    "text",
    [
        "---\nGroups: [hr]\n---\nSecret.", "---\nGROUPS: [hr]\n---\nSecret.", "---\ngroup: hr\n---\nSecret.",
        "---\n'groups ': [hr]\n---\nSecret.", "---\nAcl: [hr]\n---\nSecret.", "---\nTenant: other\n---\nSecret.",
        "---\ntitle: x\ngroups: [hr]\n\nSecret.", "\n\n---\ngroups: [hr]\nSecret.", "---\r\nGroups: [hr]\r\nSecret.",
    ],
)  # fmt: skip
def test_front_matter_that_means_readers_and_would_go_unheard_leaves_the_file_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.md").write_bytes(text.encode())
    assert outcomes(tmp_path) == {"a.md": ("front_matter", "")}


@pytest.mark.parametrize("before", ["", "\n", "\r\n \r\n", "\ufeff", "\ufeff\n"])
def test_front_matter_is_heard_after_blank_lines(tmp_path: Path, before: str) -> None:
    (tmp_path / "a.md").write_bytes(f"{before}---\ngroups: [hr]\n---\nSecret.".encode())
    (document,) = Corpus(tmp_path, "folder", PUBLIC)
    assert (document.groups, document.text) == (frozenset({"hr"}), "Secret.")
    assert document.first_line == 4 + before.count("\n")


def test_rulers_in_a_text_are_no_front_matter(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nOnly a ruler. The working groups: two.\n")
    (tmp_path / "b.md").write_text("Words.\n\n---\ngroups: three of them\n---\n")
    assert outcomes(tmp_path) == {"a.md": ("ok", "public"), "b.md": ("ok", "public")}


@pytest.mark.parametrize("field", ["Groups", "ACL", " groups", "Tenant"])
def test_a_record_whose_readers_would_go_unheard_is_left_out(tmp_path: Path, field: str) -> None:
    record = json.dumps({"id": "r", "text": "Secret.", field: ["hr"]})
    (tmp_path / "a.jsonl").write_text(f'{record}\n{{"id": "s", "text": "Open.", "group": "columns of data may be"}}\n')
    corpus = Corpus(tmp_path, "folder", PUBLIC)
    assert [document.doc_id for document in corpus] == ["s"]
    assert [(o.path, o.code) for o in corpus.outcomes if o.record] == [("a.jsonl:1", "bad_record")]


def test_a_text_or_a_line_larger_than_a_file_may_be_fails_alone_and_is_never_held_whole(tmp_path: Path) -> None:
    for name in ("a.txt", "a.md", "a.jsonl"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(1 << 40)  # without a block on disk: read whole, it would end this process
    (tmp_path / "b.txt").write_text("Open.")
    with gzip.open(tmp_path / "c.jsonl.gz", "wb") as packed:
        packed.write(b'{"id": "c", "text": "Open."}\n' + b" " * 1_000_001)
    told = outcomes(tmp_path, replace(DEFAULTS, file_mb=1))
    assert told.pop("b.txt") == ("ok", "public")
    assert set(told) == {"a.txt", "a.md", "a.jsonl", "c.jsonl.gz"}
    assert set(told.values()) == {("too_big", "")}
