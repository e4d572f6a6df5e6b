"""Evaluations to write down: small, with a number of every kind."""

from dataclasses import replace

from domain.evaluation import ALL, Difference, Estimate, Evaluation, Row
from domain.releases import Binding, Outcome, Verdict

AT = "2026-01-31T12:00:00+00:00"


def evaluation(version: str = "v1", baseline: str | None = None, **more: object) -> Evaluation:
    """Two questions, one of them of another tenant and failed; an interval that is there and one that is not."""
    rows = (
        Row("q1", "harbour", frozenset({"public"}), {"type": "comparison"}, {"recall@6": 1.0}, 12.5, "", "Why?", "So."),
        Row("q2", "quarry", frozenset({"board"}), {"type": "null"}, {"recall@6": None}, None, "timeout", "Who?", "He."),
    )
    difference = Difference("recall@6", "type=comparison", Estimate(-0.01, -0.03, 0.01, 1), 0.02)
    made = Evaluation(
        Binding(version, "f" * 16, "5" * 16, "9" * 12, "0.1.0", baseline),
        AT,
        {"recall@6": {ALL: Estimate(1.0, 0.25, 1.0, 1), "type=comparison": Estimate(1.0, None, None, 1)}},
        rows,
        (Verdict("recall@6 floor", Outcome.PASS, "1.0000 | over 1"), Verdict("cost", Outcome.FAIL, "dear", True)),
        (difference,) if baseline else (),
        {version: {1: Estimate(0.5, 0.1, 0.9, 1), 6: Estimate(1.0, 0.25, 1.0, 1)}},
        {"recall@6": 0.7},
        {"seed": "7", "prompt": "x" * 10_000},
        {"cost_usd_per_1000": 3.5},
    )
    return replace(made, **more)  # type: ignore[arg-type]  # fields of Evaluation
