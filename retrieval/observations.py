"""What is observed live about a canary, in a folder that several processes share: numbers, never text.

    <canary>-r<began>/<host>-<pid>-<random>.jsonl      one file per writing process, only ever appended to
    <canary>-r<began>/<host>-<pid>-<random>.lost       how many observations that process could not write

A line is one small write, so that no lock is needed and a killed process leaves at most a torn last line, which counts
as not written. A file that has grown long keeps a sample (thinning.py) and says so in its lines. A canary that begins
again has a folder of its own. Weighing what is read is eval/canary.py.
"""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from pathlib import Path
from sys import intern
from threading import Lock
from types import MappingProxyType
from typing import Any

from domain.errors import StorageError
from domain.releases import Kept, Observation
from retrieval.thinning import COUNT_DIGITS, EVERY, Sink, lost_beside
from retrieval.version_folders import VERSION_NAME


class FolderObservations:
    """The observations below `root`, which need not exist before the first write. Safe for threads."""

    def __init__(self, root: Path, every: int = EVERY) -> None:
        self.root = Path(root)
        self._every = every
        self._writing, self._reading = Lock(), Lock()
        self._sink: Sink | None = None
        self._untold: Counter[Path] = Counter()  # lost while there was no file to say so in, by folder
        self._log: _Log | None = None

    def write(self, canary: str, began: int, observation: Observation) -> bool:
        """Append an observation, unless it is left out because the file has grown long; False when it is lost: a full
        disk, a read-only folder.
        """
        with self._writing:
            folder = self._folder(canary, began)
            try:
                kept = self._sink_in(folder).keep(observation)
            except OSError:
                kept = False
            if not kept:
                self._lose(folder, 1)
            return kept

    def lose(self, canary: str, began: int, count: int) -> None:
        """Remember that so many observations never got here."""
        with self._writing:
            self._lose(self._folder(canary, began), count)

    def read(self, canary: str, began: int) -> tuple[Observation, ...]:
        """All observations of all processes, oldest first, equally old by trace id; none is an empty tuple.

        Reading again costs what was written since. Raises StorageError naming what cannot be read, with the line where
        that is damaged: what happens now is not in it, and must not be taken for what happened before.
        """
        with self._reading:
            return self._log_in(self._folder(canary, began)).read()

    def kept(self, canary: str, began: int) -> Kept:
        """How much of what happened is in `read`. What was lost where not even the count could be written is known to
        the process alone that lost it. Raises as `read` does.
        """
        with self._reading:
            log = self._log_in(self._folder(canary, began))
            log.read()
            own = self._sink if self._sink is not None and self._sink.path.parent == log.folder else None
            lost = log.lost() if own is None else log.lost(but=lost_beside(own.path)) + own.lost
            return Kept(log.one_in(), lost + self._untold[log.folder])

    def folders(self) -> dict[str, list[Path]]:
        """Where what was observed about each version is, one folder for each time it was a canary."""
        found: dict[str, list[Path]] = {}
        for path in sorted(self.root.glob("v*-r*")):
            found.setdefault(path.name.partition("-")[0], []).append(path)
        return {version: paths for version, paths in found.items() if VERSION_NAME.fullmatch(version)}

    def close(self) -> None:
        """Close the file that is written; the next write opens another."""
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    def _sink_in(self, folder: Path) -> Sink:
        if self._sink is None or self._sink.path.parent != folder:
            self.close()
            self._sink = Sink.opened(folder, self._every)
            self._sink.lose(self._untold.pop(folder, 0))
        return self._sink

    def _lose(self, folder: Path, count: int) -> None:
        if self._sink is not None and self._sink.path.parent == folder:
            self._sink.lose(count)
        else:
            self._untold[folder] += count

    def _log_in(self, folder: Path) -> "_Log":
        with _named(folder):
            if self._log is None or self._log.folder != folder or self._log.shrunk():
                self._log = _Log(folder)
            return self._log

    def _folder(self, canary: str, began: int) -> Path:
        return self.root / f"{_checked(canary)}-r{began:d}"


def _checked(version: str) -> str:
    """The name, which becomes a path; the pointer holds no other."""
    if not VERSION_NAME.fullmatch(version):
        raise ValueError(f"{version!r} is no version name: this is a bug")
    return version


# ---------------------------------------------------------------------------------------------- reading


@dataclass(slots=True)
class _File:
    """How far a file has been read, and that one answer in so many is kept where it ends."""

    bytes: int = 0
    lines: int = 0
    one_in: int = 1


@dataclass(slots=True)
class _Log:
    """One canary's observations as far as they have been read."""

    folder: Path
    files: dict[Path, _File] = field(default_factory=dict)
    known: tuple[Observation, ...] = ()

    def shrunk(self) -> bool:
        """True when a file is gone or shorter than it was: somebody mended the log, so it is read from its start."""
        return any(_size(path) < file.bytes for path, file in self.files.items())

    def read(self) -> tuple[Observation, ...]:
        """The observations, with those that were added; the same tuple as before when there are none."""
        with _named(self.folder):
            parts = [(path, *self._added(path)) for path in self._paths(".jsonl")]
        # Only now: a damaged line in one file must not lose what another one had to add.
        self.files.update((path, file) for path, file, _ in parts)
        if added := [observation for _, _, observations in parts for observation in observations]:
            added.sort(key=_age)
            newer = bisect_right(self.known, _age(added[0]), key=_age)  # what comes late comes a little late
            self.known = (*self.known[:newer], *sorted((*self.known[newer:], *added), key=_age))
        return self.known

    def one_in(self) -> int:
        """One answer in so many is kept by the process that keeps fewest."""
        return max((file.one_in for file in self.files.values()), default=1)

    def lost(self, but: Path | None = None) -> int:
        """How many observations the processes say they lost; one of them is left out."""
        with _named(self.folder):
            told = [path.read_bytes().strip() for path in self._paths(".lost") if path != but]
        # On a full disk it may have been left empty; what is longer than what is written there is damaged.
        return sum(int(count) for count in told if count.isdigit() and len(count) <= COUNT_DIGITS)

    def _paths(self, suffix: str) -> list[Path]:
        try:
            return sorted(path for path in self.folder.iterdir() if path.suffix == suffix)
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
        sparsest = max(before.one_in, *(one_in for _, one_in in added))
        read = _File(before.bytes + len(whole) + 1, before.lines + len(lines), sparsest)
        return read, [observation for observation, _ in added]


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    """What the system has against reading, as a StorageError that names what cannot be read."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"Cannot read {error.filename or folder} ({error.strerror or error}): let this user read it."
        ) from error


def _size(path: Path) -> int:
    """Bytes in a file; -1 when it is gone, which a file that cannot be looked at is not."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _age(one: Observation) -> tuple[float, str]:
    return one.at, one.trace_id


def _observation(line: bytes, place: str) -> tuple[Observation, int]:
    """An observation, and that one in so many was kept when it was written."""
    try:
        told: dict[str, Any] = json.loads(line)  # what is in the file; checked as it is taken apart
        paired = {str(k): (float(canary), float(stable)) for k, (canary, stable) in told["paired"].items()}
        observation = Observation(
            trace_id=str(told["trace_id"]),
            at=float(told["at"]),
            version=intern(str(told["version"])),
            values=_shared(tuple((str(k), None if v is None else float(v)) for k, v in told["values"].items())),
            paired=paired or _NO_PAIRS,
        )
        one_in = int(told.get("one_in", 1))
        if not isfinite(observation.at) or one_in < 1:
            raise ValueError(f"at {observation.at} and one_in {one_in}, wanted a time and a number from 1")
        return observation, one_in
    # Too large a number is an OverflowError, too deep a nesting a RecursionError, and neither is one of the others.
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        raise StorageError(f"{place} is damaged ({reason}): mend or remove that line.") from error


_NO_PAIRS: Mapping[str, tuple[float, float]] = MappingProxyType({})


@lru_cache(maxsize=10_000)
def _shared(values: tuple[tuple[str, float | None], ...]) -> Mapping[str, float | None]:
    """The values as a mapping. Most requests end alike, and a mapping of their own would be most of what they weigh."""
    return MappingProxyType(dict(values))
