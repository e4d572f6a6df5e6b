"""Floors: which lists are refused, and what each verdict says."""

from math import inf, nan

import pytest

from domain.errors import ConfigError
from domain.releases import Outcome, Scorecard, Verdict
from eval.gates import Floor, digest, floors, judge, worst

FLOORS = {"recall@6": 0.7, "citation_recall": 0.5}


def card(**values: list[float | None]) -> Scorecard:
    """A scorecard of metrics, `_at_` for the @ of a cutoff, with questions q0, q1 and so on."""
    named = {name.replace("_at_", "@"): each for name, each in values.items()}
    return Scorecard("v1", "set-1", {name: {f"q{i}": v for i, v in enumerate(each)} for name, each in named.items()})


@pytest.mark.parametrize("name", ["recall@6", "evidence_recall@6", "full_chain_recall@6"])
@pytest.mark.parametrize("citation", ["citation_recall", "citation_precision"])
def test_a_recall_gate_and_a_citation_gate_are_enough(name: str, citation: str) -> None:
    assert [gate.metric for gate in floors({name: 0.5, citation: 0.5})] == sorted([name, citation])


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [
        ({"citation_recall": 0.5}, ["no recall gate (one of: recall, evidence_recall, full_chain_recall)"]),
        ({"recall@6": 0.5}, ["no citation gate (one of: citation_recall, citation_precision)"]),
        ({"ndcg@6": 0.5, "answered": 0.5}, ["no recall gate", "no citation gate"]),
        ({}, ["no recall gate", "no citation gate"]),
    ],
)
def test_a_list_without_one_of_the_two_is_refused(wanted: dict[str, float], missing: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        floors(wanted)
    assert all(text in str(caught.value) for text in missing)


def test_every_problem_of_a_list_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        floors({"recal@6": 0.5, "citation": 0.5, "ndcg@6": nan, "mrr@6": 1.2, "answered": -0.1, "success": inf})
    said = str(caught.value)
    assert "There is no metric 'recal@6' or 'citation': there are recall@k, " in said
    for problem in ("ndcg@6 nan is not in 0..1", "mrr@6 1.2 ", "answered -0.1 ", "success inf ", "no recall gate"):
        assert problem in said
    assert said.count("there are recall@k") == 1


def test_the_bounds_themselves_are_floors() -> None:
    assert [gate.floor for gate in floors({"recall@6": 0, "citation_recall": 1})] == [1.0, 0.0]


def test_a_floor_that_is_reached_exactly_passes() -> None:
    # 7 of 10 questions: a mean of exactly 0.7.
    verdicts = judge(card(recall_at_6=[1.0] * 7 + [0.0] * 3, citation_recall=[0.4, 0.5]), floors(FLOORS))
    assert [(v.gate, v.outcome) for v in verdicts] == [("citation_recall", Outcome.FAIL), ("recall@6", Outcome.PASS)]
    assert verdicts[0].reason == "0.4500 over 2 questions, floor 0.5000"


def test_questions_that_are_not_eligible_are_in_no_mean() -> None:
    (verdict,) = judge(card(recall_at_6=[1.0, None, 0.5, None]), [Floor("recall@6", 0.75)])
    assert (verdict.outcome, verdict.reason) == (Outcome.PASS, "0.7500 over 2 questions, floor 0.7500")


def test_a_metric_nobody_is_eligible_for_was_not_measured_which_is_no_pass() -> None:
    for scorecard in (card(recall_at_6=[None, None]), card(recall_at_6=[]), card()):
        (verdict,) = judge(scorecard, [Floor("recall@6", 0.0)])
        assert verdict.outcome is Outcome.ERROR
        assert verdict.reason.startswith("not measured")


def test_too_few_questions_are_inconclusive_whatever_the_mean_says() -> None:
    for mean in (0.0, 1.0):
        (verdict,) = judge(card(recall_at_6=[mean] * 4), [Floor("recall@6", 0.5, min_items=5)])
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "needs 5 questions" in verdict.reason


def test_a_mean_that_is_no_number_never_passes() -> None:
    (verdict,) = judge(card(recall_at_6=[nan, 1.0]), [Floor("recall@6", 0.0)])
    assert verdict.outcome is not Outcome.PASS


def test_the_worst_binding_verdict_decides_and_no_verdict_is_an_error() -> None:
    passed, unsure = Verdict("a", Outcome.PASS, ""), Verdict("b", Outcome.INCONCLUSIVE, "")
    advice = Verdict("c", Outcome.FAIL, "", advisory=True)
    assert worst([passed, unsure, advice]) is Outcome.INCONCLUSIVE
    assert worst([passed, advice]) is Outcome.PASS
    assert worst([advice]) is worst([]) is Outcome.ERROR


def test_an_advisory_gate_says_so_in_its_verdict() -> None:
    (verdict,) = judge(card(answered=[0.0]), [Floor("answered", 0.5, advisory=True)])
    assert (verdict.outcome, verdict.advisory) == (Outcome.FAIL, True)


def test_the_digest_names_the_gates_and_not_their_order() -> None:
    base = digest(floors(FLOORS))
    assert digest(floors(dict(reversed(FLOORS.items())))) == base
    assert digest(tuple(reversed(floors(FLOORS)))) == base
    assert digest(floors({"recall@6": 1, "citation_recall": 0.5})) == digest(floors(FLOORS | {"recall@6": 1.0}))
    others = [FLOORS | {"recall@6": 0.71}, FLOORS | {"answered": 0.5}, {"recall@7": 0.7, "citation_recall": 0.5}]
    others_digests = {digest(floors(other)) for other in others} | {digest(floors(FLOORS, min_items=2))}
    assert len(others_digests | {base}) == 5
