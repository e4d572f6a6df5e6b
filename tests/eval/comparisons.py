"""Two versions on three questions, small enough to compare on paper."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from domain.naming import Naming
from domain.releases import Scorecard
from eval.apart import apart
from eval.client import Failure
from eval.comparing import Comparison, compare
from eval.gates import Gate
from eval.observed import Observed
from eval.questions import Question
from eval.report import Report
from eval.report_tables import Fact, Failed
from tests.eval.replies import QUESTION, passage, quoting

GATES = (
    Gate("recall@6", floor=0.2, max_drop=0.1, min_items=1),
    Gate("answered", max_drop=0.1, min_items=1, advisory=True),
)
# recall@6 over q1 and q2: 1.0, 0.5 before and 0.5, 0.5 after; q3 is eligible in neither. answered: q2 only after.
BEFORE = {
    "recall@6": {"q1": 1.0, "q2": 0.5, "q3": None},
    "answered": {"q1": 1.0, "q2": None, "q3": 0.0},
    "within_slo": {"q1": 1.0, "q2": 1.0, "q3": 0.0},
}
AFTER = {
    "recall@6": {"q1": 0.5, "q2": 0.5, "q3": None},
    "answered": {"q1": 1.0, "q2": 1.0, "q3": 1.0},
    "within_slo": {"q1": 1.0, "q2": 1.0, "q3": 1.0},
}
PARTS = {"q1": {"type": "inference"}, "q2": {"type": "inference"}, "q3": {"type": "null"}}


def card(version: str, values: Mapping[str, dict[str, float | None]], dataset: str = "d" * 16) -> Scorecard:
    return Scorecard(version, dataset, dict(values))


def comparison(
    before: Mapping[str, dict[str, float | None]] = BEFORE,
    after: Mapping[str, dict[str, float | None]] = AFTER,
    gates: tuple[Gate, ...] = GATES,
    parts: Mapping[str, Mapping[str, str]] = PARTS,
    names: tuple[str, str] = ("v1", "v2"),
) -> Comparison:
    return compare(
        card(names[0], before),
        card(names[1], after),
        gates,
        parts,
        alpha=0.05,
        power=0.9,
        effect=0.15,
        seed=7,
        timed={"within_slo"},
    )


def question(id: str, **more: Any) -> Question:
    return replace(QUESTION, id=id, **more)


OLD = Observed(question("q3"), quoting(passage("d1", "The gate closes at six metres.", title="Gates")), 10.0)
NEW = Observed(question("q3"), quoting(passage("d2", "The gate closes at nine metres.", title="Tides")), 20.0)
BROKEN = Observed(question("q3"), Failure("timeout", "Nobody answered in 5 s."), 5000.0)


def report(found: Comparison | None = None, **more: Any) -> Report:
    """A report in which q3 changed most, and q2 failed in the first version."""
    found = found or comparison()
    made = Report(
        comparison=found,
        facts=(Fact("Cut by", "heading-200-0", "fixed-60-0"), Fact("Encoder", "minilm", "minilm")),
        whole=(Fact("over_refusal", "0.1", "not measured", marked=False),),
        reworded=2,
        shown=tuple((change, apart(OLD, NEW, None, Naming(()))) for change in found.changes[:1]),
        failed=(Failed("q2", "timeout", ""),),
        metrics={},
        metrics_before={},
        floors={},
        curves={},
        times_ms={"v2": [20.0, 30.0], "v1": [10.0, 5000.0]},
        alpha=0.05,
        all_text=False,
    )
    return replace(made, **more)
