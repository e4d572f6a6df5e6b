"""Our numbers against other people's: ir-measures, a formula written out, and rankings worked out on paper.

What the conventions are stands in ADR 28; each of them has a case here that another convention would fail.
"""

from dataclasses import replace
from itertools import permutations
from math import log2
from random import Random
from typing import Any

import ir_measures
import pytest
from ir_measures import RR, R, nDCG

from domain.errors import CorpusError, StageFailed
from domain.releases import Outcome, Scorecard
from eval import beir
from eval.client import Failure
from eval.gates import Gate
from eval.harness import score
from eval.observed import Observed
from eval.questions import Anchor, Question
from eval.verdicts import judge
from tests.eval.replies import QUESTION, answer, means

Runs = dict[str, list[str]]
Qrels = dict[str, dict[str, int]]


def asked(qrels: Qrels) -> list[Question]:
    """A question per query, its gold evidence the relevant documents; without one it is a null question."""
    return [_about(query, [d for d, grade in grades.items() if grade > 0]) for query, grades in qrels.items()]


def _about(query: str, gold: list[str]) -> Question:
    question = replace(QUESTION, id=query, evidence=tuple(Anchor(d, "A sentence.") for d in gold), hops=len(gold))
    return question if gold else replace(question, type="null", answer="", aliases=())


def scored(runs: Runs, qrels: Qrels, *names: str) -> Scorecard:
    """What the metrics say when the service consults these documents, one passage each, in this order."""
    return score([Observed(question, answer(*runs[question.id])) for question in asked(qrels)], names)


# ---------------------------------------------------------------------------------------------- against ir-measures


def test_recall_ndcg_and_rr_agree_with_ir_measures_query_by_query() -> None:
    random = Random(3)
    documents = [f"d{i}" for i in range(30)]
    for _ in range(12):
        qrels = {f"q{i}": dict.fromkeys(random.sample(documents, random.randint(1, 6)), 1) for i in range(15)}
        runs = {query: random.sample(documents, random.randint(0, 20)) for query in qrels}
        k = random.randint(1, 25)
        falling = {query: {d: -float(rank) for rank, d in enumerate(run)} for query, run in runs.items()}
        oracle = {
            (str(found.measure), found.query_id): found.value
            for found in ir_measures.iter_calc([nDCG @ k, R @ k, RR @ k], qrels, falling)
        }
        for name, measure in (("ndcg", nDCG @ k), ("recall", R @ k), ("mrr", RR @ k)):
            for query, value in scored(runs, qrels, f"{name}@{k}").values[f"{name}@{k}"].items():
                assert value == pytest.approx(oracle[str(measure), query]), (name, k, query)


def test_several_passages_of_a_document_are_one_document_where_the_first_of_them_stood() -> None:
    """The cutoff counts passages: the oracle is given what is left of the first k when each document comes once."""
    random = Random(4)
    documents = [f"d{i}" for i in range(8)]
    for _ in range(100):
        passages = [random.choice(documents) for _ in range(random.randint(1, 15))]
        gold = random.sample(documents, random.randint(1, 4))
        k = random.randint(1, 15)
        seen = list(dict.fromkeys(passages[:k]))
        run = {"q": {d: -float(rank) for rank, d in enumerate(seen)}}
        oracle = ir_measures.calc_aggregate([nDCG @ k, R @ k, RR @ k], {"q": dict.fromkeys(gold, 1)}, run)
        ours = scored({"q": passages}, {"q": dict.fromkeys(gold, 1)}, f"ndcg@{k}", f"recall@{k}", f"mrr@{k}")
        for name, measure in (("ndcg", nDCG @ k), ("recall", R @ k), ("mrr", RR @ k)):
            assert ours.values[f"{name}@{k}"]["q"] == pytest.approx(oracle[measure]), (passages, gold, k)


# ---------------------------------------------------------------------------------------------- graded


def ndcg_by_formula(ranking: list[str], grades: dict[str, int], k: int) -> float:
    """Linear gain over the best that any order of all judged documents reaches: searched, not sorted."""

    def dcg(order: Any) -> float:
        return sum(max(grades.get(d, 0), 0) / log2(rank + 1) for rank, d in enumerate(order[:k], 1))

    return dcg(ranking) / max(dcg(order) for order in permutations(grades))


def test_graded_ndcg_and_recall_of_a_collection_are_what_the_formula_says() -> None:
    random = Random(5)
    documents = [f"d{i}" for i in range(25)]
    for _ in range(40):
        grades = {d: random.randint(-1, 3) for d in random.sample(documents, 6)}
        ranking = random.sample(documents, random.randint(0, 25))
        relevant = {d for d, grade in grades.items() if grade > 0}
        if not relevant:
            continue
        found = beir.score({"q": ranking}, {"q": grades})
        assert found["ndcg@10"] == pytest.approx(ndcg_by_formula(ranking, grades, 10), abs=5e-5)
        assert found["recall@10"] == pytest.approx(len(relevant & set(ranking[:10])) / len(relevant), abs=5e-5)


# ---------------------------------------------------------------------------------------------- nothing relevant

UNEVEN: Qrels = {"q1": {"d1": 0, "d2": 1, "d3": 0}, "q2": {}, "q3": {"d2": 1, "d3": 1}, "q4": {"d1": 0}}
SAME: Runs = {query: ["d2", "d3", "d1"] for query in UNEVEN}


def test_questions_without_a_relevant_document_are_in_no_mean_and_still_there() -> None:
    card = scored(SAME, UNEVEN, "recall@2", "ndcg@3", "abstention")
    # q1 finds d2 first, q3 finds d2 and d3 first and second: 1 each. q2 and q4 have nothing to find.
    assert card.values["recall@2"] == {"q1": 1.0, "q2": None, "q3": 1.0, "q4": None}
    assert card.values["ndcg@3"] == {"q1": 1.0, "q2": None, "q3": 1.0, "q4": None}
    assert means(card)["recall@2"] == (1.0, 2), "2 of 4 were scored"
    assert card.values["abstention"] == {"q1": None, "q2": 0.0, "q3": None, "q4": 0.0}, (
        "these should have been declined"
    )


def test_when_nothing_can_be_scored_a_gate_says_error_and_never_pass() -> None:
    nothing: Qrels = {"q2": {}, "q4": {"d1": 0}}
    card = scored({"q2": ["d2"], "q4": ["d1"]}, nothing, "recall@2")
    assert means(card) == {}
    (verdict,) = judge(card, None, [Gate("recall@2", floor=0.0, min_items=1)], {}, alpha=0.05, seed=1)
    assert verdict.outcome is Outcome.ERROR
    with pytest.raises(CorpusError, match="Nothing can be scored"):
        beir.score({"q2": ["d2"]}, nothing)


# ---------------------------------------------------------------------------------------------- ties, gain


def test_ties_stand_in_the_order_given_for_every_metric_alike() -> None:
    # d1, d2, d3 with one score, d3 relevant: third, so 1/3 and 1 / log2(4) = .5. Sorted by falling id it would be 1.
    card = scored({"q1": ["d1", "d2", "d3"]}, {"q1": {"d3": 1}}, "mrr@10", "ndcg@10")
    assert card.values == {"mrr@10": {"q1": pytest.approx(1 / 3)}, "ndcg@10": {"q1": 0.5}}
    assert beir.score({"q1": ["d1", "d2", "d3"]}, {"q1": {"d3": 1}})["ndcg@10"] == 0.5


def test_gain_is_linear_in_the_grade_and_binary_where_evidence_is_gold() -> None:
    # d2 of grade 1, then d1 of grade 3: (1 + 3 / log2(3)) / (3 + 1 / log2(3)) = .7967; 2^grade - 1 would give .7098.
    assert beir.score({"g1": ["d2", "d1"]}, {"g1": {"d1": 3, "d2": 1}})["ndcg@10"] == 0.7967
    # As gold evidence both are worth 1, and any grade from 1 on is relevant: nothing better could have come.
    assert scored({"g1": ["d2", "d1"]}, {"g1": {"d1": 3, "d2": 1}}, "ndcg@10").values["ndcg@10"]["g1"] == 1.0


def test_the_order_in_which_questions_and_judgements_are_written_changes_nothing() -> None:
    qrels: Qrels = {"q1": {"d3": 1}, "g1": {"d1": 3, "d2": 1}}
    runs: Runs = {"q1": ["d1", "d2", "d3"], "g1": ["d2", "d1"]}
    names = ("mrr@10", "ndcg@10", "recall@1")
    turned: Qrels = {query: dict(reversed(grades.items())) for query, grades in reversed(qrels.items())}
    first, second = scored(runs, qrels, *names), scored(runs, turned, *names)
    assert means(first) == means(second)
    assert {name: dict(sorted(per.items())) for name, per in first.values.items()} == {
        name: dict(sorted(per.items())) for name, per in second.values.items()
    }


# ---------------------------------------------------------------------------------------------- missing and failed

BOTH: Qrels = {"qa": {"d1": 1, "d2": 1}, "qb": {"d5": 1, "d6": 1}}


def test_what_was_missed_stays_in_the_ideal_and_who_found_nothing_stays_in_the_mean() -> None:
    # qa finds one of two at rank 1: 1 / (1 + 1 / log2(3)) = .6131 and 1/2. qb finds nothing: 0 and 0.
    card = scored({"qa": ["d1"], "qb": []}, BOTH, "ndcg@10", "recall@10")
    assert card.values["ndcg@10"] == {"qa": pytest.approx(0.6131, abs=5e-5), "qb": 0.0}
    assert card.values["recall@10"] == {"qa": 0.5, "qb": 0.0}
    assert means(card) == {"ndcg@10": (pytest.approx(0.3066, abs=5e-5), 2), "recall@10": (0.25, 2)}
    assert beir.score({"qa": ["d1"]}, BOTH) == {"ndcg@10": 0.3066, "recall@10": 0.25, "recall@100": 0.25}


def test_a_failed_question_weighs_as_much_as_one_that_found_nothing() -> None:
    qa, qb = asked(BOTH)
    observed = [Observed(qa, answer("d1")), Observed(qb, Failure("timeout", "too slow"))]
    assert means(score(observed, ("ndcg@10", "recall@10"))) == {
        "ndcg@10": (pytest.approx(0.3066, abs=5e-5), 2),
        "recall@10": (0.25, 2),
    }


def test_when_every_question_fails_there_is_no_number_at_all() -> None:
    with pytest.raises(StageFailed, match="All 2 questions failed"):
        score([Observed(question, Failure("timeout", "too slow")) for question in asked(BOTH)], ("recall@10",))
