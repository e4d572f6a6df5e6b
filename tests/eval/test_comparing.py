"""Two versions compared: every number can be checked on paper, and the verdicts are the gate's own."""

from dataclasses import replace

import pytest

from domain.errors import BadRequest
from domain.naming import Naming
from domain.releases import Outcome
from eval.comparing import TOLD_SLICES, Line, compare, scrubbed
from eval.gates import Gate
from eval.verdicts import judge
from tests.eval.comparisons import AFTER, BEFORE, GATES, PARTS, card, comparison


def line(metric: str, **more: object) -> Line:
    return next(one for one in comparison(**more).lines if one.metric == metric)  # type: ignore[arg-type]  # see there


def test_means_and_difference_are_over_the_questions_eligible_in_both_and_add_up() -> None:
    # recall@6: (1 + .5) / 2 before, (.5 + .5) / 2 after, over q1 and q2; q3 is eligible in neither.
    found = line("recall@6")
    assert (found.before, found.after) == (0.75, 0.5)
    assert found.difference is not None
    assert found.difference.mean == -0.25
    assert (found.n, found.better, found.worse, found.equal) == (2, 0, 1, 1)
    assert (found.one_sided, found.ineligible) == (0, 1)


def test_a_question_eligible_in_one_version_only_is_counted_and_in_no_mean() -> None:
    # answered: q1 1 -> 1, q3 0 -> 1, and q2 has no value before.
    found = line("answered")
    assert (found.before, found.after) == (0.5, 1.0)
    assert (found.n, found.better, found.equal, found.one_sided, found.ineligible) == (2, 1, 1, 1, 0)


def test_what_nobody_is_eligible_for_in_both_was_not_measured_and_is_not_zero() -> None:
    never = {"answered": {"q1": None, "q2": None, "q3": 1.0}}
    found = line("answered", before=never, after={"answered": {"q1": 1.0, "q2": None, "q3": None}}, gates=())
    assert (found.before, found.after, found.difference, found.drawn) == (None, None, None, None)
    assert (found.n, found.equal, found.one_sided, found.ineligible) == (0, 0, 2, 1)


def test_a_line_carries_the_worst_that_its_own_gate_says_and_nothing_without_one() -> None:
    found = comparison()
    of = {v.gate: v.outcome for v in found.verdicts}
    assert line("recall@6").outcome is max(of["recall@6 floor"], of["recall@6 max_drop"])
    assert not line("recall@6").advisory
    assert line("recall@6").max_drop == 0.1
    assert line("answered").advisory
    assert line("within_slo").outcome is None


def test_a_gate_that_binds_is_heard_before_a_worse_one_that_does_not() -> None:
    # Without a floor the max_drop is INCONCLUSIVE; an advisory twin of the gate would only repeat it.
    worse = {**AFTER, "recall@6": {"q1": 0.0, "q2": 0.0, "q3": None}}
    found = line("recall@6", after=worse, gates=(replace(GATES[0], max_drop=None), GATES[1]))
    assert found.outcome is Outcome.FAIL


def test_the_verdicts_are_those_of_the_gate_with_the_same_numbers_as_the_line() -> None:
    found = comparison()
    assert found.verdicts == judge(card("v2", AFTER), card("v1", BEFORE), GATES, PARTS, alpha=0.05, seed=7)
    told, numbers = line("recall@6"), next(v.reason for v in found.verdicts if v.gate == "recall@6 max_drop")
    assert told.difference is not None
    assert numbers.startswith(
        f"{told.after:.4f} against {told.before:.4f}, difference {told.difference.mean:+.4f} "
        f"[{told.difference.low:+.4f}, {told.difference.high:+.4f}] over {told.n} questions"
    )
    assert found.outcome is Outcome.INCONCLUSIVE


def test_scorecards_of_two_question_sets_are_refused_naming_both() -> None:
    with pytest.raises(BadRequest, match="v1 was measured on question set old, v2 on new"):
        compare(
            card("v1", BEFORE, "old"), card("v2", AFTER, "new"), GATES, PARTS, alpha=0.05, power=0.9, effect=0.1, seed=1
        )


def test_a_version_differs_in_nothing_from_itself() -> None:
    found = comparison(after=BEFORE, names=("v1", "v1"))
    assert found.alike
    assert found.changes == ()
    assert found.slices == ()
    assert {one.difference.mean for one in found.lines if one.difference} == {0.0}


# ---------------------------------------------------------------------------------------------- changed questions


def test_questions_that_changed_stand_in_the_order_of_the_sum_of_their_differences() -> None:
    # q3: answered 0 -> 1. q1: recall 1 -> .5. q2: answered became eligible, which is a change of no size.
    found = comparison()
    assert [(c.question, c.total) for c in found.changes] == [("q3", 1.0), ("q1", 0.5), ("q2", 0.0)]
    assert found.changes[2].values == {"answered": (None, 1.0)}


def test_how_busy_the_machine_was_changes_no_question() -> None:
    assert "within_slo" not in comparison().changes[0].values
    assert line("within_slo").better == 1, "it has its line all the same"


def test_attacks_have_their_line_and_are_no_questions() -> None:
    many = {f"attack-{i}": 1.0 for i in range(9)}
    found = comparison(
        before={**BEFORE, "attack_resistance": many}, after={**AFTER, "attack_resistance": {**many, "attack-1": 0.0}}
    )
    line = next(one for one in found.lines if one.metric == "attack_resistance")
    assert (line.n, line.worse, found.questions) == (9, 1, 3)
    assert not any(change.question.startswith("attack") for change in found.changes)


def test_questions_that_changed_equally_stand_in_the_order_of_their_ids() -> None:
    ids = ["q2", "q10", "q1"]
    found = comparison(
        before={"recall@6": dict.fromkeys(ids, 0.0)}, after={"recall@6": dict.fromkeys(ids, 1.0)}, parts={}
    )
    assert [c.question for c in found.changes] == ["q1", "q10", "q2"]


def test_metrics_that_changed_alike_are_told_together() -> None:
    before = {name: {"q1": 1.0} for name in ("recall@6", "answered", "success")}
    after = {"recall@6": {"q1": 0.0}, "answered": {"q1": 0.5}, "success": {"q1": 0.0}}
    (change,) = comparison(before=before, after=after, parts={}).changes
    assert change.grouped == {(1.0, 0.0): ["recall@6", "success"], (1.0, 0.5): ["answered"]}


# ---------------------------------------------------------------------------------------------- slices


def wide(drops: dict[str, int], size: int = 40) -> tuple[dict[str, dict[str, float | None]], dict[str, dict[str, str]]]:
    """So many questions in each slice, of which the first few are lost; and the slice of each."""
    ids = {f"{kind}{number}": number < lost for kind, lost in drops.items() for number in range(size)}
    return {"recall@6": {id: 0.0 if lost else 1.0 for id, lost in ids.items()}}, {i: {"type": i[0]} for i in ids}


def test_slices_that_surely_differ_most_come_first_and_those_that_do_not_differ_are_left_out() -> None:
    after, parts = wide({"a": 4, "b": 30, "c": 0})
    before, _ = wide({"a": 0, "b": 0, "c": 0})
    found = comparison(before=before, after=after, gates=(Gate("recall@6", floor=0.1),), parts=parts)
    assert [(one.slice, one.worse, one.n) for one in found.slices] == [("type=b", 30, 40), ("type=a", 4, 40)]


def test_a_slice_too_small_to_mean_anything_is_no_part_of_the_list() -> None:
    after, parts = wide({"a": 19, "b": 0}, size=19)
    before, _ = wide({"a": 0, "b": 0}, size=19)
    assert comparison(before=before, after=after, parts=parts).slices == ()


def test_no_more_slices_are_told_than_somebody_reads() -> None:
    kinds = {chr(ord("a") + number): 5 for number in range(TOLD_SLICES + 3)}
    after, parts = wide(kinds, size=20)
    before, _ = wide(dict.fromkeys(kinds, 0), size=20)
    assert len(comparison(before=before, after=after, parts=parts).slices) == TOLD_SLICES


def test_forbidden_terms_leave_ids_and_slices_too() -> None:
    after, parts = wide({"a": 20, "b": 0}, size=20)
    before, _ = wide({"a": 0, "b": 0}, size=20)
    named = {id: {"type": "Zanzibrand" if part["type"] == "a" else "b"} for id, part in parts.items()}
    gates = (Gate("recall@6", floor=0.1, max_drop=0.05, min_items=1), Gate("recall@6", "type=Zanzibrand", max_drop=0.1))
    clean = scrubbed(comparison(before=before, after=after, gates=gates, parts=named), Naming(["zanzibrand"]))
    assert "zanzibrand" not in repr(clean).lower()
    assert any("[name removed]" in one.slice for one in clean.slices)
