"""The one server of a data folder: started in the background, found again, and ended - never anybody else's.

A record beside the versions says which process serves and since when; a process is ours only if both still agree, so
that a recycled process id is never ended. Every process which that server starts carries its mark in the environment,
so that what it leaves behind when it is killed can be told from everybody else's. Whoever starts or serves holds a lock
on the folder, which the kernel drops with the process.
"""

import errno
import fcntl
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psutil

from domain.errors import AddressTaken, Forbidden, NotReady, StorageError
from retrieval.registry import cannot_write
from tidegate.code import measuring
from tidegate.effective import digest

if TYPE_CHECKING:
    from tidegate.settings import Settings

STOP_S = 45.0  # draining gateways and ending Ray takes about five seconds; on a busy machine several times that
START_S = 300.0  # loading the encoder in every replica, on a machine that is busy with something else
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


@contextmanager
def claim(settings: "Settings") -> Iterator[None]:
    """Nobody else starts or serves from this data folder while the block runs.

    Raises AddressTaken when somebody does already, StorageError when the folder cannot be written.
    """
    path = settings.data_dir / "server.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("ab")
    except OSError as error:
        raise cannot_write(path, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            refuse_second(settings)  # knows more, when that one serves already
            raise AddressTaken(
                f"Another process is starting a server on {settings.data_dir} at this moment: "
                "wait for it (`tidegate status`), or choose another data_dir."
            ) from error
        refuse_second(settings)
        yield


def refuse_second(settings: "Settings") -> None:
    """Raises AddressTaken when this data folder is being served. Clears up after a server that was killed."""
    there = recorded(settings)
    if there is None:
        return
    if there.alive:
        raise AddressTaken(
            f"{settings.data_dir} is already served at {there.url} by process {there.pid}: "
            "use it, or end it with `tidegate down`."
        )
    end(settings, there)


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
    except (OSError, ValueError, TypeError, LookupError) as error:
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


# ---------------------------------------------------------------------------------------------- starting


def launch(settings: "Settings", arguments: Sequence[str], waiting: Callable[[str], None]) -> Server:
    """A server in the background, ready to answer. `waiting` is told what it waits for.

    Raises NotReady with what its log says when it gives up or takes too long; nothing is left running then, and
    neither when the wait is interrupted.
    """
    log = log_path(settings)
    try:
        output = log.open("ab")
    except OSError as error:
        raise cannot_write(log, error) from error
    with output:
        begins = output.tell()
        child = subprocess.Popen(  # noqa: S603 - this program with its own arguments
            # -P: a folder called `eval` or `domain` where the person happens to stand must not be taken for ours.
            [sys.executable, "-P", "-m", "tidegate", "serve", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # a Ctrl-C in this terminal is not meant for it
        )
    mine = Server.of(child.pid, "")
    try:
        deadline = time.monotonic() + START_S
        while (code := child.poll()) is None and time.monotonic() < deadline:
            there = running(settings)
            if there and there.pid == child.pid:
                ready, why = there.ready()
                if ready and there.folder:  # written down last: only now can a killed one be cleared up without a trace
                    return there
                waiting(why)
            time.sleep(0.25)
    except BaseException:
        with undisturbed():
            end(settings, mine)
            child.wait()
        raise
    end(settings, mine)
    reason = _last_words(log, begins)
    if code is None:
        raise NotReady(f"The server was not ready within {START_S:g} s: {reason} {log} may say more.")
    if code < 0:
        raise NotReady(f"The server was ended by {signal.Signals(-code).name} while it started, see {log}: {reason}")
    raise NotReady(f"The server did not start: {reason}")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Clearing up that runs to its end: an impatient second Ctrl-C would leave half of it running."""
    before = {sort: signal.signal(sort, signal.SIG_IGN) for sort in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for sort, handler in before.items():
            signal.signal(sort, handler)


def _last_words(log: Path, begins: int) -> str:
    """The last error in the log after byte `begins`, else its last line."""
    said = log.read_bytes()[begins:].decode("utf-8", "replace").strip()
    _, found, error = f"\n{said}".rpartition("\nerror: ")
    return error if found else (said.splitlines() or ["it said nothing."])[-1]


# ---------------------------------------------------------------------------------------------- ending


def end(settings: "Settings", there: Server) -> None:
    """Ends a server of this data folder and everything it started, and removes what it left on disk.

    Asks first, waits, then insists. Raises Forbidden when it belongs to another user.
    """
    process = there.process
    if process is not None:
        try:
            process.terminate()
            process.wait(STOP_S)
        except psutil.NoSuchProcess:
            pass
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(STOP_S)
        except psutil.AccessDenied as error:
            raise Forbidden(
                f"Process {there.pid}, which serves {there.url}, belongs to another user: end it as that user."
            ) from error
    _end_left_behind(there)
    folder = Path(there.folder)
    if folder.name.startswith("tidegate-") and (folder / "token").is_file():  # a damaged record must not cost a folder
        shutil.rmtree(folder, ignore_errors=True)
    forget(settings, there.pid)


def _end_left_behind(there: Server) -> None:
    """Ends the processes that carry this server's mark, also those they start meanwhile."""
    for _ in range(10):
        marked = [process for process in psutil.process_iter() if _mark_of(process) == there.mark]
        if not marked:
            return
        for process in marked:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(marked, timeout=2)


def _mark_of(process: Any) -> str | None:  # psutil.Process
    try:
        return str(process.environ().get(MARK, "")) if process.pid != os.getpid() else None
    except (psutil.Error, OSError):  # another user's, or gone
        return None
