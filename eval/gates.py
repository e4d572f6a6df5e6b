"""Floors: what a version must reach before people see it. Data, not code.

A gate list without a recall gate and a citation gate is refused: those two are why the product exists. Gates
against a baseline, with intervals, build on this.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from domain.errors import ConfigError
from domain.releases import Outcome, Scorecard, Verdict
from eval.metrics import metrics

REQUIRED = {
    "recall": ("recall", "evidence_recall", "full_chain_recall"),
    "citation": ("citation_recall", "citation_precision"),
}


@dataclass(frozen=True, slots=True)
class Floor:
    """The mean of `metric` over its eligible questions must be at least `floor`, over at least `min_items` of them."""

    metric: str
    floor: float
    min_items: int = 1
    advisory: bool = False


def floors(wanted: Mapping[str, float], min_items: int = 1) -> tuple[Floor, ...]:
    """Checked floors from a mapping of metric to floor. Raises ConfigError naming every problem at once."""
    problems = []
    try:
        metrics(tuple(wanted))
    except ConfigError as error:
        problems.append(str(error).rstrip("."))
    # NaN is no number in 0..1 either: every comparison with it is false.
    problems += [f"{name} {floor!r} is not in 0..1" for name, floor in wanted.items() if not 0.0 <= floor <= 1.0]
    bases = {name.partition("@")[0] for name in wanted}
    problems += [
        f"no {kind} gate (one of: {', '.join(names)})" for kind, names in REQUIRED.items() if bases.isdisjoint(names)
    ]
    if problems:
        raise ConfigError(f"evaluation.floors cannot guard a promotion: {'; '.join(problems)}.")
    return tuple(Floor(name, float(floor), min_items) for name, floor in sorted(wanted.items()))


def judge(scorecard: Scorecard, gates: Sequence[Floor]) -> tuple[Verdict, ...]:
    """One verdict per gate, with its numbers. A metric nobody was eligible for could not be measured: ERROR."""
    return tuple(_judge(scorecard, gate) for gate in gates)


def worst(verdicts: Sequence[Verdict]) -> Outcome:
    """The worst outcome of the gates that bind; nothing bound is nothing measured: ERROR."""
    return max((verdict.outcome for verdict in verdicts if not verdict.advisory), default=Outcome.ERROR)


def digest(gates: Sequence[Floor]) -> str:
    """A fingerprint of the gate list, which a decision is bound to; the order of the list does not enter."""
    rows = sorted([gate.metric, gate.floor, gate.min_items, gate.advisory] for gate in gates)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:12]


def _judge(scorecard: Scorecard, gate: Floor) -> Verdict:
    if gate.metric not in scorecard.values:
        return Verdict(gate.metric, Outcome.ERROR, "not measured: the scorecard does not have it", gate.advisory)
    values = [value for value in scorecard.values[gate.metric].values() if value is not None]
    if not values:
        reason = f"not measured: none of the questions of {scorecard.dataset} is eligible"
        return Verdict(gate.metric, Outcome.ERROR, reason, gate.advisory)
    mean = fmean(values)
    questions = f"{len(values)} question{'s' if len(values) > 1 else ''}"
    reason = f"{mean:.4f} over {questions}, floor {gate.floor:.4f}"
    if len(values) < gate.min_items:
        return Verdict(gate.metric, Outcome.INCONCLUSIVE, f"{reason}, needs {gate.min_items} questions", gate.advisory)
    return Verdict(gate.metric, Outcome.PASS if mean >= gate.floor else Outcome.FAIL, reason, gate.advisory)
