"""Live observations to Evidence: is the canary worse than stable, as good as stable, or can nobody tell yet?

What the evidence asks for is domain/canary.py; the bounds are sequences.py. Nothing here looks at the clock. The
false alarms of a whole canary, watched after every request for as long as it runs, are at most `LiveRules.alpha` while
requests of a session are as unlike as any. In sessions of three that correlate by .3, `success` alone fails wrongly in
.04 of 300 simulated canaries (.00 without sessions), and passes when worse by 5 points in .12 of 200 (.04 without).
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log
from operator import is_

import numpy as np

from domain.errors import BadRequest
from domain.releases import FEEDBACK, Evidence, LiveMetric, Observation, Outcome, Rollout
from eval.sequences import Difference, Restarts, Wealth, dropped


class Binds(StrEnum):
    """What a live metric may decide."""

    BOTH = "both"  # worse turns back, and without "no drop" nothing goes forward
    FALL = "fall"  # turns back once it surely fell by more than is tolerated; nobody waits for it
    NEVER = "never"  # for a person to read


@dataclass(frozen=True, slots=True)
class Live:
    """How a live metric is compared. Paired: the same question on both versions; else one version's requests against
    the other's. `like` compares with a perfect 1 and is no judgement. `healthy`: as good as stable says something only
    where stable itself does it more often than not.
    """

    paired: bool
    binds: Binds
    like: bool = False
    healthy: bool = False


LIVE: Mapping[str, Live] = {
    # On a service that is overloaded, or whose vendor is down, every version looks alike.
    "success": Live(paired=False, binds=Binds.BOTH, healthy=True),
    "within_slo": Live(paired=False, binds=Binds.BOTH, healthy=True),
    "citations_resolved": Live(paired=False, binds=Binds.BOTH),
    "found": Live(paired=True, binds=Binds.BOTH),
    "coverage": Live(paired=True, binds=Binds.BOTH),
    # A version may rightly decline more, or quote less, than the one before; a collapse is another matter.
    "answered": Live(paired=False, binds=Binds.FALL),
    "grounded": Live(paired=False, binds=Binds.FALL),
    "overlap": Live(paired=True, binds=Binds.NEVER, like=True),  # other documents are not worse ones
    FEEDBACK: Live(paired=False, binds=Binds.NEVER),  # who answers is chosen by whoever is annoyed
}
ALARMS = sum(live.binds is not Binds.NEVER for live in LIVE.values()) + 1  # each may fail, and `broken` beside them
LIFELONG = 0.5  # of what an alarm has of alpha, for the whole life taken together; the rest is for "lately"

MATCH = 4  # requests of the other version, at most, that one is set against: 1 + 1/4 of the variance, 2 with one
WAITING = 2 * MATCH  # requests kept for that: with more, the canary's bad hour would be set against stable's good one
BROKEN_SHARE = 0.5  # a canary that fails more than this is broken, unless stable does too


@dataclass(frozen=True, slots=True)
class LiveRules:
    """`max_drop` (0..1) of a live mean is tolerated. `alpha` bounds two errors over the life of a canary: that a
    metric of one that is not worse fails, and that all pass for one that is worse by `max_drop` in any of them.
    """

    max_drop: float = 0.05
    alpha: float = 0.05


def weigh(observations: Sequence[Observation], rollout: Rollout, widened_at: float, rules: LiveRules) -> Evidence:
    """What `observations`, oldest first, say about the canary in `rollout`, whose share last grew at `widened_at`
    (seconds since 1970). Raises BadRequest when there is no canary. All from the beginning: Weighing goes on instead.
    """
    return Weighing(rules)(observations, rollout, widened_at)


class Weighing:
    """As weigh, called again and again with all observations so far: only those that are new are worked on.

    What arrives late counts when it arrives, not where its time would put it; the bounds hold in either order.
    """

    def __init__(self, rules: LiveRules) -> None:
        self._rules = rules
        self._about: tuple[str, str, int] | None = None
        self._scales = Scales("", "", 0, rules)
        self._seen: tuple[Observation, ...] = ()

    def __call__(self, observations: Sequence[Observation], rollout: Rollout, widened_at: float) -> Evidence:
        """The evidence about the canary in `rollout`; another canary begins with nothing."""
        if rollout.canary is None or rollout.stable is None:
            raise BadRequest("There is no canary to weigh evidence about: begin one first.", "version")
        about = (rollout.canary, rollout.stable, rollout.began)
        if about != self._about:
            self._about, self._scales, self._seen = about, Scales(*about, self._rules), ()
        self._scales.add(observations[_alike(self._seen, observations) :])
        self._seen = tuple(observations)  # no copy of a tuple; a list may have grown by the next look
        return self._scales.evidence(widened_at)


def _alike(seen: Sequence[Observation], now: Sequence[Observation]) -> int:
    """How many observations at the beginning of both are the very same objects."""
    same = bytes(map(is_, seen, now))  # all in C: this runs over everything at every look
    return len(same) if 0 not in same else same.index(0)


class Scales:
    """Every metric of one canary. Requests that neither canary nor stable answered count for neither."""

    def __init__(self, canary: str, stable: str, began: int, rules: LiveRules) -> None:
        self.canary, self.stable, self.began = canary, stable, began
        self._tracks = {name: Track(name, live, rules) for name, live in LIVE.items()}
        self._single = [(n, t) for n, t in self._tracks.items() if not t.live.paired and n != FEEDBACK]
        self._paired = [(n, t) for n, t in self._tracks.items() if t.live.paired]
        self._on_canary: dict[str, bool] = {}  # trace id -> whether the canary answered it
        self._at: list[float] = []  # when the canary answered, rising
        self._unclaimed: dict[str, object] = {}  # feedback by trace id, until its answer is seen
        self._heard: set[str] = set()

    def add(self, observations: Sequence[Observation]) -> None:
        """Put observations on the scales; a trace id that lies there already is the same request, and stays once."""
        for seen in observations:
            if seen.version in (self.canary, self.stable):
                if seen.trace_id not in self._on_canary:
                    self._add(seen)
            elif not seen.version and seen.is_feedback and seen.trace_id not in self._heard:
                self._heard.add(seen.trace_id)
                self._unclaimed[seen.trace_id] = seen.values[FEEDBACK]
                self._join(seen.trace_id)

    def evidence(self, widened_at: float) -> Evidence:
        """What all of it says."""
        return Evidence(
            canary=self.canary,
            stable=self.stable,
            began=self.began,
            canary_n=len(self._at),
            stable_n=len(self._on_canary) - len(self._at),
            since_widened=len(self._at) - bisect_left(self._at, widened_at),
            metrics=tuple(track.metric() for track in self._tracks.values()),
        )

    def _add(self, seen: Observation) -> None:
        on_canary = seen.version == self.canary
        self._on_canary[seen.trace_id] = on_canary
        for name, track in self._single:
            track.one(on_canary, seen.values.get(name), seen.trace_id)
        if on_canary:
            insort(self._at, seen.at)
            for name, track in self._paired:
                track.pair(seen.paired.get(name), seen.trace_id)
        self._join(seen.trace_id)

    def _join(self, trace_id: str) -> None:
        """Feedback and the answer it is about come in either order; feedback about nothing waits for ever."""
        if trace_id in self._unclaimed and trace_id in self._on_canary:
            self._tracks[FEEDBACK].one(self._on_canary[trace_id], self._unclaimed.pop(trace_id), trace_id)


class Track:
    """One metric's values on both versions, and the sequence of their differences."""

    def __init__(self, name: str, live: Live, rules: LiveRules) -> None:
        self.name, self.live, self.rules = name, live, rules
        # Going forward needs every metric to pass, so each may use all of alpha: a canary that is worse in one passes
        # no more often than that one does. One failure is enough to turn back, so failures share it.
        self.enough = log(ALARMS / rules.alpha)
        drop, alpha = rules.max_drop, rules.alpha / ALARMS
        self._differences = Difference(drop, rules.alpha, LIFELONG * alpha)
        null = min(drop, 0.99) if live.binds is Binds.FALL else 0.0  # no mean falls by more than 1
        self._lately = Restarts(null, dropped(drop), (1.0 - LIFELONG) * alpha, drop)
        self._fresh: list[float] = []
        self._canary, self._stable = Arm(), Arm()
        self._waiting: deque[float] = deque(maxlen=WAITING)
        self._canary_waits = False
        self._bad = ""
        # Failures of the canary by itself: with no stable traffic there is nothing to be worse than.
        self._broken = Wealth([BROKEN_SHARE], (0.0, 1.0, 3.0)) if name == "success" else None
        self._failures: list[float] = []

    def one(self, on_canary: bool, value: object, trace_id: str) -> None:
        """One version's value; None is "not eligible" and counts nowhere."""
        if value is None or (number := self._number(value, trace_id)) is None:
            return
        (self._canary if on_canary else self._stable).add(number)
        if on_canary and self._broken is not None:
            self._failures.append(1.0 - number)
        self._match(on_canary, number)

    def pair(self, values: object, trace_id: str) -> None:
        """Both versions' values for the same question, (canary, stable)."""
        if values is None:
            return
        if not isinstance(values, tuple | list) or len(values) != 2:
            self._bad = self._bad or f"{values!r} of trace {trace_id} is not a pair"
            return
        canary, stable = (self._number(value, trace_id) for value in values)
        if canary is not None and stable is not None:
            self._canary.add(canary)
            self._stable.add(stable)
            self._fresh.append(canary - stable)

    def metric(self) -> LiveMetric:
        """The metric as it stands."""
        fresh = np.array(self._fresh, dtype=np.float64)
        self._differences.add(fresh)
        self._lately.add(-fresh)
        if self._broken is not None:
            self._broken.add(np.array(self._failures, dtype=np.float64))
        self._fresh, self._failures = [], []
        outcome, told = self._outcome()
        binds = self.live.binds is Binds.BOTH or (self.live.binds is Binds.FALL and outcome is Outcome.FAIL)
        return LiveMetric(
            metric=self.name,
            paired=self.live.paired,
            canary_n=self._canary.n,
            stable_n=self._stable.n,
            canary_mean=self._canary.mean,
            stable_mean=self._stable.mean,
            low=self._differences.low,
            high=self._differences.high,
            outcome=outcome,
            reason=told,
            advisory=not binds,
            max_drop=None if self.live.like else self.rules.max_drop,
            more=self._more() if outcome is Outcome.INCONCLUSIVE and not self.live.like else None,
        )

    def _match(self, on_canary: bool, value: float) -> None:
        """Set a value against the newest of the other version's that wait, at most MATCH; with none it waits itself.

        Who is set against whom depends on which version answered, never on how well, so the mean of the differences
        is the difference of the means, whatever the share is and however often it changes. The nearest in time are
        the most alike: a slow hour or a failing vendor strikes both.
        """
        if self._waiting and self._canary_waits != on_canary:
            others = [self._waiting.pop() for _ in range(min(MATCH, len(self._waiting)))]
            difference = value - sum(others) / len(others)
            self._fresh.append(difference if on_canary else -difference)
            return
        self._canary_waits = on_canary
        self._waiting.append(value)

    def _outcome(self) -> tuple[Outcome, str]:
        known = self._differences
        if self._bad:
            return Outcome.ERROR, f"cannot be measured: {self._bad}"
        if self._is_broken():
            return Outcome.FAIL, f"mean {self._canary.mean:.3f} over {self._canary.n} requests: it is broken by itself"
        if not known.n:
            counts = f"{self._canary.n} eligible on the canary, {self._stable.n} on stable"
            return Outcome.INCONCLUSIVE, f"not measured: nothing to compare ({counts})"
        if self.live.like:
            return Outcome.INCONCLUSIVE, f"{1.0 + known.mean:.3f} over {known.n} questions, 1 is the same: no judgement"
        return self._judged()

    def _judged(self) -> tuple[Outcome, str]:
        known, drop = self._differences, self.rules.max_drop
        of = "questions asked of both" if self.live.paired else "matched pairs"
        numbers = f"{known.mean:+.3f} over {known.n} {of}, between {known.low:+.3f} and {known.high:+.3f}"
        if self.live.binds is Binds.FALL and known.high <= -drop:
            return Outcome.FAIL, f"{numbers}: it fell by more than {drop:g}"
        if self.live.binds is not Binds.FALL and known.high <= 0.0 and known.mean <= -drop:
            return Outcome.FAIL, f"{numbers}: worse, and by {drop:g} or more"
        if (late := self._lately.alarm) is not None:
            what = f"lately: {-late.mean:+.3f} over the last {late.n} {of} of {late.upto}"
            return Outcome.FAIL, f"{what}: worse, and by {drop:g} or more; in all {numbers}"
        if -1.0 < known.low >= -drop:
            if self._stable_is_broken():
                own = f"stable's own mean is {self._stable.mean:.3f} over {self._stable.n}"
                return Outcome.INCONCLUSIVE, f"{numbers}, but {own}: being as good as that shows nothing"
            return Outcome.PASS, f"{numbers}: a drop of {drop:g} is excluded"
        more = "" if known.needed is None else f"; about {known.needed} would exclude it if they go on so"
        return Outcome.INCONCLUSIVE, f"{numbers}: a drop of {drop:g} is not excluded yet{more}"

    def _more(self) -> int | None:
        known = self._differences
        if known.needed is None or self._stable_is_broken():
            return None  # no number of requests shows anything, while stable is as it is
        return max(1, known.needed - known.n)

    def _is_broken(self) -> bool:
        """Surely failing more than it may, while stable is not seen to do so too."""
        return not self._stable_is_broken() and self._broken is not None and float(self._broken.best[0]) >= self.enough

    def _stable_is_broken(self) -> bool:
        return self.live.healthy and self._stable.mean is not None and self._stable.mean < BROKEN_SHARE

    def _number(self, value: object, trace_id: str) -> float | None:
        """The value as a number; None, which is remembered, for what is no number in 0..1."""
        # NaN is none either: every comparison with it is false.
        if isinstance(value, int | float) and 0.0 <= value <= 1.0:
            return float(value)
        self._bad = self._bad or f"{value!r} of trace {trace_id} is not a number in 0..1"
        return None


@dataclass(slots=True)
class Arm:
    """Count and sum of one version's eligible values."""

    n: int = 0
    total: float = 0.0

    def add(self, value: float) -> None:
        """One more."""
        self.n += 1
        self.total += value

    @property
    def mean(self) -> float | None:
        """None while there is none, which is not zero."""
        return self.total / self.n if self.n else None
