"""Gate lists: which are refused, with every problem at once, and what their digest tells apart."""

from math import inf, nan
from typing import Any

import pytest

from domain.errors import ConfigError
from domain.releases import Outcome, Verdict
from eval.gates import Gate, digest, gates, worst

Row = dict[str, Any]
RECALL: Row = {"metric": "recall@6", "floor": 0.7, "max_drop": 0.02}
CITATION: Row = {"metric": "citation_recall", "floor": 0.5}


@pytest.mark.parametrize("name", ["recall@6", "evidence_recall@6", "full_chain_recall@6"])
@pytest.mark.parametrize("citation", ["citation_recall", "citation_precision"])
def test_a_recall_gate_and_a_citation_gate_are_enough(name: str, citation: str) -> None:
    listed = gates([{"metric": name, "floor": 0.5}, {"metric": citation, "floor": 0.5}])
    assert listed == (Gate(name, floor=0.5), Gate(citation, floor=0.5))


NO_RECALL = "no recall gate over all questions has a floor and is binding (one of: recall, evidence_recall, "
NO_CITATION = "no citation gate over all questions has a floor and is binding (one of: citation_recall, "


@pytest.mark.parametrize(
    ("rows", "missing"),
    [
        ([], [NO_RECALL, NO_CITATION]),
        ([CITATION], [NO_RECALL]),
        ([RECALL], [NO_CITATION]),
        ([RECALL | {"advisory": True}, CITATION], [NO_RECALL]),
        ([RECALL | {"slice": "type=comparison"}, CITATION], [NO_RECALL]),
        # A first version has nothing it could have dropped from, so a drop alone would let it through unseen.
        ([{"metric": "recall@6", "max_drop": 0.02}, CITATION], [NO_RECALL]),
    ],
)
def test_a_list_without_one_of_the_two_is_refused(rows: list[Row], missing: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        gates(rows)
    assert [text for text in (NO_RECALL, NO_CITATION) if text in str(caught.value)] == missing


def test_every_problem_of_a_list_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        gates(
            [
                {"metric": "recal@6", "floor": 0.5},
                {"metric": "ndcg@6", "floor": nan, "max_drop": -0.1},
                {"metric": "mrr@6", "max_drop": inf},
                {"metric": "answered", "min_items": 0},
                {"metric": "success", "flor": 0.5, "floor": 0.5},
                {"metric": "success", "floor": 0.6},
                {"floor": 0.6},
            ]
        )
    said = str(caught.value)
    assert said.startswith("evaluation.gates cannot guard a promotion: ")
    for problem in (
        "gate 5 has no key 'flor' (there are advisory, floor, max_drop, metric, min_items, slice)",
        "gate 7 names no metric",
        "There is no metric 'recal@6': there are recall@k, ",
        "ndcg@6 has floor nan, which is not in 0..1",
        "ndcg@6 has max_drop -0.1, which is not in 0..1",
        "mrr@6 has max_drop inf, which is not in 0..1",
        "answered has neither a floor nor a max_drop",
        "answered has min_items 0, which is below 1",
        "success is listed twice",
        "no citation gate",
    ):
        assert problem in said


def test_the_bounds_themselves_are_fine_and_so_is_one_metric_in_several_slices() -> None:
    rows = [RECALL | {"floor": 0, "max_drop": 1}, CITATION | {"floor": 1}, CITATION | {"slice": "hops=2"}]
    assert [gate.label for gate in gates(rows)] == ["recall@6", "citation_recall", "citation_recall [hops=2]"]


def test_the_worst_binding_verdict_decides_and_no_verdict_is_an_error() -> None:
    passed, unsure = Verdict("a", Outcome.PASS, ""), Verdict("b", Outcome.INCONCLUSIVE, "")
    advice = Verdict("c", Outcome.FAIL, "", advisory=True)
    assert worst([passed, unsure, advice]) is Outcome.INCONCLUSIVE
    assert worst([passed, advice]) is Outcome.PASS
    assert worst([advice]) is worst([]) is Outcome.ERROR


def test_the_digest_names_the_gates_and_not_their_order_or_spelling() -> None:
    base = digest(gates([RECALL, CITATION]))
    assert digest(gates([CITATION, RECALL])) == base
    ones = [digest(gates([RECALL | {"floor": one}, CITATION])) for one in (1, 1.0)]
    assert ones[0] == ones[1] != base


@pytest.mark.parametrize(
    "change",
    [
        {"floor": 0.71},
        {"max_drop": 0.03},
        {"max_drop": None},
        {"min_items": 49},
        {"metric": "recall@7"},
    ],
)
def test_the_digest_moves_with_every_part_of_a_gate(change: Row) -> None:
    assert digest(gates([RECALL | change, CITATION])) != digest(gates([RECALL, CITATION]))


@pytest.mark.parametrize("change", [{"advisory": True}, {"slice": "type=comparison"}])
def test_the_digest_tells_a_gate_that_binds_from_one_that_does_not_and_a_slice_from_all(change: Row) -> None:
    more = {"metric": "answered", "floor": 0.5}
    assert digest(gates([RECALL, CITATION, more | change])) != digest(gates([RECALL, CITATION, more]))


def test_a_gate_on_attacks_is_known_and_is_about_no_slice_of_the_questions() -> None:
    row: Row = {"metric": "attack_resistance", "floor": 0.98}
    assert gates([RECALL, CITATION, row])[2] == Gate("attack_resistance", floor=0.98)
    with pytest.raises(ConfigError, match="attack_resistance is not about: leave slice out"):
        gates([RECALL, CITATION, row | {"slice": "type=comparison"}])
