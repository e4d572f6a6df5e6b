"""Where a training works, what it needs before it begins, and how it tells how far it is.

One training a folder, one finished reranker a folder: what is there is never written over without being asked.
"""

import fcntl
import json
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from domain.errors import BadRequest, ConfigError, CorpusError, StorageError
from tidegate.console import note
from tidegate.progress import Report

if TYPE_CHECKING:
    from retrieval.pair_lists import Lists

WORK = ".training"  # below the folder that is written, until it is whole
HISTORY = "history.jsonl"  # the loss as it fell
FEWEST_LEARNT, FEWEST_CHOSEN = 30, 8  # lists: with fewer, neither learning nor choosing means anything
PROCESS_MB = 2000  # what one process needs at most: weights, their moments, 30 pairs with gradients
TOLD_S = 60.0  # between two lines about how it goes


@contextmanager
def working(out: Path, fresh: bool) -> Iterator[None]:
    """The folder to write, with its workplace, for this process alone while the block runs.

    Raises BadRequest when it holds a finished reranker already or another process trains there, and StorageError when
    it cannot be written.
    """
    if (out / "README.md").exists() and not fresh:
        raise BadRequest(f"{out} holds a finished reranker: name another --out, or replace it with --fresh.", "out")
    work = out / WORK
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = (out / ".lock").open("a")
    except OSError as error:
        raise StorageError(f"{out} cannot be written ({error.strerror}): choose another --out.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BadRequest(f"Another process trains in {out}: wait for it, or name another --out.", "out") from error
        if fresh:
            for path in (out / "README.md", work):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            work.mkdir()
        yield
        (out / ".lock").unlink(missing_ok=True)


def check_memory(processes: int, available_mb: Callable[[], float | None] | None = None) -> None:
    """Raises ConfigError when the machine has too little memory left for so many processes."""
    free = (available_mb or _available_mb)()
    if free is not None and free < PROCESS_MB * processes:
        raise ConfigError(
            f"{processes} process(es) of training need about {PROCESS_MB * processes} MB of memory, {free:.0f} MB are "
            "free: take fewer --processes, or end something else."
        )


def _available_mb() -> float | None:
    """Memory that can be had without swapping; None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("MemAvailable:")), None)


def check_enough(lists: "Lists", processes: int = 1) -> None:
    """Raises CorpusError when there is too little to learn from or to choose by, with what was found."""
    learn, dev = len(lists.learn), len(lists.dev)
    if lists.missed and not dev:
        raise CorpusError(
            f"The first stage found the right passage of no held-out question and missed {lists.missed} in all: "
            "do the questions belong to this corpus?"
        )
    if learn < processes:
        raise CorpusError(f"There are {learn} lists to learn from for {processes} processes: take fewer --processes.")
    if learn < FEWEST_LEARNT or dev < FEWEST_CHOSEN:
        raise CorpusError(
            f"There are {learn} lists to learn from and {dev} to choose by, at least {FEWEST_LEARNT} and "
            f"{FEWEST_CHOSEN} are wanted: give more questions (a tenth chooses), or sets to --choose-by."
        )


def command_line(ctx: typer.Context) -> str:
    """The command as it could be given again, for cards: what was left out is left out."""
    words = ["tidegate", str(ctx.command.name)]
    for option in ctx.command.params:
        value = ctx.params.get(str(option.name))
        if option.name in ("fresh", "as_json") or value is None or value == option.default:
            continue
        words += [option.opts[0], str(value)]
    return shlex.join(words)


def teller(history: Path, report: Report) -> Callable[[int, float, float], None]:
    """A function that is told of steps: it keeps the loss in the file `history`, moves the bar, and once a minute says
    how it goes and how long it will take. Raises StorageError when the disk does not take a line."""
    from retrieval.pair_checkpoint import unwritable

    began, told, first = time.monotonic(), 0.0, -1.0

    def tell(step: int, done: float, loss: float) -> None:
        nonlocal told, first
        now = time.monotonic() - began
        if first < 0:  # where this try began: what an earlier one did is no measure of how fast this one is
            first = done
        report("training", round(1000 * done), 1000)
        try:
            with history.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"step": step, "done": round(done, 4), "loss": round(loss, 4)}) + "\n")
        except OSError as error:
            raise unwritable(history.parent, error) from error
        if now - told >= TOLD_S and done > first:
            told = now
            left = now * (1 - done) / (done - first)
            note(f"step {step}, loss {loss:.3f}, {done:.0%} done, about {left / 60:.0f} minutes left")

    return tell
