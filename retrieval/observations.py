"""What is observed live about a canary, in a folder that several processes share: numbers, never text.

    <canary>-r<began>/<host>-<pid>-<random>.jsonl      one file per writing process, only ever appended to

A line is one small write, so that no lock is needed and a killed process leaves at most a torn last line, which counts
as not written. A canary that begins again has a folder of its own. Weighing what is read is eval/canary.py.
"""

import json
import os
import re
import shutil
import socket
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from secrets import token_hex
from threading import Lock
from types import MappingProxyType
from typing import Any

from domain.errors import StorageError
from domain.releases import Observation
from retrieval.registry import VERSION_NAME

LINES = 200_000  # per process and canary, about 50 MB: whatever is open then will not be decided by more of it


class FolderObservations:
    """The observations below `root`, which need not exist before the first write. Safe for threads."""

    def __init__(self, root: Path, most_lines: int = LINES) -> None:
        self.root = Path(root)
        self._most_lines = most_lines
        self._writing, self._reading = Lock(), Lock()
        self._sink: _Sink | None = None
        self._log: _Log | None = None

    def write(self, canary: str, began: int, observation: Observation) -> bool:
        """Append an observation; False when it is lost: a full disk, a read-only folder, a file at its cap."""
        line = json.dumps(
            {
                "trace_id": observation.trace_id,
                "at": observation.at,
                "version": observation.version,
                "values": dict(observation.values),
                "paired": {name: list(pair) for name, pair in observation.paired.items()},
            },
            separators=(",", ":"),
        )
        with self._writing:
            try:
                folder = self._folder(canary, began)
                if self._sink is None or self._sink.folder != folder:
                    self.close()
                    self._sink = _Sink.opened(folder)
                return self._sink.lines < self._most_lines and self._sink.append(f"{line}\n".encode())
            except OSError:
                return False

    def read(self, canary: str, began: int) -> tuple[Observation, ...]:
        """All observations of all processes, oldest first, equally old by trace id; none is an empty tuple.

        Reading again costs what was written since. Raises StorageError naming the file and line that is damaged, and
        when a file is at its cap: what happens now is not in it, and must not be taken for what happened before.
        """
        with self._reading:
            folder = self._folder(canary, began)
            if self._log is None or self._log.folder != folder or self._log.shrunk():
                self._log = _Log(folder, self._most_lines)
            return self._log.read()

    def forget(self, version: str) -> None:
        """Remove what was observed about a version. Raises StorageError when that cannot be done."""
        for folder in sorted(self.root.glob(f"{_checked(version)}-r*")):
            try:
                shutil.rmtree(folder)
            except OSError as error:
                raise StorageError(f"Cannot remove {error.filename or folder} ({error.strerror}).") from error

    def close(self) -> None:
        """Close the file that is written; the next write opens another."""
        if self._sink is not None:
            os.close(self._sink.handle)
            self._sink = None

    def _folder(self, canary: str, began: int) -> Path:
        return self.root / f"{_checked(canary)}-r{began:d}"


def _checked(version: str) -> str:
    """The name, which becomes a path; the pointer holds no other."""
    if not VERSION_NAME.fullmatch(version):
        raise ValueError(f"{version!r} is no version name: this is a bug")
    return version


# ---------------------------------------------------------------------------------------------- writing


@dataclass(slots=True)
class _Sink:
    """The file of this process."""

    folder: Path
    handle: int
    lines: int = 0

    @classmethod
    def opened(cls, folder: Path) -> "_Sink":
        folder.mkdir(parents=True, exist_ok=True)
        host = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname())[:40]
        name = f"{host}-{os.getpid()}-{token_hex(4)}.jsonl"
        return cls(folder, os.open(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644))

    def append(self, line: bytes) -> bool:
        """Whether all of the line is in the file; a part of it never stays, the next one would be glued to it."""
        size = os.fstat(self.handle).st_size
        try:
            written = os.write(self.handle, line)
        except OSError:
            written = -1
        if written == len(line):
            self.lines += 1
            return True
        with suppress(OSError):
            os.ftruncate(self.handle, size)
        return False


# ---------------------------------------------------------------------------------------------- reading


@dataclass(slots=True)
class _File:
    """How far a file has been read."""

    bytes: int = 0
    lines: int = 0


@dataclass(slots=True)
class _Log:
    """One canary's observations as far as they have been read."""

    folder: Path
    most_lines: int
    files: dict[Path, _File] = field(default_factory=dict)
    known: tuple[Observation, ...] = ()

    def shrunk(self) -> bool:
        """True when a file is gone or shorter than it was: somebody mended the log, so it is read from its start."""
        return any(not path.is_file() or path.stat().st_size < file.bytes for path, file in self.files.items())

    def read(self) -> tuple[Observation, ...]:
        """The observations, with those that were added; the same tuple as before when there are none."""
        try:
            parts = [(path, *self._added(path)) for path in self._paths()]
        except OSError as error:
            raise StorageError(
                f"Cannot read {error.filename or self.folder} ({error.strerror}): let this user read it."
            ) from error
        if full := [path for path, file, _ in parts if file.lines >= self.most_lines]:
            raise StorageError(
                f"{full[0]} is full, it has {self.most_lines} observations: what the canary does now is not seen any "
                "more, so promote it or roll it back."
            )
        # Only now: a damaged line in one file must not lose what another one had to add.
        self.files.update((path, file) for path, file, _ in parts)
        if added := [observation for _, _, observations in parts for observation in observations]:
            added.sort(key=_age)
            newer = bisect_right(self.known, _age(added[0]), key=_age)  # what comes late comes a little late
            self.known = (*self.known[:newer], *sorted((*self.known[newer:], *added), key=_age))
        return self.known

    def _paths(self) -> list[Path]:
        try:
            return sorted(path for path in self.folder.iterdir() if path.suffix == ".jsonl")
        except FileNotFoundError:  # nothing was observed yet; a folder that may not be listed is another matter
            return []

    def _added(self, path: Path) -> "tuple[_File, list[Observation]]":
        """How far a file is read then, and what it has to add. A last line without its end is not there yet."""
        before = self.files.get(path, _File())
        with path.open("rb") as file:
            file.seek(before.bytes)
            whole, ended, _ = file.read().rpartition(b"\n")
        if not ended:
            return before, []
        lines = whole.split(b"\n")
        added = [_observation(line, f"{path}, line {before.lines + i}") for i, line in enumerate(lines, 1)]
        return _File(before.bytes + len(whole) + 1, before.lines + len(lines)), added


def _age(one: Observation) -> tuple[float, str]:
    return one.at, one.trace_id


def _observation(line: bytes, place: str) -> Observation:
    try:
        told: dict[str, Any] = json.loads(line)  # what is in the file; checked as it is taken apart
        return Observation(
            trace_id=str(told["trace_id"]),
            at=float(told["at"]),
            version=str(told["version"]),
            values=_shared(tuple((str(k), None if v is None else float(v)) for k, v in told["values"].items())),
            paired={str(k): (float(canary), float(stable)) for k, (canary, stable) in told["paired"].items()},
        )
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        raise StorageError(f"{place} is damaged ({reason}): mend or remove that line.") from error


@lru_cache(maxsize=10_000)
def _shared(values: tuple[tuple[str, float | None], ...]) -> Mapping[str, float | None]:
    """The values as a mapping. Most requests end alike, and a mapping of their own would be most of what they weigh."""
    return MappingProxyType(dict(values))
