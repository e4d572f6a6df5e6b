"""A server of a data folder ended, with everything it started and everything it left on disk.

Which process that is, and that it is ours, is said in server.py; how one is started in starting.py.
"""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from domain.errors import Forbidden
from tidegate.server import MARK, Server, forget

if TYPE_CHECKING:
    from tidegate.settings import Settings

STOP_S = 45.0  # draining gateways and ending Ray takes about five seconds; on a busy machine several times that


def end(settings: "Settings", there: Server) -> None:
    """Ends a server of this data folder and everything it started, and removes what it left on disk.

    Asks first, waits, then insists. Raises Forbidden when it belongs to another user.
    """
    process = there.process
    if process is not None:
        try:
            process.terminate()
            if not _gone(there, STOP_S):
                process.kill()
                _gone(there, STOP_S)
        except psutil.NoSuchProcess:
            pass
        except psutil.AccessDenied as error:
            raise Forbidden(
                f"Process {there.pid}, which serves {there.url}, belongs to another user: end it as that user."
            ) from error
    _end_left_behind(there)
    folder = Path(there.folder)
    if folder.name.startswith("tidegate-") and (folder / "token").is_file():  # a damaged record must not cost a folder
        shutil.rmtree(folder, ignore_errors=True)
    forget(settings, there.pid)


def _gone(there: Server, within_s: float) -> bool:
    """True as soon as the server has ended, also while whoever started it has not taken note of that yet."""
    deadline = time.monotonic() + within_s
    while there.alive:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def undisturbed() -> Iterator[None]:
    """Clearing up that runs to its end: an impatient second Ctrl-C would leave half of it running."""
    before = {sort: signal.signal(sort, signal.SIG_IGN) for sort in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for sort, handler in before.items():
            signal.signal(sort, handler)


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
