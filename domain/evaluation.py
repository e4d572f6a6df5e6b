"""What an evaluation found, as it is written down for people to compare: numbers with intervals, and every question.

Frozen and slotted like releases.py. "Not measured" is None, a question that was not eligible has the value None, a
request that failed says so in `failure`; none of them is zero. What may leave the house of it is said in `shared`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from json import dumps

from domain.naming import Naming
from domain.releases import Binding, Outcome, Verdict
from domain.types import Scope

ALL = ""  # the slice of all questions


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of `n` eligible questions and its interval; `low` and `high` are None where none was worked out."""

    mean: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Difference:
    """Candidate less baseline over the questions eligible in both, and the drop that a gate tolerates, if one does."""

    metric: str
    slice: str  # "type=comparison", or ALL
    estimate: Estimate
    max_drop: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One question: who asked, what was asked and answered, and its value per metric (None: not eligible).

    `slices` has the question's value in each dimension; `failure` is the code of a request that gave no answer.
    """

    question: str  # its id
    tenant: str
    groups: frozenset[str]
    slices: Mapping[str, str]
    values: Mapping[str, float | None]
    latency_ms: float | None = None
    failure: str = ""
    query: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A version measured on a question set.

    `measured_at` is ISO 8601 and part of the identity: the same binding measured again later is another evaluation.
    `metrics` is metric -> slice -> estimate, `curves` version -> cutoff -> recall, `floors` metric -> least mean.
    `parameters` is whatever else should stand beside it: settings, seed, number of questions. `totals` has what is said
    of the whole set and of no single question, like a cost; what was not measured is not in it.
    """

    binding: Binding
    measured_at: str
    metrics: Mapping[str, Mapping[str, Estimate]]
    rows: tuple[Row, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    differences: tuple[Difference, ...] = ()
    curves: Mapping[str, Mapping[int, Estimate]] = field(default_factory=dict)
    floors: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Sixteen hex digits: equal for the same binding measured at the same time."""
        text = dumps([asdict(self.binding), self.measured_at], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:16]

    @property
    def outcome(self) -> Outcome | None:
        """The worst outcome of the gates that bind; None when nothing was decided."""
        return max((verdict.outcome for verdict in self.verdicts if not verdict.advisory), default=None)


def shared(evaluation: Evaluation, reader: Scope, naming: Naming) -> Evaluation:
    """The evaluation as it may be written where `reader` can see it.

    Text of a question stays only if whoever asked it may read no more than `reader` may; the others keep their id and
    their numbers. Forbidden terms are replaced in everything that is text: ids, names of slices and reasons too.
    """
    scrub = naming.scrub
    return replace(
        evaluation,
        metrics={
            scrub(metric): {scrub(slice): estimate for slice, estimate in slices.items()}
            for metric, slices in evaluation.metrics.items()
        },
        rows=tuple(_shared_row(row, reader, naming) for row in evaluation.rows),
        verdicts=tuple(replace(v, gate=scrub(v.gate), reason=scrub(v.reason)) for v in evaluation.verdicts),
        differences=tuple(replace(d, metric=scrub(d.metric), slice=scrub(d.slice)) for d in evaluation.differences),
        parameters={scrub(name): scrub(value) for name, value in evaluation.parameters.items()},
    )


def _shared_row(row: Row, reader: Scope, naming: Naming) -> Row:
    scrub = naming.scrub
    visible = row.tenant == reader.tenant and row.groups <= reader.groups
    return replace(
        row,
        question=scrub(row.question),
        tenant=scrub(row.tenant),
        groups=frozenset(map(scrub, row.groups)),
        slices={scrub(dimension): scrub(value) for dimension, value in row.slices.items()},
        failure=scrub(row.failure),
        query=scrub(row.query) if visible else "",
        answer=scrub(row.answer) if visible else "",
    )
