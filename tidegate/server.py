"""The one server of a data folder, written down and found again - never anybody else's.

A record beside the versions says which process serves and since when; a process is ours only if both still agree, so
that a recycled process id is never taken for it. Every process which that server starts carries its mark in the
environment, so that what it leaves behind when it is killed can be told from everybody else's. How it is started and
ended is starting.py and ending.py.
"""

import errno
import http.client
import json
import os
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psutil

from domain.errors import StorageError
from retrieval.disk import cannot_write
from tidegate.code import measuring
from tidegate.effective import digest

if TYPE_CHECKING:
    from tidegate.settings import Settings

MARK = "SERVER_OF_TIDEGATE"  # not TIDEGATE_...: those are settings, and an unknown one is refused
CLOCK_S = 2.0  # a start time is counted from the boot time, which moves when the machine's clock is set


@dataclass(frozen=True, slots=True)
class Server:
    """A process that serves, or is about to. `started` is the operating system's own start time of it; `folder` is
    where its Ray keeps sockets and logs, empty until that is known. `settings` and `code` are the digests of what it
    answers with, empty when nobody wrote them down.
    """

    pid: int
    started: float
    url: str
    folder: str = ""
    settings: str = ""
    code: str = ""

    @classmethod
    def of(cls, pid: int, url: str, folder: str = "") -> Self:
        """The server that a process of now is. Raises psutil.NoSuchProcess when there is none."""
        return cls(pid, psutil.Process(pid).create_time(), url, folder)

    @property
    def process(self) -> Any:  # psutil.Process | None
        """That very process while it runs, else None."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < CLOCK_S
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:
            return None

    @property
    def alive(self) -> bool:
        """True when that very process still runs."""
        return self.process is not None

    @property
    def mark(self) -> str:
        """What the processes of this server carry in their environment under MARK."""
        return f"{self.pid} {self.started}"

    def ready(self) -> tuple[bool, str]:
        """Whether it answers, and what it is waiting for when it does not."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy cannot reach our loopback
        try:
            with direct.open(f"{self.url}/readyz", timeout=5) as reply:
                return reply.status == 200, ""
        except urllib.error.HTTPError as error:
            try:
                return False, str(json.loads(error.read())["error"]["message"])
            except (ValueError, KeyError, TypeError):
                return False, f"HTTP {error.code}"
        except (OSError, http.client.HTTPException) as error:
            return False, str(getattr(error, "reason", "") or error)


# ---------------------------------------------------------------------------------------------- the data folder


def record_path(settings: "Settings") -> Path:
    """Where the running server of this data folder is written down."""
    return settings.data_dir / "server.json"


def log_path(settings: "Settings") -> Path:
    """What a server in the background has to say."""
    return settings.data_dir / "server.log"


def check_writable(settings: "Settings") -> None:
    """Raises StorageError when the data folder cannot be written, without writing anything."""
    there = settings.data_dir
    while not os.path.lexists(there):
        there = there.parent
    if not there.is_dir():
        raise cannot_write(there, OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    if not os.access(there, os.W_OK | os.X_OK):
        code = errno.EROFS if os.statvfs(there).f_flag & os.ST_RDONLY else errno.EACCES
        raise cannot_write(there, OSError(code, os.strerror(code)))


def recorded(settings: "Settings") -> Server | None:
    """The server that was written down, whether it still runs or not. Raises StorageError for a damaged record."""
    path = record_path(settings)
    try:
        told = json.loads(path.read_text("utf-8"))
        pid = int(told["pid"])
        if pid < 1:
            raise ValueError(f"{pid} is no process")
        digests = str(told.get("settings", "")), str(told.get("code", ""))
        return Server(pid, float(told["started"]), str(told["url"]), str(told["folder"]), *digests)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise StorageError(f"{path} cannot be read ({type(error).__name__}: {error}): delete it.") from error


def running(settings: "Settings") -> Server | None:
    """The server of this data folder, or None. A record whose process is gone counts as none."""
    there = recorded(settings)
    return there if there and there.alive else None


def record(settings: "Settings", url: str, folder: str = "") -> None:
    """Write down that this process serves, and mark what it starts from now on. Raises StorageError if it cannot."""
    me = replace(Server.of(os.getpid(), url, folder), settings=digest(settings), code=measuring())
    path = record_path(settings)
    aside = path.with_name(f".{path.name}.{me.pid}")
    try:
        aside.write_text(json.dumps(asdict(me)), "utf-8")
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise cannot_write(path, error) from error
    os.environ[MARK] = me.mark


def forget(settings: "Settings", pid: int) -> None:
    """Remove the record of that process; anybody else's stays."""
    with suppress(StorageError):  # damaged: not ours to judge
        if (there := recorded(settings)) and there.pid == pid:
            record_path(settings).unlink(missing_ok=True)
