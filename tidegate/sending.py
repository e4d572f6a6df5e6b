"""The process that talks to the experiment tracker: `python -m tidegate.sending`, with its job as JSON on stdin.

It is a process of its own because a client of the tracker cannot be made to give up in time, and writes log lines and
changes settings of a process as it likes. What is sent leaves the folder; what goes wrong is a line of JSON on stdout.
It ends itself when its time is over, with a run it had begun marked as killed; whoever started it may kill it at any
time, and what it had not finished waits for the next one.
"""

import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from domain.errors import StorageError
from tidegate.spool import Spool

if TYPE_CHECKING:
    from domain.ports import Tracker

APART = "--apart"  # do it in the background: the caller waits for nothing
GIVE_UP = 0.75  # of the time there is; the rest is for marking the run
GAVE_UP = 3  # the exit code that says so


@dataclass(frozen=True, slots=True)
class Job:
    """Where to send, from which folder, what first (a name below pending/, or ""), and the seconds there are."""

    uri: str
    experiment: str
    artifacts: str
    root: str
    first: str
    seconds: float


def main() -> None:
    """Do the job on stdin."""
    job = Job(**json.load(sys.stdin))
    if APART in sys.argv and os.fork():
        os._exit(0)
    _give_up_after(job.seconds)
    from eval.tracking import MlflowTracker

    spool = Spool(Path(job.root))
    with spool.sending():
        tracker = MlflowTracker(job.uri, job.experiment, Path(job.artifacts))
        try:
            tracker.open()
            _send_evaluations(spool, tracker, job.first)
            if (wanted := spool.pointed()) is not None:
                tracker.follow(*wanted)
                spool.told(*wanted)
        except StorageError as error:
            _tell(str(error))


def _send_evaluations(spool: Spool, tracker: "Tracker", first: str) -> None:
    """Everything that waits, the named one first. What cannot be read is told and left. Raises StorageError."""
    from eval.evaluation_files import lay_out, read

    for folder in sorted(spool.waiting(), key=lambda folder: (folder.name != first, folder.name)):
        try:
            evaluation = read(folder)
            lay_out(evaluation, folder)
        except (StorageError, OSError) as error:
            _tell(str(error))
            continue
        spool.taken(folder, tracker.record(evaluation, folder))


def _tell(why: str) -> None:
    print(json.dumps({"why": why}), flush=True)  # noqa: T201 - read by the process that started this one


def _give_up_after(seconds: float) -> None:
    """End by an exception, which marks the run, when the time is nearly over or somebody asks; then for certain."""

    def give_up(_signal: int, _frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(0.1, seconds * (1 - GIVE_UP)))
        sys.exit(GAVE_UP)

    signal.signal(signal.SIGALRM, give_up)
    signal.signal(signal.SIGTERM, give_up)
    signal.setitimer(signal.ITIMER_REAL, max(0.1, seconds * GIVE_UP))


if __name__ == "__main__":
    main()
