"""What became of the files of a corpus: every file has one outcome, and so has every record that was left out."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class FileStatus(StrEnum):
    """What became of a file or record: WARNING was indexed too, with a remark a person should read."""

    INDEXED = "indexed"
    WARNING = "warning"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """The fate of one file, or of one `record` of it. `code` is stable, `reason` readable.

    The path of a record is that of its file with `:` and where in it the record is.
    """

    path: str
    status: FileStatus
    code: str
    reason: str
    record: bool = False


@dataclass(frozen=True, slots=True)
class FileCounts:
    """How many files came to what; `records` are those left out of files that may have others."""

    indexed: int = 0
    warning: int = 0
    skipped: int = 0
    failed: int = 0
    records: int = 0

    @property
    def total(self) -> int:
        """All files: none is counted twice, and none is missing."""
        return self.indexed + self.warning + self.skipped + self.failed


def counted(outcomes: Iterable[FileOutcome]) -> FileCounts:
    """The files by what became of them."""
    found = dict.fromkeys([*FileStatus, "records"], 0)
    for outcome in outcomes:
        found["records" if outcome.record else outcome.status] += 1
    return FileCounts(**{str(name): n for name, n in found.items()})


def worst_first(outcomes: Iterable[FileOutcome]) -> list[FileOutcome]:
    """The outcomes that somebody should read, in the order in which: failed, skipped, warned of; else as they came."""
    order = (FileStatus.FAILED, FileStatus.SKIPPED, FileStatus.WARNING)
    return sorted((o for o in outcomes if o.status in order), key=lambda outcome: order.index(outcome.status))
