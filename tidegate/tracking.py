"""Evaluations and the pointer, told to the experiment tracker; whether it listens never decides anything.

    tracked = track(settings, evaluation)   # after measuring; tracked.run_id is "" when the tracker has not taken it,
                                            # and tracked.note then says why and what to do
    resend(settings)                        # everything that waits, each exactly once
    follow(settings)                        # after every move of the pointer; returns at once
    untracked(settings, run_id)             # why a version may not be admitted under tracking.required, or ""

What is told is written to data_dir/tracking first, as it may be seen (domain/evaluation.py), and sent by a process of
its own that is ended when its time is over: sending.py.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.evaluation import Evaluation

if TYPE_CHECKING:
    from tidegate.settings import Settings


@dataclass(frozen=True, slots=True)
class Tracked:
    """The run an evaluation has in the tracker, or an empty id and a note that says why it has none."""

    run_id: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Resent:
    """How many waiting evaluations the tracker took, how many it did not, and why."""

    sent: int = 0
    failed: int = 0
    note: str = ""


def track(settings: "Settings", evaluation: Evaluation) -> Tracked:
    """Write an evaluation down, then send it; both within tracking.timeout_s, and without ever raising for either."""
    return Tracked()


def resend(settings: "Settings") -> Resent:
    """Send every evaluation that waits, and the aliases. One that was sent before is not sent twice."""
    return Resent()


def follow(settings: "Settings") -> None:
    """Have the aliases `stable`, `canary` and `candidate` say what the pointer says now, in the background."""


def untracked(settings: "Settings", run_id: str) -> str:
    """Why a decision without a run may not admit a version, in one sentence; "" when nothing stands against it."""
    if not settings.tracking.required or run_id:
        return ""
    return (
        "tracking.required is set and the tracker has not taken this evaluation: send it with `tidegate evaluate "
        "--resend` and decide again, or set tracking.required to false."
    )
