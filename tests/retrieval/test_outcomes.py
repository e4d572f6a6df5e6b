"""The report of a build: replaced whole, read as it was written, absent where nobody built, and damage is named."""

from pathlib import Path

import pytest

from domain.errors import StorageError
from domain.ingestion import FileCounts, FileOutcome, FileStatus, counted, worst_first
from retrieval.outcomes import OutcomeFiles

VERSION = "v0123456789ab"
OUTCOMES = (
    FileOutcome("größe.txt", FileStatus.INDEXED, "ok", "1 of 1 indexed"),
    FileOutcome("a.pdf", FileStatus.WARNING, "remarks", "page 2 of 2 has no text"),
    FileOutcome("b.txt", FileStatus.SKIPPED, "blank", "is empty"),
    FileOutcome("c.jsonl:3", FileStatus.FAILED, "not_json", "is not JSON", record=True),
    FileOutcome("d.pdf", FileStatus.FAILED, "no_text", "1 page without any text"),
)


def test_a_report_is_read_as_it_was_written_a_line_a_file(tmp_path: Path) -> None:
    reports = OutcomeFiles(tmp_path / "outcomes")
    reports.write(VERSION, OUTCOMES)
    assert reports.read(VERSION) == OUTCOMES
    assert reports.path(VERSION).read_text("utf-8").count("\n") == len(OUTCOMES)
    assert reports.folders() == {VERSION: tmp_path / "outcomes" / VERSION}


def test_the_last_build_of_a_version_counts(tmp_path: Path) -> None:
    reports = OutcomeFiles(tmp_path)
    reports.write(VERSION, OUTCOMES)
    reports.write(VERSION, OUTCOMES[:1])
    assert reports.read(VERSION) == OUTCOMES[:1]


@pytest.mark.parametrize("version", [VERSION, "../v0123456789ab", "", "."])
def test_where_there_is_none_nothing_is_known(tmp_path: Path, version: str) -> None:
    assert OutcomeFiles(tmp_path).read(version) is None


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    reports = OutcomeFiles(tmp_path)
    reports.write(VERSION, OUTCOMES[:1])
    with reports.path(VERSION).open("a") as report:
        report.write("{oops\n")
    with pytest.raises(StorageError, match="line 2"):
        reports.read(VERSION)


def test_every_file_is_counted_once_and_records_beside_them() -> None:
    assert counted(OUTCOMES) == FileCounts(indexed=1, warning=1, skipped=1, failed=1, records=1)
    assert counted(OUTCOMES).total == 4


def test_the_worst_come_first_and_what_went_well_is_left_out() -> None:
    assert [outcome.path for outcome in worst_first(OUTCOMES)] == ["c.jsonl:3", "d.pdf", "b.txt", "a.pdf"]
