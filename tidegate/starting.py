"""A server of a data folder started, one at a time.

Whoever starts or serves holds a lock on the folder, which the kernel drops with the process. What a server is, and
where it is written down, is server.py; how it is ended is ending.py.
"""

import fcntl
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import AddressTaken, NotReady
from retrieval.disk import cannot_write, lock_file
from tidegate.ending import end, undisturbed
from tidegate.server import Server, log_path, recorded, running

if TYPE_CHECKING:
    from tidegate.settings import Settings

START_S = 300.0  # loading the encoder in every replica, on a machine that is busy with something else


@contextmanager
def claim(settings: "Settings") -> Iterator[None]:
    """Nobody else starts or serves from this data folder while the block runs.

    Raises AddressTaken when somebody does already, StorageError when the folder cannot be written.
    """
    with lock_file(settings.data_dir / "server.lock") as lock:
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
        _ended(settings, mine, child)
        raise
    _ended(settings, mine, child)
    reason = _last_words(log, begins)
    if code is None:
        raise NotReady(f"The server was not ready within {START_S:g} s: {reason} {log} may say more.")
    if code < 0:
        raise NotReady(f"The server was ended by {signal.Signals(-code).name} while it started, see {log}: {reason}")
    raise NotReady(f"The server did not start: {reason}")


def _ended(settings: "Settings", mine: Server, child: "subprocess.Popen[bytes]") -> None:
    """Nothing is left running when this returns, however impatient somebody is meanwhile."""
    with undisturbed():
        end(settings, mine)
        child.wait()


def _last_words(log: Path, begins: int) -> str:
    """The last error in the log after byte `begins`, else its last line."""
    said = log.read_bytes()[begins:].decode("utf-8", "replace").strip()
    _, found, error = f"\n{said}".rpartition("\nerror: ")
    return error if found else (said.splitlines() or ["it said nothing."])[-1]
