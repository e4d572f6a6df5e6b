"""Thresholds that can fail: what a run has to reach, and whether it did, in numbers.

`p95_complete_ms=1500` is an upper bound, `citations_share=0.99` and `requests_per_s=20` are lower ones. Failed requests
are in no latency; they are counted in `error_share`. A run in which nothing succeeded has failed whatever was asked,
and what could not be measured has not passed.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from load.samples import Sample, percentile


class Outcome(StrEnum):
    """How a threshold ended."""

    HELD = "held"
    MISSED = "missed"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Threshold:
    """One bound on one measure, of one kind of request or of all."""

    text: str
    kind: str  # empty for all
    measure: str
    bound: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """A threshold with what was measured: the value, over so many requests."""

    threshold: Threshold
    outcome: Outcome
    value: float | None
    count: int


KINDS = ("answer", "follow_up", "stream", "search")
TIMES = ("first_ms", "complete_ms", "token_ms", "citations_ms")
_THRESHOLD = re.compile(rf"((?P<kind>{'|'.join(KINDS)})\.)?(?P<measure>[a-z0-9_.]+)=(?P<bound>.*)")
_PERCENTILE = re.compile(r"p(50|90|95|99|99\.9)_(\w+)")
AT_LEAST_ONE = Threshold("successes=1", "", "successes", 1.0)
WANTED = (
    f"[{'|'.join(KINDS)}.]p50|p90|p95|p99|p99.9_{'|'.join(TIMES)}=MS, error_share=0..1, citations_share=0..1, "
    "requests_per_s=N, cost_usd_per_1000=N"
)


def threshold(text: str) -> Threshold:
    """What a text like `stream.p95_first_ms=800` stands for. Raises ValueError that says what is wanted."""
    found = _THRESHOLD.fullmatch(text.strip())
    timed = _PERCENTILE.fullmatch(found["measure"]) if found else None
    if not found or not (found["measure"] in MEASURES or (timed and timed[2] in TIMES)):
        raise ValueError(f"Threshold {text!r} is none, wanted {WANTED}.")
    try:
        bound = float(found["bound"])
    except ValueError:
        bound = math.nan
    if not 0 <= bound < math.inf:
        raise ValueError(f"Threshold {text!r} has no bound: after = stands a number of 0 or more.")
    return Threshold(text, found["kind"] or "", found["measure"], bound)


def judged(samples: Sequence[Sample], thresholds: Iterable[Threshold], seconds: float) -> list[Verdict]:
    """A verdict on each threshold, and first on whether anything succeeded at all."""
    return [_judge(samples, one, seconds) for one in (AT_LEAST_ONE, *thresholds)]


def worst(verdicts: Iterable[Verdict]) -> Outcome:
    """MISSED before NOT_MEASURED before HELD."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return next(one for one in (Outcome.MISSED, Outcome.NOT_MEASURED, Outcome.HELD) if one in outcomes)


def _judge(samples: Sequence[Sample], wanted: Threshold, seconds: float) -> Verdict:
    chosen = [sample for sample in samples if wanted.kind in ("", sample.kind)]
    value, count, at_least = _measured(chosen, wanted.measure, seconds)
    if value is None:
        return Verdict(wanted, Outcome.NOT_MEASURED, None, count)
    held = value >= wanted.bound if at_least else value <= wanted.bound
    return Verdict(wanted, Outcome.HELD if held else Outcome.MISSED, value, count)


def _measured(samples: Sequence[Sample], measure: str, seconds: float) -> tuple[float | None, int, bool]:
    """The value, over how many requests, and whether more is better."""
    if found := _PERCENTILE.fullmatch(measure):
        values = [value for s in samples if not s.failure and (value := getattr(s, found[2])) is not None]
        return percentile(values, float(found[1]) / 100), len(values), False
    take, at_least = MEASURES[measure]
    value, count = take(samples, seconds)
    return value, count, at_least


def _successes(samples: Sequence[Sample], _: float) -> tuple[float | None, int]:
    return float(sum(not s.failure for s in samples)), len(samples)


def _error_share(samples: Sequence[Sample], _: float) -> tuple[float | None, int]:
    return (sum(bool(s.failure) for s in samples) / len(samples) if samples else None), len(samples)


def _citations_share(samples: Sequence[Sample], _: float) -> tuple[float | None, int]:
    told = [s.citations_complete for s in samples if not s.failure and s.citations_complete is not None]
    return (sum(told) / len(told) if told else None), len(told)


def _per_s(samples: Sequence[Sample], seconds: float) -> tuple[float | None, int]:
    ok = sum(not s.failure for s in samples)
    return (ok / seconds if seconds > 0 else None), ok


def _cost(samples: Sequence[Sample], _: float) -> tuple[float | None, int]:
    """Dollars for a thousand answers; None as soon as one answer's cost is unknown, which is not 0."""
    answers = [s for s in samples if not s.failure and s.citations_complete is not None]
    costs = [s.cost_usd for s in answers if s.cost_usd is not None]
    return (1000 * sum(costs) / len(costs) if costs and len(costs) == len(answers) else None), len(answers)


MEASURES: dict[str, tuple[Callable[[Sequence[Sample], float], tuple[float | None, int]], bool]] = {
    "successes": (_successes, True),
    "error_share": (_error_share, False),
    "citations_share": (_citations_share, True),
    "requests_per_s": (_per_s, True),
    "cost_usd_per_1000": (_cost, False),
}
