"""How hard a hosted model is tried for one answer: attempts, the waits between them, and one deadline over everything.

This is the only place that calls a model again: the clients below are made to call once. Nothing is called again once
text has come, because what a reader saw is never repeated.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from time import sleep as blocking_sleep
from typing import TypeVar

from domain.errors import StageFailed, StageTimeout, Throttled
from generation.pacing import Pace

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Effort:
    """`attempts` counts calls of the model, the first one included; `deadline_s` is for all of them with every wait and
    the whole reply. Between attempts, a random share of `backoff_s`, doubled each time up to `longest_backoff_s`
    ("full jitter": Brooker, Exponential Backoff And Jitter, 2015), or what the vendor asks for when that is longer.
    """

    attempts: int = 3
    deadline_s: float = 120.0
    backoff_s: float = 0.5
    longest_backoff_s: float = 8.0


class Deadline:
    """Seconds that are left of an answer's time. `clock` gives seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self.seconds, self._clock = seconds, clock
        self._until = clock() + seconds

    def left(self) -> float:
        """Seconds left; 0 when it has passed."""
        return max(0.0, self._until - self._clock())


async def begun(
    begin: Callable[[], Awaitable[T]],
    model_id: str,
    effort: Effort,
    deadline: Deadline,
    pace: Pace,
    stage: str = "generate",
    sleep: Sleep = asyncio.sleep,
    draw: Callable[[], float] = random.random,
) -> T:
    """What `begin` returns, called again where that is worth it and there is time.

    Raises the last error of `begin`, or Throttled when the model's pace leaves no place before the deadline. A model
    that was silent is not asked again: who waits has waited, and the model has work enough.
    """
    for attempt in range(1, effort.attempts + 1):
        await _place(model_id, deadline, pace, stage, sleep)
        try:
            return await begin()
        except StageFailed as error:
            await sleep(_wait_s(error, attempt, effort, deadline, pace, draw))
    raise RuntimeError(ENDLESS)


def tried(
    call: Callable[[], T],
    stage: str,
    *,
    model_id: str,
    effort: Effort,
    pace: Pace,
    sleep: Callable[[float], None] = blocking_sleep,
    clock: Callable[[], float] = monotonic,
    draw: Callable[[], float] = random.random,
) -> T:
    """As `begun`, for a blocking call in a thread (embedding, reranking, a search); the deadline is its own."""
    deadline = Deadline(effort.deadline_s, clock)
    for attempt in range(1, effort.attempts + 1):
        if wait_s := _turn_s(model_id, deadline, pace, stage):
            sleep(wait_s)
        try:
            return call()
        except StageFailed as error:
            sleep(_wait_s(error, attempt, effort, deadline, pace, draw))
    raise RuntimeError(ENDLESS)


ENDLESS = "An effort ended without an outcome: this is a bug in generation/efforts.py."


def _wait_s(
    error: StageFailed, attempt: int, effort: Effort, deadline: Deadline, pace: Pace, draw: Callable[[], float]
) -> float:
    """The seconds after which another attempt is worth it. Raises the error where none is."""
    if isinstance(error, Throttled):
        pace.throttled(error.retry_after_s)
    if attempt == effort.attempts or not error.retryable or isinstance(error, StageTimeout):
        raise error
    backoff_s = min(effort.backoff_s * 2 ** (attempt - 1), effort.longest_backoff_s) * draw()
    wait_s: float = max(backoff_s, error.retry_after_s or 0.0)
    if wait_s >= deadline.left():
        raise error
    return wait_s


async def _place(model_id: str, deadline: Deadline, pace: Pace, stage: str, sleep: Sleep) -> None:
    """Waits for the model's pace. Raises Throttled when its turn comes after the deadline."""
    if wait_s := _turn_s(model_id, deadline, pace, stage):
        await sleep(wait_s)


def _turn_s(model_id: str, deadline: Deadline, pace: Pace, stage: str) -> float:
    """Takes the next place and gives the seconds until it. Raises Throttled when that comes after the deadline."""
    wait_s = pace.reserve(deadline.left())
    if wait_s > deadline.left():
        raise Throttled(
            f"Model {model_id} is throttled, and the next call may be made in {wait_s:.0f} s: try again then.",
            stage,
            wait_s,
        )
    return wait_s


def too_late(model_id: str, deadline: Deadline) -> StageTimeout:
    """The deadline has passed in the middle of a reply."""
    text = (
        f"Model {model_id} did not finish within {deadline.seconds:g} s: ask for less, or raise generation.deadline_s."
    )
    return StageTimeout(text, "generate")
