"""The values of one gate, question by question, in the candidate and in what it is compared with."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import stdev

from domain.releases import Scorecard
from eval.gates import Gate

Slices = Mapping[str, Mapping[str, str]]  # question id -> dimension -> value


@dataclass(frozen=True, slots=True)
class Pairs:
    """Eligible values by question id, and what did not pair up.

    `asked` counts the questions of the slice in the candidate's scorecard, `one_sided` those eligible in only one of
    the two versions, `missing` those that one of the scorecards does not know at all.
    """

    candidate: Mapping[str, float]
    baseline: Mapping[str, float]
    asked: int
    one_sided: int
    missing: int

    @property
    def differences(self) -> dict[str, float]:
        """Candidate less baseline where both are eligible, in the order of the candidate."""
        return {q: value - self.baseline[q] for q, value in self.candidate.items() if q in self.baseline}

    @property
    def sd(self) -> float:
        """Standard deviation of the differences, with n - 1; 0 for fewer than two."""
        differences = list(self.differences.values())
        return stdev(differences) if len(differences) > 1 else 0.0


def pair(candidate: Scorecard, baseline: Scorecard | None, gate: Gate, slices: Slices) -> Pairs:
    """The two sides of `gate`, in its slice. Without a baseline the other side is empty, and nothing is missing."""
    ours = _inside(candidate, gate, slices)
    theirs = _inside(baseline, gate, slices) if baseline else {}
    eligible = {q: value for q, value in ours.items() if value is not None}
    before = {q: value for q, value in theirs.items() if value is not None}
    return Pairs(
        candidate=eligible,
        baseline=before,
        asked=len(ours),
        one_sided=len((eligible.keys() ^ before.keys()) & ours.keys() & theirs.keys()),
        missing=len(ours.keys() ^ theirs.keys()) if baseline else 0,
    )


def _inside(card: Scorecard, gate: Gate, slices: Slices) -> dict[str, float | None]:
    values = card.values.get(gate.metric, {})
    if not gate.slice:
        return values
    dimension, _, wanted = gate.slice.partition("=")
    return {q: value for q, value in values.items() if slices.get(q, {}).get(dimension) == wanted}
