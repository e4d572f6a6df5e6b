"""What a way of cutting is worth: gold that no passage holds, means with bounds, differences question by question."""

import pytest

from domain.releases import Scorecard
from eval.chunkings import Looked, Taken, Unresolved, compared, metric_names, tokens_at, unresolved
from eval.observed import Observed
from eval.questions import Anchor, Question

TAKEN = Taken(chunks=3, passages=3, mean_tokens=10.0, storage_bytes=1000, build_s=0.5)


def question(*anchors: tuple[str, str]) -> Question:
    evidence = tuple(Anchor(*anchor) for anchor in anchors)
    return Question("q", "When?", "noon", "inference", evidence, 1, "dev", "p", "harbour", frozenset({"staff"}))


def looked(name: str, **values: float | None) -> Looked:
    return Looked(name, TAKEN, None, Scorecard("v1", "set", {"recall@6": values}), {6: 60.0})


def test_gold_is_unresolved_where_no_passage_of_its_document_holds_it_whole() -> None:
    asked = [question(("a", "It stands at noon."), ("b", "It runs at nine.")), question(("a", "It stands at noon."))]
    halves = [("a", "It stands"), ("a", "at noon."), ("b", "# Pump\n\nIt runs\nat nine. And so on.")]
    assert unresolved(asked, halves) == Unresolved(count=1, absent=0, sentences=2)
    assert unresolved(asked, [*halves, ("a", "It stands at noon.")]) == Unresolved(0, 0, 2)
    # The sentence in another document is no evidence, and no way of cutting brings a document back.
    assert unresolved(asked, [("b", "It stands at noon. It runs at nine.")]) == Unresolved(1, 1, 2)


def test_without_gold_sentences_nothing_is_unresolved_and_nothing_resolved() -> None:
    assert unresolved([question(("a", ""))], [("a", "It runs.")]) is None


def test_evidence_is_measured_where_questions_name_sentences() -> None:
    assert metric_names([question(("a", "It runs."))], [6, 10]) == [
        "recall@6", "recall@10", "evidence_recall@6", "evidence_recall@10", "ndcg@10",
    ]  # fmt: skip
    assert metric_names([question(("a", ""))], [10]) == ["recall@10", "ndcg@10"]


def test_differences_are_paired_with_the_configured_way() -> None:
    ways = [looked("heading", q1=1.0, q2=0.0, q3=None), looked("fixed", q1=0.5, q2=0.0, q3=1.0)]
    heading, fixed = compared(ways, "heading", 0.05, 7)
    assert heading.means["recall@6"] is not None
    assert heading.means["recall@6"].mean == 0.5  # of two: the third is not eligible
    assert heading.differences == {"recall@6": None}
    apart = fixed.differences["recall@6"]
    assert apart is not None
    assert (apart.mean, apart.n) == (-0.25, 2)  # (-.5 + 0) / 2
    assert apart.low is not None
    assert apart.high is not None
    assert -1 <= apart.low < -0.25 < apart.high <= 1


def test_without_the_configured_way_or_an_eligible_question_there_is_no_number() -> None:
    (alone,) = compared([looked("fixed", q1=None)], "heading", 0.05, 7)
    assert alone.means == {"recall@6": None}
    assert alone.differences == {"recall@6": None}


def test_the_same_values_give_the_same_bounds_in_any_order_of_questions() -> None:
    values = {f"q{i}": float(i % 3 == 0) for i in range(40)}
    backwards = dict(reversed(values.items()))
    assert compared([looked("fixed", **values)], "fixed", 0.05, 7) == compared(
        [looked("fixed", **backwards)], "fixed", 0.05, 7
    )


@pytest.mark.parametrize(("k", "mean"), [(1, 2.5), (2, 6.5), (9, 6.5)])
def test_tokens_are_summed_over_the_first_passages_and_averaged_over_questions(k: int, mean: float) -> None:
    first = Observed(question(), {"consulted": [{"tokens": 4}, {"tokens": 8}]})
    second = Observed(question(), {"consulted": [{"tokens": 1}]})
    assert tokens_at([first, second], [k]) == {k: mean}  # (4 + 1) / 2, (12 + 1) / 2
