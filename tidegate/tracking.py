"""Evaluations and the pointer, told to the experiment tracker; whether it listens never decides anything.

    tracked = track(settings, evaluation)   # after measuring; tracked.run_id is "" when the tracker has not taken it,
                                            # and tracked.note then says why and what to do
    resend(settings)                        # everything that waits, each exactly once
    follow(settings)                        # after every move of the pointer and every decision; returns at once
    untracked(settings, run_id)             # why a version may not be admitted under tracking.required, or ""

What is told is written to data_dir/tracking first (spool.py), as it may be seen (domain/evaluation.py), and sent by a
process that is ended when its time is over (sending.py).
"""

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from signal import SIGALRM, SIGKILL
from typing import TYPE_CHECKING

from domain.errors import TidegateError
from domain.evaluation import Evaluation, shared
from domain.ports import IndexRegistry
from eval.tracking import masked, sqlite_uri
from tidegate.sending import APART, GAVE_UP, Job
from tidegate.spool import Spool

if TYPE_CHECKING:
    from tidegate.settings import Settings


MAKING_S = 300.0  # for making a database in the background; an idle machine takes about five


@dataclass(frozen=True, slots=True)
class Tracked:
    """The run an evaluation has in the tracker, or an empty id and a note that says why it has none."""

    run_id: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Resent:
    """How many waiting evaluations the tracker took, how many still wait, and why."""

    sent: int = 0
    failed: int = 0
    note: str = ""


def track(settings: "Settings", evaluation: Evaluation) -> Tracked:
    """Write an evaluation down, then send it, in tracking.timeout_s at most; neither raises when it fails.

    Only terms that cannot be read raise, as ConfigError: what cannot be cleaned of them is not written.
    """
    from tidegate.compose import anonymous, make_naming

    if not settings.tracking.enabled:
        return Tracked()
    visible = shared(evaluation, anonymous(settings), make_naming(settings))
    try:
        folder = _spool(settings).keep(visible)
    except OSError as error:
        return Tracked(note=f"The evaluation was not written to {_spool(settings).root} ({error.strerror}): make room.")
    why = _send(settings, folder.name)
    if run_id := run_of(settings, visible.id):
        return Tracked(run_id)
    return Tracked(note=f"{why}. It is kept in {folder}; `tidegate evaluate --resend` sends it.")


def resend(settings: "Settings") -> Resent:
    """Send every evaluation that waits, and the aliases. One that was sent before is not sent twice."""
    if not settings.tracking.enabled:
        return Resent(note="Nothing is sent: tracking.enabled is false.")
    before = len(_spool(settings).waiting())
    why = _send(settings, "")
    still = len(_spool(settings).waiting())
    return Resent(max(0, before - still), still, f"{why}." if why and still else "")


def follow(settings: "Settings") -> None:
    """Have the aliases `stable`, `canary` and `candidate` say what the pointer says now, in the background.

    While the tracker has never been told anything there are no aliases; they then come with the first evaluation.
    What the tracker misses it is told the next time, by whatever tells it something.
    """
    from tidegate.compose import make_registry

    if not settings.tracking.enabled:
        return
    spool, registry = _spool(settings), make_registry(settings)
    with suppress(OSError, TidegateError):  # the pointer has moved, and that must not look like a failure
        spool.point(registry.rollout(), candidate(registry))
        if spool.used:
            _send_apart(settings, settings.tracking.timeout_s)


def prepare(settings: "Settings") -> None:
    """Have a new database made in the background, which takes seconds, while something else is done."""
    if settings.tracking.enabled and settings.tracking.uri is None and not _database(settings).exists():
        with suppress(OSError):
            _send_apart(settings, MAKING_S)


def untracked(settings: "Settings", run_id: str) -> str:
    """Why a decision without a run may not admit a version, in one sentence; "" when nothing stands against it."""
    if not settings.tracking.required or run_id:
        return ""
    if not settings.tracking.enabled:
        return (
            "tracking.required is set while tracking.enabled is false, so nothing can be admitted: change one of them."
        )
    return (
        "tracking.required is set and the tracker has not taken this evaluation: send it with `tidegate evaluate "
        "--resend` and decide again, or set tracking.required to false."
    )


def run_of(settings: "Settings", evaluation_id: str) -> str:
    """The run that an evaluation became, also when it was sent later; "" while the tracker has not taken it."""
    return _spool(settings).run_id(evaluation_id)


def candidate(registry: IndexRegistry) -> str | None:
    """The version that was decided about last and has not been shown to people since, or None."""
    rollout, shown = registry.rollout(), dict[str | None, str]()
    for move in registry.ledger():
        for version in (move.before.stable, move.before.canary, move.after.stable, move.after.canary):
            shown[version] = move.at
    decided = [
        (decisions[-1].decided_at, version.id)
        for version in registry.versions()
        if version.id not in (rollout.stable, rollout.canary) and (decisions := registry.decisions(version.id))
    ]
    fresh = [(at, version) for at, version in decided if at > shown.get(version, "")]
    return max(fresh)[1] if fresh else None


# ---------------------------------------------------------------------------------------------- the other process


def _send(settings: "Settings", first: str) -> str:
    """Send what waits, `first` first, and be back after tracking.timeout_s at the latest: with what went wrong, or "".

    A database that is still to be made is made in the background, so that running out of time does not begin it anew.
    """
    seconds, uri = settings.tracking.timeout_s, masked(address(settings))
    if not _spool(settings).waiting() and _spool(settings).pointed() is None:
        return ""
    try:
        prepare(settings)
        process = _started(settings)
    except OSError as error:
        return f"No process could be started to send it ({error.strerror})"
    with process:
        try:
            out, err = process.communicate(_job(settings, first, seconds), timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        except (
            BaseException
        ):  # Ctrl-C: asked to end, it marks its run as killed, for which it has a quarter of its time
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(min(5.0, seconds))
            raise
    if out.strip():
        return str(json.loads(out.splitlines()[0])["why"]).rstrip(".")
    if process.returncode in (GAVE_UP, -SIGKILL, -SIGALRM):
        return f"The experiment tracker at {uri} was not done within {seconds:g} s (tracking.timeout_s)"
    last = (err.strip().splitlines() or ["it said nothing"])[-1][:300]
    return masked(f"Sending failed: {last}") if process.returncode else ""


def _send_apart(settings: "Settings", seconds: float) -> None:
    """Send what waits in the background; returns when that has begun. Raises OSError."""
    process = _started(settings, APART)
    with process:
        try:
            process.communicate(_job(settings, "", seconds), timeout=settings.tracking.timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()


def _started(settings: "Settings", *arguments: str) -> "subprocess.Popen[str]":
    root = _spool(settings).root
    root.mkdir(parents=True, exist_ok=True)
    quiet = subprocess.DEVNULL if APART in arguments else subprocess.PIPE
    return subprocess.Popen(  # noqa: S603 - this program with its own arguments
        # -P: a folder called `eval` or `domain` where the person happens to stand must not be taken for ours.
        [sys.executable, "-P", "-m", "tidegate.sending", *arguments],
        stdin=subprocess.PIPE,
        stdout=quiet,
        stderr=quiet,
        text=True,
        cwd=root,  # whatever MLflow leaves in the folder it stands in
        env={**os.environ, **environment(settings.tracking.timeout_s)},
        start_new_session=True,  # a Ctrl-C in this terminal is passed on, once
    )


def _job(settings: "Settings", first: str, seconds: float) -> str:
    """The job, passed where no list of processes shows it: the address may hold a password."""
    chosen, data = settings.tracking, settings.data_dir
    root, artifacts = str(_spool(settings).root), str(data / "mlartifacts")
    return json.dumps(asdict(Job(address(settings), chosen.experiment, artifacts, root, first, seconds)))


def environment(seconds: float) -> dict[str, str]:
    """What makes MLflow quiet and brief: by default it asks a dead server again for a quarter of an hour."""
    return {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_CONFIGURE_LOGGING": "false",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
        "MLFLOW_ALLOW_FILE_STORE": "true",  # for an address like file:///..., which it takes only when told so
        "MLFLOW_HTTP_REQUEST_TIMEOUT": str(max(1, int(seconds / 4))),
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
        "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
        "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
        "GIT_PYTHON_REFRESH": "quiet",
        "OPENBLAS_NUM_THREADS": "1",
    }


def address(settings: "Settings") -> str:
    """Where the tracker is; it may hold a password."""
    return settings.tracking.uri or sqlite_uri(_database(settings))


def _database(settings: "Settings") -> Path:
    """Where runs are kept while no address is set."""
    return settings.data_dir.absolute() / "mlflow.db"


def _spool(settings: "Settings") -> Spool:
    return Spool(settings.data_dir / "tracking")
