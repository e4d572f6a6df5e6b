"""How fast a hosted model may be asked, learnt from its refusals and shared by everybody in a process who asks it.

There is no limit until the model throttles a call. Then calls are spaced, at a part of the rate at which they were made
when it refused, and come closer again second by second: additive increase, multiplicative decrease (Chiu and Jain,
1989), which shares a quota fairly among processes that know nothing of each other. Retrying is efforts.py.
"""

from collections import deque
from collections.abc import Callable
from threading import Lock
from time import monotonic

CUT = 0.7  # of the rate that was refused
RAISE_PER_S = 0.05  # of the rate that was refused: back at it after 6 s without a further refusal
LIFTED_AT = 4.0  # times the rate that was refused: what refused it has passed
LEAST_PER_S = 0.2
WINDOW_S = 5.0  # in which the rate of calls is measured
ONE_REFUSAL_S = 1.0  # calls that were on their way together are refused together


class Pace:
    """The pace of one model. `clock` gives seconds. Safe to call from several threads."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._started: deque[float] = deque()  # of the calls in the window
        self._refused_per_s: float | None = None  # the rate at the last cut; None: not limited
        self._cut_at = 0.0
        self._next_at = 0.0  # where the next call may start

    def reserve(self, most_s: float) -> float:
        """Takes the next place and gives the seconds until it; nothing is taken when those are more than `most_s`."""
        with self._lock:
            now = self._clock()
            starts_at = max(now, self._next_at)
            if starts_at - now > most_s:
                return starts_at - now
            rate = self._rate(now)
            if rate is not None:
                self._next_at = starts_at + 1 / rate
            self._started.append(starts_at)
            self._forget(now)
            return starts_at - now

    def throttled(self, retry_after_s: float | None = None) -> None:
        """The model refused a call as one too many; nobody asks it before `retry_after_s` have passed."""
        with self._lock:
            now = self._clock()
            self._forget(now)
            if self._refused_per_s is None or now - self._cut_at >= ONE_REFUSAL_S:
                made = max(len(self._started) / WINDOW_S, LEAST_PER_S)
                limit = self._rate(now)
                self._refused_per_s, self._cut_at = made if limit is None else min(limit, made), now
            self._next_at = max(self._next_at, now + (retry_after_s or 0.0))

    @property
    def per_second(self) -> float | None:
        """Calls a second that may be made now; None is any number."""
        with self._lock:
            return self._rate(self._clock())

    def _rate(self, now: float) -> float | None:
        if self._refused_per_s is None:
            return None
        share = CUT + RAISE_PER_S * (now - self._cut_at)
        if share >= LIFTED_AT:
            self._refused_per_s = None
            return None
        return max(LEAST_PER_S, self._refused_per_s * share)

    def _forget(self, now: float) -> None:
        while self._started and self._started[0] < now - WINDOW_S:
            self._started.popleft()


class Paces:
    """One pace per model, made when it is first asked for."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._by_model: dict[str, Pace] = {}

    def of(self, model_id: str) -> Pace:
        """The same pace for the same model, whoever asks."""
        with self._lock:
            return self._by_model.setdefault(model_id, Pace(self._clock))
