"""What a gate list says about a candidate: one verdict per bound of every gate, with the numbers in its reason."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from domain.releases import Outcome, Scorecard, Verdict
from eval.gates import Gate

Slices = Mapping[str, Mapping[str, str]]  # question id -> dimension -> value


def judge(
    candidate: Scorecard,
    baseline: Scorecard | None,
    gates: Sequence[Gate],
    slices: Slices,
    *,
    alpha: float,
    seed: int,
) -> tuple[Verdict, ...]:
    """One verdict per bound of every gate, and one about the slices, in the order of the gates."""
    return tuple(_floor(candidate, gate) for gate in gates if gate.floor is not None)


def _floor(candidate: Scorecard, gate: Gate) -> Verdict:
    label = f"{gate.label} floor"
    values = [v for v in candidate.values.get(gate.metric, {}).values() if v is not None]
    if not values:
        return Verdict(label, Outcome.ERROR, "not measured", gate.advisory)
    mean = fmean(values)
    reason = f"{mean:.4f} over {len(values)} questions, floor {gate.floor:.4f}"
    if len(values) < gate.min_items:
        return Verdict(label, Outcome.INCONCLUSIVE, f"{reason}, needs {gate.min_items} questions", gate.advisory)
    return Verdict(label, Outcome.PASS if mean >= (gate.floor or 0) else Outcome.FAIL, reason, gate.advisory)
