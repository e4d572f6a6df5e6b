"""What became of every file of a build, kept beside the versions: `outcomes/<version>/report.jsonl`, a line a file.

Not part of a version: the same documents beside other broken files are the same version, and the last build of it is
what counts. A version that another machine built has no report here, which is not the same as nothing to report.
"""

from collections.abc import Sequence
from pathlib import Path

from domain.errors import StorageError
from domain.ingestion import FileOutcome
from retrieval.jsonrecords import decoded, encoded, plain, read_lines, replace_file
from retrieval.version_folders import VERSION_NAME

REPORT = "report.jsonl"


class OutcomeFiles:
    """The reports in `root`, which need not exist before the first one."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def path(self, version: str) -> Path:
        """Where the report of a version lies, or would."""
        return self.root / version / REPORT

    def write(self, version: str, outcomes: Sequence[FileOutcome]) -> None:
        """Keep the outcomes of a build in place of those of earlier ones. Raises StorageError."""
        path = self.path(version)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, b"".join(encoded(plain(outcome)) + b"\n" for outcome in outcomes))
        except OSError as error:
            raise StorageError(
                f"{path} cannot be written ({error.strerror}): version {version} is built, what became of its files is "
                "not kept; make room, or let this user write, and build again."
            ) from error

    def read(self, version: str) -> tuple[FileOutcome, ...] | None:
        """The outcomes of the last build of a version, None when none was here. Raises StorageError when damaged."""
        path = self.path(version)
        if not VERSION_NAME.fullmatch(version) or not path.is_file():
            return None
        return tuple(
            decoded(FileOutcome, f"{path}, line {number}", line) for number, line in enumerate(read_lines(path), 1)
        )

    def folders(self) -> dict[str, Path]:
        """The folder about each version that has a report."""
        return {path.name: path for path in sorted(self.root.glob("v*")) if VERSION_NAME.fullmatch(path.name)}
