"""Files read in a process of their own, so that a hostile one costs only itself: limits, and no trace.

The process is used again for the next file; one that died or was ended is replaced. It is started as a program, not
forked, so it does not matter which threads this process has or what it is a worker of.
"""

import atexit
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

import orjson

from domain.types import Mark
from retrieval.parsing.parsed import Limits, Parsed, Refused
from retrieval.parsing.worker import HEAD, out_of_memory

USES = 500  # files a process reads before it is replaced: what a library leaks ends with it
STARTING_S = 30.0  # a busy machine starts a process slowly, and that is not the file's time
CRASHED = "made its reader fail, for want of memory or because it is damaged or hostile: look at it, or leave it out"
_ROOT = Path(__file__).resolve().parents[2]


class Apart:
    """Processes that read files, made as they are needed: as many as files are read at once, one for most."""

    def __init__(self) -> None:
        self._idle: list[_Process] = []
        self._lock = Lock()

    def parse(self, path: Path, ending: str, limits: Limits) -> Parsed:
        """The document in a file. Raises Refused; whatever becomes of its process, the next file has one."""
        if (size := path.stat().st_size) > limits.file_mb * 1_000_000:
            raise Refused(
                "too_big",
                f"has {size / 1e6:,.0f} MB, at most {limits.file_mb} are read: split it, or raise ingestion.file_mb",
            )
        with self._lock:
            process = self._idle.pop() if self._idle else None
        process = process or _Process()
        try:
            reply = process.ask(path, ending, limits)
        except BaseException:
            process.end()
            raise
        if process.uses < USES:
            with self._lock:
                self._idle.append(process)
        else:
            process.end()
        if "code" in reply:
            raise Refused(str(reply["code"]), str(reply["reason"]))
        marks = tuple(Mark(start, name) for start, name in reply["marks"])
        return Parsed(reply["text"], marks, reply["fields"], tuple(reply["remarks"]), tuple(reply["records"]))

    def pids(self) -> list[int]:
        """The processes that wait for a file."""
        with self._lock:
            return [process.pid for process in self._idle]

    def close(self) -> None:
        """Ends the idle processes. Whoever parses afterwards gets new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()


class _Process:
    """One process and its pipes."""

    def __init__(self) -> None:
        self.uses = 0
        paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "retrieval.parsing.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # libraries complain at length about what they were given
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,  # so that Ctrl-C is ours to handle, and what it starts ends with it
        )

    def ask(self, path: Path, ending: str, limits: Limits) -> dict[str, Any]:  # JSON of worker.py
        """The reply about one file. Raises Refused when there is none in time, or none at all."""
        started = STARTING_S if self.uses == 0 else 0.0
        self.uses += 1
        request = orjson.dumps(
            {
                "path": os.fsencode(path.absolute()).decode("latin-1"),
                "ending": ending,
                "limits": asdict(limits),
            }
        )
        deadline = monotonic() + limits.seconds + started
        try:
            os.write(self._stdin, len(request).to_bytes(HEAD, "little") + request)
            size = int.from_bytes(self._read(HEAD, deadline, limits), "little")
            if size > limits.memory_mb * 1_000_000:  # it cannot have held so much: it is not itself any more
                raise Refused("crashed", CRASHED)
            reply: dict[str, Any] = orjson.loads(self._read(size, deadline, limits))
        except (BrokenPipeError, ValueError):
            raise self._died(limits) from None
        return reply

    def _read(self, size: int, deadline: float, limits: Limits) -> bytes:
        """So many bytes of the reply."""
        found = bytearray()
        while len(found) < size:
            ready, _, _ = select.select([self._stdout], [], [], max(deadline - monotonic(), 0))
            if not ready:
                raise _late(limits)
            part = os.read(self._stdout, min(size - len(found), 1 << 20))
            if not part:
                raise self._died(limits)
            found += part
        return bytes(found)

    def _died(self, limits: Limits) -> Refused:
        """What to say when the process is gone: by its own limit of memory, or otherwise."""
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = 0
        if code == -signal.SIGALRM:
            return _late(limits)
        if code == -signal.SIGKILL:  # by nobody here: the system had no memory left
            return Refused("too_big", out_of_memory(limits))
        return Refused("crashed", CRASHED)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def _stdin(self) -> int:
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    @property
    def _stdout(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def end(self) -> None:
        """Ends the process and what it started; harmless when it has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def _late(limits: Limits) -> Refused:
    return Refused(
        "timeout", f"was not read in {limits.seconds:g} seconds: split it, raise ingestion.seconds, or leave it out"
    )


PROCESSES = Apart()
atexit.register(PROCESSES.close)
