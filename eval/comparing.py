"""Two versions on the same questions: every metric side by side, what the gates would say, and what changed most.

Numbers in, numbers out: nothing is asked here, and nothing is decided. What the answers said is apart.py.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, sqrt
from statistics import NormalDist, fmean, stdev

from domain.errors import BadRequest
from domain.evaluation import ALL, Difference, Estimate
from domain.naming import Naming
from domain.releases import Outcome, Scorecard, Verdict
from eval.gates import CLOSED, Gate, worst
from eval.intervals import Sample, interval
from eval.pairing import Pairs, Slices, pair
from eval.planning import Detectable, detectable
from eval.slicing import LEAST_PAIRS
from eval.verdicts import judge

TOLD_SLICES = 12  # a version that differs everywhere differs in every slice, and nobody reads four hundred lines


@dataclass(frozen=True, slots=True)
class Line:
    """One metric over one slice, in both versions.

    Means and difference are over the questions eligible in both, so that they add up; None without any. `better` and
    `worse` count those questions, `one_sided` the ones eligible in only one version, `ineligible` those in neither.
    `outcome` is the worst that the gates say about exactly this, None when no gate asks; `advisory` when none binds.
    """

    metric: str
    slice: str
    before: float | None
    after: float | None
    difference: Estimate | None
    better: int
    worse: int
    one_sided: int
    ineligible: int
    outcome: Outcome | None = None
    advisory: bool = False
    max_drop: float | None = None

    @property
    def n(self) -> int:
        """How many questions are eligible in both."""
        return self.difference.n if self.difference else 0

    @property
    def equal(self) -> int:
        """How many of them have the same value in both."""
        return self.n - self.better - self.worse

    @property
    def drawn(self) -> Difference | None:
        """The difference as plots and trackers take it."""
        return Difference(self.metric, self.slice, self.difference, self.max_drop) if self.difference else None


@dataclass(frozen=True, slots=True)
class Change:
    """A question with another value in any metric: each such metric with both values, and how far they are apart in
    sum. Where one version has no value (None) the question was not eligible, which adds nothing to the sum.
    """

    question: str
    total: float
    values: Mapping[str, tuple[float | None, float | None]]

    @property
    def grouped(self) -> dict[tuple[float | None, float | None], list[str]]:
        """The metrics that changed in the same way, by the two values they have in common."""
        groups: dict[tuple[float | None, float | None], list[str]] = {}
        for metric, both in self.values.items():
            groups.setdefault(both, []).append(metric)
        return groups


@dataclass(frozen=True, slots=True)
class Comparison:
    """The candidate against the baseline over `questions` questions of `dataset`.

    `lines` are all metrics over all questions, `slices` the parts of the set that differ most, the surest first;
    `changes` are all the questions that changed, most first. `verdicts` are those of the gates, had the baseline been
    what people have.
    """

    baseline: str
    candidate: str
    dataset: str
    questions: int
    lines: tuple[Line, ...]
    slices: tuple[Line, ...]
    changes: tuple[Change, ...]
    detectable: tuple[Detectable, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def outcome(self) -> Outcome:
        """What the gates would say."""
        return worst(self.verdicts)

    @property
    def alike(self) -> bool:
        """True when no question has another value in any metric."""
        return not any(line.better or line.worse or line.one_sided for line in self.lines)


def compare(
    baseline: Scorecard,
    candidate: Scorecard,
    gates: Sequence[Gate],
    slices: Slices,
    *,
    alpha: float,
    power: float,
    effect: float,
    seed: int,
    timed: Collection[str] = (),
) -> Comparison:
    """Both scorecards compared, metric by metric; see `judge` and `detectable` for the numbers that steer it.

    The metrics in `timed` hang on how busy the machine was: they have their line, and do not make a question changed.
    Raises BadRequest for scorecards of different question sets, whose means cannot be compared.
    """
    if baseline.dataset != candidate.dataset:
        raise BadRequest(
            f"{baseline.version} was measured on question set {baseline.dataset}, {candidate.version} on "
            f"{candidate.dataset}: measure both on the same one.",
            "questions",
        )
    verdicts = judge(candidate, baseline, gates, slices, alpha=alpha, seed=seed)

    def line(metric: str, slice: str) -> Line:
        pairs = pair(candidate, baseline, Gate(metric, slice), slices)
        return _asked(_line(metric, slice, pairs, alpha, seed), gates, verdicts)

    parts = _differing(baseline, candidate, slices, alpha)[:TOLD_SLICES]
    return Comparison(
        baseline=baseline.version,
        candidate=candidate.version,
        dataset=candidate.dataset,
        questions=max((len(values) for name, values in candidate.values.items() if name not in CLOSED), default=0),
        lines=tuple(line(metric, ALL) for metric in candidate.values),
        slices=tuple(line(metric, slice) for metric, slice in parts),
        changes=_changes(baseline, candidate, timed),
        detectable=detectable(candidate, baseline, gates, slices, alpha=alpha, power=power, effect=effect),
        verdicts=verdicts,
    )


def scrubbed(comparison: Comparison, naming: Naming) -> Comparison:
    """The comparison without forbidden terms, which ids of questions and names of slices may hold too."""
    scrub = naming.scrub
    return replace(
        comparison,
        lines=tuple(replace(line, slice=scrub(line.slice)) for line in comparison.lines),
        slices=tuple(replace(line, slice=scrub(line.slice)) for line in comparison.slices),
        changes=tuple(replace(change, question=scrub(change.question)) for change in comparison.changes),
        detectable=tuple(replace(told, label=scrub(told.label)) for told in comparison.detectable),
        verdicts=tuple(replace(v, gate=scrub(v.gate), reason=scrub(v.reason)) for v in comparison.verdicts),
    )


# ---------------------------------------------------------------------------------------------- lines


def _line(metric: str, slice: str, pairs: Pairs, alpha: float, seed: int) -> Line:
    differences = [_rounded(d) for d in pairs.differences.values()]
    both = pairs.candidate.keys() & pairs.baseline.keys()
    estimate = None
    if differences:
        low, high = interval(Sample.of(differences, -1.0, 1.0), alpha, seed)
        estimate = Estimate(fmean(differences), low, high, len(differences))
    return Line(
        metric=metric,
        slice=slice,
        before=fmean(pairs.baseline[q] for q in pairs.baseline if q in both) if both else None,
        after=fmean(pairs.candidate[q] for q in pairs.candidate if q in both) if both else None,
        difference=estimate,
        better=sum(d > 0 for d in differences),
        worse=sum(d < 0 for d in differences),
        one_sided=pairs.one_sided,
        ineligible=pairs.asked - len(differences) - pairs.one_sided,
    )


def _asked(line: Line, gates: Sequence[Gate], verdicts: Sequence[Verdict]) -> Line:
    """The line with what the gates say about exactly this; a gate that binds is heard before one that does not."""
    gate = next((g for g in gates if (g.metric, g.slice) == (line.metric, line.slice)), None)
    if gate is None:
        return line
    said = [v for v in verdicts if v.gate in (f"{gate.label} floor", f"{gate.label} max_drop")]
    heard = [v for v in said if not v.advisory] or said
    outcome = max((v.outcome for v in heard), default=None)
    return replace(line, outcome=outcome, advisory=all(v.advisory for v in heard), max_drop=gate.max_drop)


def _differing(baseline: Scorecard, candidate: Scorecard, slices: Slices, alpha: float) -> list[tuple[str, str]]:
    """Metrics with slices of at least LEAST_PAIRS pairs that differ, those first that surely differ most: by the least
    difference that a normal interval allows. Ties by name; a slice of all questions is no part of them.
    """
    z, found = NormalDist().inv_cdf(1 - alpha), []
    for metric in candidate.values:
        differences = pair(candidate, baseline, Gate(metric), slices).differences
        parts: dict[str, list[float]] = {}
        for question, difference in differences.items():
            for dimension, value in slices.get(question, {}).items():
                parts.setdefault(f"{dimension}={value}", []).append(_rounded(difference))
        for slice, part in parts.items():
            if LEAST_PAIRS <= len(part) < len(differences) and any(part):
                least = abs(fmean(part)) - z * stdev(part) / sqrt(len(part))
                found.append((-_rounded(least), metric, slice))
    return [(metric, slice) for _, metric, slice in sorted(found)]


# ---------------------------------------------------------------------------------------------- questions


def _changes(baseline: Scorecard, candidate: Scorecard, timed: Collection[str]) -> tuple[Change, ...]:
    apart: dict[str, dict[str, tuple[float | None, float | None]]] = {}
    for metric, values in candidate.values.items():
        before = baseline.values.get(metric, {})
        for question in values.keys() & before.keys() if metric not in timed and metric not in CLOSED else ():
            old, new = before[question], values[question]
            if (old is None) != (new is None) or (old is not None and new is not None and _rounded(new - old)):
                apart.setdefault(question, {})[metric] = (old, new)
    changes = [Change(question, _total(values), values) for question, values in apart.items()]
    return tuple(sorted(changes, key=lambda change: (-change.total, change.question)))


def _total(values: Mapping[str, tuple[float | None, float | None]]) -> float:
    return _rounded(fsum(abs(new - old) for old, new in values.values() if old is not None and new is not None))


def _rounded(difference: float) -> float:
    """Floats that are equal on paper are equal."""
    return round(difference, 12)
