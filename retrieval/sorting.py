"""Lines sorted by key in bounded memory: runs are sorted, put on disk, and merged as they are read back.

Many runs of one length become one longer run, so neither open files nor read buffers grow with the lines. What the
lines say is not looked at. Temporary files have no name, so nothing is left behind whatever happens.
Source: Knuth, The Art of Computer Programming 3, section 5.4.1.
"""

import heapq
import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

ROOM = 8 << 20  # bytes of lines held: a small library never touches the disk here, and Python takes five times as much
OVERHEAD = 250  # bytes that Python takes for one keyed line beside its content
BUFFER = 128 << 10  # bytes read ahead in each run
RUNS = 64  # of one length at most: half a gigabyte of lines is written once, 32 GB twice, 2 TB three times
_LENGTHS = struct.Struct("<III")


class KeyedLine(NamedTuple):
    """A line with what sorts it; keys are unique. `digest` is carried along."""

    key: bytes
    digest: bytes
    line: bytes


class SortedLines:
    """Add lines in any order, then iterate over them by key, as often as needed. `folder` takes what does not fit."""

    def __init__(self, folder: Path, room: int = ROOM, runs: int = RUNS) -> None:
        self._folder, self._room, self._most = folder, room, runs
        self._held: list[KeyedLine] = []
        self._bytes = 0
        self._levels: list[list[IO[bytes]]] = []  # runs by length, the shortest first
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, line: KeyedLine) -> None:
        """Takes one more. Raises OSError when the disk does not take a full run."""
        self._held.append(line)
        self._count += 1
        self._bytes += len(line.key) + len(line.digest) + len(line.line) + OVERHEAD
        if self._bytes >= self._room:
            self._spill()

    def __iter__(self) -> Iterator[KeyedLine]:
        self._held.sort()
        return heapq.merge(self._held, *map(_read, chain(*self._levels)))

    def _spill(self) -> None:
        self._held.sort()
        self._write(self._held, 0)
        self._held, self._bytes = [], 0

    def _write(self, lines: Iterable[KeyedLine], level: int) -> None:
        """Sorted lines as one more run of a level; when that is full, its runs as one of the next."""
        if level == len(self._levels):
            self._levels.append([])
        run: IO[bytes] = TemporaryFile(dir=self._folder, buffering=BUFFER)  # noqa: SIM115 - closed by `close`
        runs = self._levels[level]
        runs.append(run)
        for entry in lines:
            run.write(_LENGTHS.pack(*map(len, entry)))
            run.writelines(entry)
        run.flush()
        if len(runs) == self._most:
            self._write(heapq.merge(*map(_read, runs)), level + 1)
            for each in runs:
                each.close()
            runs.clear()

    def close(self) -> None:
        """Gives the disk back."""
        for run in chain(*self._levels):
            run.close()


def _read(run: IO[bytes]) -> Iterator[KeyedLine]:
    run.seek(0)
    while lengths := run.read(_LENGTHS.size):
        yield KeyedLine(*(run.read(length) for length in _LENGTHS.unpack(lengths)))
