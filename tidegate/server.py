"""The one server of a data folder: started in the background, found again, and stopped - never anybody else's.

A record beside the versions says which process serves and since when; a process is ours only if both still agree, so
that a recycled process id is never ended. The record goes with the server.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from domain.errors import ConfigError, NotReady, StorageError

if TYPE_CHECKING:
    from tidegate.settings import Settings

STOP_S = 45.0  # draining gateways and ending Ray takes about five seconds; on a busy machine several times that
START_S = 180.0  # loading the encoder in every replica, on a machine that is busy with something else


@dataclass(frozen=True, slots=True)
class Server:
    """A process that serves, or is about to. `started` is the operating system's own start time of it."""

    pid: int
    started: float
    url: str

    @property
    def alive(self) -> bool:
        """True when that very process still runs."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < 1.0
            return bool(same and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.Error:
            return False

    @property
    def ready(self) -> tuple[bool, str]:
        """Whether it answers, and what it is waiting for when it does not."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as reply:  # noqa: S310 - an address of ours
                return reply.status == 200, ""
        except urllib.error.HTTPError as error:
            try:
                return False, str(json.loads(error.read())["error"]["message"])
            except (ValueError, KeyError, TypeError):
                return False, f"HTTP {error.code}"
        except OSError as error:
            return False, str(getattr(error, "reason", error))


def record_path(settings: "Settings") -> Path:
    """Where the running server of this data folder is written down."""
    return settings.data_dir / "server.json"


def log_path(settings: "Settings") -> Path:
    """What a server in the background has to say."""
    return settings.data_dir / "server.log"


def running(settings: "Settings") -> Server | None:
    """The server of this data folder, or None. A record whose process is gone counts as none."""
    try:
        server = Server(**json.loads(record_path(settings).read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise StorageError(f"{record_path(settings)} cannot be read ({error}): delete it.") from error
    return server if server.alive else None


def refuse_second(settings: "Settings") -> None:
    """Raises ConfigError when this data folder is being served already."""
    if there := running(settings):
        raise ConfigError(
            f"{settings.data_dir} is already served at {there.url} by process {there.pid}: "
            "use it, or end it with `tidegate down`."
        )


def record(settings: "Settings", url: str) -> None:
    """Write down that this process serves. Raises StorageError when the data folder cannot be written."""
    me = Server(os.getpid(), psutil.Process().create_time(), url)
    path = record_path(settings)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(asdict(me)), "utf-8")
        aside.replace(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written ({error.strerror}): choose another data_dir.") from error


def forget(settings: "Settings") -> None:
    """Remove this process's record; somebody else's stays."""
    try:
        if json.loads(record_path(settings).read_text("utf-8")).get("pid") == os.getpid():
            record_path(settings).unlink()
    except (OSError, ValueError):
        return  # gone already, or not ours to judge


def launch(settings: "Settings", arguments: Sequence[str], waiting: Callable[[str], None]) -> Server:
    """A server in the background, ready to answer. `waiting` is told what it waits for.

    Raises NotReady with the end of its log when it gives up or takes too long; nothing is left running then.
    """
    log = log_path(settings)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        output = log.open("ab")
    except OSError as error:
        raise StorageError(f"{log} cannot be written ({error.strerror}): choose another data_dir.") from error
    with output:
        begins = output.tell()
        child = subprocess.Popen(  # noqa: S603 - this program with its own arguments
            [sys.executable, "-m", "tidegate", "serve", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # a Ctrl-C in this terminal is not meant for it
        )
    deadline = time.monotonic() + START_S
    try:
        while child.poll() is None and time.monotonic() < deadline:
            there = running(settings)
            if there and there.pid == child.pid:
                ready, why = there.ready
                if ready:
                    return there
                waiting(why)
            time.sleep(0.25)
        gave_up = child.poll() is not None
    except BaseException:
        end(child.pid)
        raise
    end(child.pid)
    said = log.read_bytes()[begins:].decode("utf-8", "replace").strip().splitlines()
    reason = (said[-1] if said else "it said nothing").removeprefix("error: ")
    if gave_up:
        raise NotReady(f"The server did not start: {reason}")
    raise NotReady(f"The server was not ready within {START_S:g} s, {log} says more: {reason}")


def end(pid: int) -> None:
    """Ends a process of ours: asks, waits, insists."""
    try:
        process = psutil.Process(pid)
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_S)
    except psutil.NoSuchProcess:
        return
    except psutil.TimeoutExpired:
        children = process.children(recursive=True)
        for each in (process, *children):
            try:
                each.kill()
            except psutil.NoSuchProcess:
                continue
