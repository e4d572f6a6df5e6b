"""The pointer moves forward only over a passing decision about exactly what is served, and backward at any time."""

from dataclasses import replace

import pytest

from domain.errors import BadRequest, NotAdmitted
from domain.releases import Binding, Decision, IndexVersion, Move, Outcome, Rollout, Verb, Verdict
from domain.rollout import (
    arriving,
    assign,
    begin_canary,
    check_removable,
    moved_meanwhile,
    promote,
    removable,
    roll_back,
    widen,
)

SERVED = Binding("v2", "questions-1", "settings-1", "gates-1", "0.1.0")
PASSED = Decision(SERVED, (Verdict("recall@8", Outcome.PASS, "0.93 >= 0.80"),), "run-1", "2026-01-01T00:00:00Z")
STABLE = Rollout(stable="v1", revision=4)


def failed(outcome: Outcome) -> Decision:
    return replace(PASSED, verdicts=(*PASSED.verdicts, Verdict("citation_precision", outcome, "0.41 < 0.90")))


def test_before_the_first_promotion_nobody_is_assigned_anything() -> None:
    assert assign(Rollout(), "s1") is None


def test_without_a_canary_everybody_gets_stable() -> None:
    assert {assign(STABLE, f"s{i}") for i in range(100)} == {"v1"}


def test_a_canary_gets_about_its_share_and_always_the_same_sessions() -> None:
    rollout = begin_canary(STABLE, PASSED, SERVED, 0.2)
    first = {s for s in range(5000) if assign(rollout, f"s{s}") == "v2"}
    # 5000 draws at .2: standard deviation sqrt(5000 * .2 * .8) = 28.3, four of them either way
    assert 1000 - 113 < len(first) < 1000 + 113
    assert first == {s for s in range(5000) if assign(rollout, f"s{s}") == "v2"}


def test_widening_keeps_everybody_who_is_already_on_the_canary() -> None:
    narrow = begin_canary(STABLE, PASSED, SERVED, 0.1)
    wide = widen(narrow, PASSED, SERVED, 0.5)
    on_narrow = {s for s in range(2000) if assign(narrow, f"s{s}") == "v2"}
    assert on_narrow < {s for s in range(2000) if assign(wide, f"s{s}") == "v2"}


def test_the_next_canary_draws_other_sessions() -> None:
    one, two = Rollout("v1", "v2", 0.1), Rollout("v1", "v3", 0.1)
    drawn = [{s for s in range(2000) if assign(r, f"s{s}") == r.canary} for r in (one, two)]
    assert len(drawn[0] & drawn[1]) < len(drawn[0]) / 2


@pytest.mark.parametrize("outcome", [Outcome.INCONCLUSIVE, Outcome.ERROR, Outcome.FAIL])
def test_only_a_pass_moves_the_pointer_forward(outcome: Outcome) -> None:
    for move in (lambda d: promote(STABLE, d, SERVED), lambda d: begin_canary(STABLE, d, SERVED, 0.1)):
        with pytest.raises(NotAdmitted, match=r"citation_precision: 0.41 < 0.90"):
            move(failed(outcome))


def test_a_decision_without_a_binding_verdict_could_not_be_measured() -> None:
    advisory = replace(PASSED, verdicts=(replace(PASSED.verdicts[0], advisory=True),))
    assert advisory.outcome is Outcome.ERROR
    with pytest.raises(NotAdmitted, match="no gate was measured"):
        promote(STABLE, advisory, SERVED)


def test_a_failing_advisory_gate_does_not_bind() -> None:
    decision = replace(PASSED, verdicts=(*PASSED.verdicts, Verdict("cost", Outcome.FAIL, "up", advisory=True)))
    assert promote(STABLE, decision, SERVED).stable == "v2"


def test_a_forced_decision_moves_the_pointer_and_keeps_its_reason() -> None:
    forced = replace(failed(Outcome.FAIL), forced="restoring service")
    assert promote(STABLE, forced, SERVED).stable == "v2"


@pytest.mark.parametrize("name", ["version", "dataset", "settings", "gates", "code", "baseline"])
def test_a_decision_about_something_else_is_refused_and_says_what_differs(name: str) -> None:
    served = replace(SERVED, **{name: "other"})
    with pytest.raises(NotAdmitted, match=rf"{name} \S+ was measured, other would be served"):
        promote(STABLE, replace(PASSED, forced="even when forced"), served)


def test_a_decision_about_something_else_is_refused_with_the_command_that_decides_again() -> None:
    with pytest.raises(NotAdmitted, match=r"Decide about it as it would be served now: tidegate gate v2\.$"):
        promote(STABLE, PASSED, replace(SERVED, settings="settings-2"))
    with pytest.raises(NotAdmitted, match=r"tidegate gate v2, or name the question set .* with --questions\.$"):
        promote(STABLE, PASSED, replace(SERVED, dataset="questions-2"))


def test_promoting_a_canary_keeps_the_old_stable_as_previous() -> None:
    rollout = promote(begin_canary(STABLE, PASSED, SERVED, 0.1), PASSED, SERVED)
    assert rollout == Rollout(stable="v2", canary=None, share=0.0, previous="v1", revision=6)


def test_promoting_what_is_stable_changes_nothing() -> None:
    rollout = Rollout(stable="v2", previous="v1", revision=9)
    assert promote(rollout, PASSED, SERVED) is rollout


def test_the_first_promotion_has_no_previous() -> None:
    assert promote(Rollout(), PASSED, SERVED) == Rollout(stable="v2", revision=1)


def test_rolling_back_drops_the_canary_first_and_stable_second() -> None:
    promoted = Rollout(stable="v2", canary="v3", share=0.5, previous="v1", revision=7)
    without_canary = roll_back(promoted, ())
    assert without_canary == Rollout(stable="v2", previous="v1", revision=8)
    assert roll_back(without_canary, ("v1",)) == Rollout(stable="v1", revision=9)


def test_rolling_back_twice_does_not_bring_the_bad_version_forward() -> None:
    once = roll_back(Rollout(stable="v2", previous="v1"), ("v1",))
    with pytest.raises(BadRequest, match="no previous version to roll back to; earlier ones that exist: v2, v0"):
        roll_back(once, ("v2", "v0"))


def test_rolling_back_to_the_stable_version_of_a_canary_leaves_the_canary() -> None:
    canaried = Rollout(stable="v2", canary="v3", share=0.5, previous="v1", revision=7, began=7, auto=True)
    assert roll_back(canaried, (), "v2") == Rollout(stable="v2", previous="v1", revision=8)


def test_rolling_back_to_a_named_version_leaves_the_canary_too() -> None:
    canaried = Rollout(stable="v2", canary="v3", share=0.5, previous="v1", revision=7)
    assert roll_back(canaried, ("v1", "v0"), "v0") == Rollout(stable="v0", revision=8)


@pytest.mark.parametrize(("to", "why"), [("v2", "v2 is stable already"), ("v9", "v9 cannot be rolled back to")])
def test_rolling_back_to_nowhere_names_the_possible_ones(to: str, why: str) -> None:
    with pytest.raises(BadRequest, match=f"{why}.*: v1, v0"):
        roll_back(Rollout(stable="v2", previous="v1"), ("v1", "v0"), to)


def test_rolling_back_to_a_previous_version_that_is_gone_is_refused() -> None:
    with pytest.raises(BadRequest, match=r"v1 cannot be rolled back to: it is gone .*: none\."):
        roll_back(Rollout(stable="v2", previous="v1"), ())


def versions(*ids: str) -> tuple[IndexVersion, ...]:
    return tuple(IndexVersion(id, None, "fixed", "a1", "hash-256", 1, 1, "2026-01-01") for id in ids)


def test_of_the_versions_nobody_needs_the_newest_are_kept() -> None:
    there = versions("v1", "v2", "v3", "v4", "v5", "v6")
    rollout = Rollout(stable="v4", canary="v6", share=0.1, previous="v2")
    assert removable(there, rollout, 0) == ("v1", "v3", "v5")
    assert removable(there, rollout, 1) == ("v1", "v3")
    assert removable(there, rollout, 3) == removable(there, rollout, 99) == ()


def test_before_the_first_promotion_old_builds_may_go() -> None:
    assert removable(versions("v1", "v2"), Rollout(), 1) == ("v1",)


def test_keeping_fewer_than_no_versions_is_refused() -> None:
    with pytest.raises(BadRequest, match="0 or more"):
        removable((), Rollout(), -1)


@pytest.mark.parametrize(("version", "role"), [("v1", "goes back to"), ("v2", "is stable"), ("v3", "is the canary")])
def test_what_people_get_or_may_go_back_to_is_not_removed(version: str, role: str) -> None:
    rollout = Rollout(stable="v2", canary="v3", share=0.5, previous="v1")
    with pytest.raises(BadRequest, match=role):
        check_removable(version, rollout)
    check_removable("v9", rollout)


def test_only_what_a_move_brings_to_people_is_arriving() -> None:
    canaried = Rollout(stable="v2", canary="v3", share=0.5, previous="v1")
    assert arriving(Rollout(stable="v2"), canaried) == ("v3",)
    assert arriving(canaried, Rollout(stable="v3", previous="v2")) == ("v3",)
    assert arriving(canaried, Rollout(stable="v2", previous="v1")) == ()
    assert arriving(Rollout(), Rollout(stable="v1")) == ("v1",)


def test_who_comes_too_late_is_told_what_moved() -> None:
    before, after = Rollout(stable="v1", revision=3), Rollout("v1", "v2", 0.05, revision=4)
    faster = Move(Verb.CANARY, "2026-01-31T12:00:00.000+00:00", "the night shift", before, after)
    assert str(moved_meanwhile(before, after, faster)) == (
        "The rollout pointer is at revision 4, not 3: the night shift made a canary move at "
        "2026-01-31T12:00:00.000+00:00, from stable v1, no canary to stable v1, canary v2 at 5%; "
        "read it again and decide again."
    )
    assert "it has stable v1, canary v2 at 5%" in str(moved_meanwhile(before, after, None))


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_a_share_outside_of_zero_to_one_is_refused(share: float) -> None:
    with pytest.raises(BadRequest, match="canary share"):
        begin_canary(STABLE, PASSED, SERVED, share)


def test_whoever_can_never_begin_a_canary_is_not_sent_to_decide_about_it_again() -> None:
    was_compared = replace(SERVED, baseline="v1")  # as the decision that made v2 stable; now there is nothing beside it
    with pytest.raises(BadRequest, match="v2 is already stable"):
        begin_canary(Rollout("v2", revision=5), replace(PASSED, binding=was_compared), SERVED, 0.1)
    with pytest.raises(BadRequest, match="v3 is the canary: promote it or roll it back first"):
        begin_canary(Rollout("v1", "v3", 0.1, revision=5), failed(Outcome.FAIL), SERVED, 0.1)


def test_a_canary_needs_a_stable_version_and_an_empty_place() -> None:
    with pytest.raises(NotAdmitted, match="promote it instead"):
        begin_canary(Rollout(), PASSED, SERVED, 0.1)
    with pytest.raises(BadRequest, match="v3 is the canary"):
        begin_canary(Rollout("v1", "v3", 0.1), PASSED, SERVED, 0.1)
    with pytest.raises(BadRequest, match="already stable"):
        begin_canary(Rollout("v2"), PASSED, SERVED, 0.1)


def test_nobody_is_sent_to_decide_about_a_move_that_can_never_be_made() -> None:
    canary = begin_canary(STABLE, PASSED, SERVED, 0.25)
    refused = failed(Outcome.FAIL)
    with pytest.raises(BadRequest, match="name a larger share"):
        widen(canary, refused, SERVED, 0.1)
    other = replace(SERVED, version="v3")
    with pytest.raises(BadRequest, match="v2 is the canary"):
        promote(canary, replace(refused, binding=other), other)


def test_widening_never_narrows() -> None:
    with pytest.raises(BadRequest, match=r"already has 0\.2"):
        widen(Rollout("v1", "v2", 0.2), PASSED, SERVED, 0.2)
    with pytest.raises(BadRequest, match="no canary"):
        widen(STABLE, PASSED, SERVED, 0.2)


def test_a_canary_widens_only_as_long_as_it_is_what_was_decided_about() -> None:
    with pytest.raises(NotAdmitted, match="settings-1 was measured, settings-2 would be served"):
        widen(Rollout("v1", "v2", 0.2), PASSED, replace(SERVED, settings="settings-2"), 0.5)
