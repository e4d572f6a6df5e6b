"""The file in which one process keeps what it observes about a canary, thinned as it grows.

EVERY answers are all kept, then every second one until as many are kept again, then every fourth, and so on: n answers
make about EVERY * log2(1 + n / EVERY) lines. A hash of the trace id decides which, so neither what was observed nor
the version that answered has a say, both versions lose the same share, and what is kept is as fair as all of it.
Reading is observations.py.
"""

import json
import os
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from domain.releases import Observation

# About 4 MB. At 20 requests a second one is halved after 17 minutes, and two weeks make 200,000 lines. Halving rather
# than tenths of a longer first stretch, which make as many lines: a canary that breaks down when its first stretch is
# over is turned back after 2 minutes and not after 22, and after a day 5.7 hours and not 7.6.
EVERY = 20_000
COUNT_DIGITS = 20  # the width of a count of what was lost, so that a larger one needs no more room


@dataclass(slots=True)
class Sink:
    """The file of this process, only ever appended to, and beside it the count of what could not be written."""

    path: Path
    handle: int
    every: int
    answers: int = 0  # kept so far
    lost: int = 0

    @classmethod
    def opened(cls, folder: Path, every: int) -> "Sink":
        """A fresh file. Raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        host = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname())[:40]
        path = folder / f"{host}-{os.getpid()}-{token_hex(4)}.jsonl"
        sink = cls(path, os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644), every)
        sink.lose(0)  # now, while there is room: a number of the same width still fits when the disk is full
        return sink

    def keep(self, observation: Observation) -> bool:
        """False when the observation is lost; True when it was written, or left out as every second one is.

        Feedback is never left out: its answer may have been kept when more were. It counts only where its answer does.
        """
        one_in = 1 if observation.is_feedback else 2 ** (self.answers // self.every)
        if not drawn(observation.trace_id, one_in):
            return True
        if not self._append(f"{_as_json(observation, one_in)}\n".encode()):
            return False
        self.answers += not observation.is_feedback
        return True

    def lose(self, count: int) -> None:
        """Write down for every reader that so many more were lost; where even that fails, this process knows."""
        self.lost += count
        with suppress(OSError):
            handle = os.open(lost_beside(self.path), os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                os.pwrite(handle, b"%*d\n" % (COUNT_DIGITS, self.lost), 0)
            finally:
                os.close(handle)

    def close(self) -> None:
        """Close the file."""
        os.close(self.handle)

    def _append(self, line: bytes) -> bool:
        """Whether all of the line is in the file; a part of it never stays, the next one would be glued to it."""
        size = os.fstat(self.handle).st_size
        try:
            written = os.write(self.handle, line)
        except OSError:
            written = -1
        if written == len(line):
            return True
        with suppress(OSError):
            os.ftruncate(self.handle, size)
        return False


def drawn(trace_id: str, one_in: int) -> bool:
    """Whether a trace is among one in `one_in`, a power of two; whoever is among fewer is among more."""
    return one_in == 1 or int.from_bytes(sha256(trace_id.encode()).digest()[:8], "big") % one_in == 0


def lost_beside(path: Path) -> Path:
    """Where it is said how many observations the process that writes `path` lost."""
    return path.with_suffix(".lost")


def _as_json(observation: Observation, one_in: int) -> str:
    told = {
        "trace_id": observation.trace_id,
        "at": observation.at,
        "version": observation.version,
        "values": dict(observation.values),
        "paired": {name: list(pair) for name, pair in observation.paired.items()},
    }
    return json.dumps(told if one_in == 1 else told | {"one_in": one_in}, separators=(",", ":"))
