"""What came back for every question, on disk as it arrives: an evaluation that a crash cannot take back.

One file per evaluation: a header that says what is measured, one line per reply in the order they came, and a last one
that says when it was whole. A whole journal *is* the evaluation: every number is computed from it again, so a new
metric needs no new asking.

A failed reply stays. Asking again until it works would hide what people meet; starting over is a person's decision.
"""

import errno
import fcntl
import io
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from domain.errors import StorageError
from eval.client import Body, Failure

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Header:
    """What is measured. Replies under one header are never taken for replies under another.

    `code` is the digest of what can change a reply; `url` is empty for an evaluation in this process.
    """

    version: str
    dataset: str
    settings: str
    code: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for one question, and after how many milliseconds. The time is no part of what is compared."""

    response: Body | Failure
    latency_ms: float


class Journal:
    """The replies under `header` in the file at `path`, held by one process at a time while the context is open.

    A file with another header, or one that is no journal, is begun anew. The first line that is damaged, and whatever
    follows, was never acknowledged: those questions are asked again. Raises StorageError when another process holds
    the journal, or when the file cannot be written.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path, self.header = Path(path), header
        self.replies: dict[str, Reply] = {}
        self.finished_at = ""  # ISO 8601 in UTC; empty until every question has its reply
        self._file: io.FileIO | None = None

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # No buffer: what is left in one on a full disk would be written, or fail, once more when it is closed.
            self._file = self.path.open("a+b", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel drops it with a process that dies
            self._file.seek(0)
            found = _parsed(self._file.read(), self.header)
            self.replies, self.finished_at = found.replies, found.finished_at
            self._file.truncate(found.good)
            if not found.good:
                self._append(_header_line(self.header))
        except OSError as error:
            self._close()
            raise self._told(error) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def add(self, question_id: str, reply: Reply) -> None:
        """Remember a reply; it survives this process when this returns."""
        try:
            self._append(_reply_line(question_id, reply))
        except OSError as error:
            raise self._told(error) from error
        self.replies[question_id] = reply

    def start_over(self) -> None:
        """Forget every reply."""
        self.replies.clear()
        self.finished_at = ""
        try:
            self._opened.truncate(0)
            self._append(_header_line(self.header))
        except OSError as error:
            raise self._told(error) from error

    def finish(self, at: str) -> None:
        """Say that every question has its reply, and have all of it on disk: from now on it survives the machine."""
        try:
            self._append(_line({"finished_at": at}))
            os.fsync(self._opened.fileno())
        except OSError as error:
            raise self._told(error) from error
        self.finished_at = at

    @property
    def _opened(self) -> io.FileIO:
        if self._file is None:
            raise ValueError("a journal is used inside its context only: this is a bug")
        return self._file

    def _append(self, line: bytes) -> None:
        while line:
            line = line[self._opened.write(line) :]

    def _close(self) -> None:
        if self._file is not None:
            try:
                self._file.close()
            finally:
                self._file = None

    def _told(self, error: OSError) -> StorageError:
        if error.errno in (errno.EAGAIN, errno.EACCES) and isinstance(error, BlockingIOError):
            return StorageError(
                f"Another process is evaluating {self.header.version or self.header.url} on this question set under "
                f"these settings ({self.path}): wait for it, its result will be used."
            )
        return StorageError(
            f"Cannot write {self.path} ({error.strerror or error}): make room or let this user write there, then run "
            "the same again; what has been answered so far is kept."
        )


@dataclass(frozen=True, slots=True)
class Found:
    """What a journal holds: the replies by question id, when it was whole (empty when it is not), and how many of its
    bytes are good.
    """

    replies: dict[str, Reply]
    finished_at: str = ""
    good: int = 0


def read(path: Path, header: Header) -> Found:
    """What is there under `header`; nothing when there is no such journal. Takes no lock."""
    try:
        return _parsed(path.read_bytes(), header)
    except FileNotFoundError:
        return Found({})
    except OSError as error:
        raise StorageError(f"Cannot read {path} ({error.strerror}): let this user read it, or remove it.") from error


def header_of(path: Path) -> Header | None:
    """What the journal at `path` is of; None for a file that is no journal, or one of another format."""
    try:
        with path.open("rb") as file:
            record = json.loads(file.readline())
        told = dict(record)
        return Header(**told) if told.pop("format", None) == FORMAT else None
    except (ValueError, TypeError, RecursionError):
        return None
    except OSError as error:
        raise StorageError(f"Cannot read {path} ({error.strerror}): let this user read it, or remove it.") from error


def _parsed(content: bytes, header: Header) -> Found:
    replies: dict[str, Reply] = {}
    finished_at = ""
    first, end, rest = content.partition(b"\n")
    if first + end != _header_line(header):
        return Found({})
    good = len(first) + 1
    for line in rest.splitlines(keepends=True):
        try:
            if not line.endswith(b"\n"):
                break
            record = json.loads(line)
            if not isinstance(record, dict):
                break
            if "finished_at" in record:
                finished_at = str(record["finished_at"])
            else:
                question_id, reply = _parsed_reply(record)
                replies[question_id] = reply
        except (ValueError, LookupError, TypeError, RecursionError):
            break
        good += len(line)
    return Found(replies, finished_at, good)


def _parsed_reply(record: Mapping[str, object]) -> tuple[str, Reply]:
    failure, response, latency = record.get("failure"), record.get("response"), record["latency_ms"]
    if not isinstance(latency, int | float):
        raise TypeError("latency_ms is no number")
    if isinstance(failure, dict):
        return str(record["id"]), Reply(Failure(str(failure["code"]), str(failure["message"])), latency)
    if not isinstance(response, dict):
        raise TypeError("response is no object")
    return str(record["id"]), Reply(response, latency)


def _header_line(header: Header) -> bytes:
    return _line({"format": FORMAT, **asdict(header)})


def _reply_line(question_id: str, reply: Reply) -> bytes:
    kind = "failure" if isinstance(reply.response, Failure) else "response"
    body = asdict(reply.response) if isinstance(reply.response, Failure) else reply.response
    return _line({"id": question_id, "latency_ms": reply.latency_ms, kind: body})


def _line(record: Mapping[str, object]) -> bytes:
    # ASCII only: a reply may hold half a surrogate pair, which UTF-8 cannot carry.
    return json.dumps(record, ensure_ascii=True).encode() + b"\n"
