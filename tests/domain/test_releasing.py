"""Every way a version reaches people or leaves them, over a registry without a disk."""

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from domain.errors import BadRequest, NotAdmitted, NotFound, PointerMoved, StorageError
from domain.releases import Binding, Decision, IndexVersion, Outcome, Rollout, State, Verb, Verdict
from domain.releasing import Releases, stamp
from domain.rollout import removable
from tests.fakes import MemoryRegistry


@dataclass
class House:
    """Versions, decisions about them, and what is served."""

    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    questions: str = "questions-1"
    seconds: int = 0

    def __post_init__(self) -> None:
        self.releases = Releases(self.registry, self.served, self.now)

    def now(self) -> datetime:
        self.seconds += 1
        return datetime(2026, 1, 31, 12, 0, self.seconds, tzinfo=UTC)

    def served(self, version: str, baseline: str | None) -> Binding:
        return Binding(version, self.questions, "settings-1", "gates-1", "code-1", baseline)

    def build(self, *ids: str) -> None:
        for id in ids:
            self.registry.publish(Path(id), IndexVersion(id, None, "c", "a", "e", 1, 1, f"2026-01-{id[1:]:0>2}"))

    def decide(self, id: str, outcome: Outcome = Outcome.PASS, questions: str = "") -> Decision:
        stable = self.registry.rollout().stable
        binding = self.served(id, stable if stable != id else None)
        verdict = Verdict("recall@8", outcome, "0.93 against 0.80")
        decision = Decision(replace(binding, dataset=questions or self.questions), (verdict,), "run-1", "2026-01-31")
        self.registry.record(decision)
        return decision

    def promote(self, *ids: str) -> None:
        """Each built, measured and promoted, one after the other."""
        for id in ids:
            self.build(id)
            self.decide(id)
            self.releases.promote(id, "Zoë")

    def canary(self, id: str, share: float = 0.05) -> Rollout:
        self.build(id)
        self.decide(id)
        return self.releases.begin(id, share, "Zoë")


@pytest.fixture
def house() -> House:
    return House()


# ---------------------------------------------------------------------------------------------- forward


def test_the_first_promotion_needs_no_baseline_and_has_no_previous(house: House) -> None:
    house.promote("v1")
    assert house.registry.rollout() == Rollout(stable="v1", revision=1)
    (move,) = house.registry.ledger()
    assert (move.verb, move.who, move.at) == (Verb.PROMOTE, "Zoë", "2026-01-31T12:00:01.000+00:00")
    assert move.decision is not None
    assert move.decision.binding.baseline is None


def test_a_canary_begins_widens_and_is_promoted_on_the_same_decision(house: House) -> None:
    house.promote("v1")
    assert house.canary("v2") == Rollout("v1", "v2", 0.05, None, 2, began=2)
    assert house.releases.widen(0.5, "the watch", "as good as stable") == Rollout("v1", "v2", 0.5, None, 3, began=2)
    assert house.releases.promote("v2", "the watch") == Rollout("v2", previous="v1", revision=4)
    moves = house.registry.ledger()[1:]
    assert [move.verb for move in moves] == [Verb.CANARY, Verb.WIDEN, Verb.PROMOTE]
    assert {move.decision for move in moves} == {house.registry.decisions("v2")[0]}
    assert moves[1].reason == "as good as stable"


def test_promoting_what_is_stable_changes_nothing_even_undecided(house: House) -> None:
    house.promote("v1", "v2")
    house.questions = "questions-2"
    before = house.registry.rollout()
    assert house.releases.promote("v2", "Zoë") == before
    assert len(house.registry.ledger()) == 2


def test_a_version_that_was_never_evaluated_is_refused(house: House) -> None:
    house.build("v1")
    with pytest.raises(NotAdmitted, match="v1 was never decided about: tidegate gate v1"):
        house.releases.promote("v1", "Zoë")
    assert house.registry.rollout() == Rollout()


def test_a_version_evaluated_with_other_questions_is_refused(house: House) -> None:
    house.build("v1")
    house.decide("v1", questions="questions-0")
    with pytest.raises(NotAdmitted, match="dataset questions-0 was measured, questions-1 would be served"):
        house.releases.promote("v1", "Zoë")


def test_a_decision_against_another_stable_version_is_refused(house: House) -> None:
    house.promote("v1")
    house.build("v3")
    house.decide("v3")
    house.promote("v2")
    with pytest.raises(NotAdmitted, match="baseline v1 was measured, v2 would be served"):
        house.releases.begin("v3", 0.05, "Zoë")


def test_a_later_failure_outweighs_an_earlier_pass(house: House) -> None:
    house.build("v1")
    house.decide("v1")
    house.decide("v1", Outcome.FAIL)
    with pytest.raises(NotAdmitted, match=r"may not reach people \(FAIL\): recall@8: 0.93 against 0.80"):
        house.releases.promote("v1", "Zoë")
    house.decide("v1")
    house.releases.promote("v1", "Zoë")


def test_a_decision_about_something_else_hides_none_about_this(house: House) -> None:
    house.build("v1")
    house.decide("v1")
    house.decide("v1", Outcome.FAIL, questions="questions-0")
    assert house.releases.promote("v1", "Zoë").stable == "v1"


def test_what_was_tampered_with_never_moves_forward(house: House) -> None:
    house.promote("v1")
    house.canary("v2")
    house.registry.altered.add("v2")
    before = house.registry.rollout()
    for move in (
        lambda: house.releases.widen(0.5, "Zoë"),
        lambda: house.releases.promote("v2", "Zoë"),
        lambda: (house.releases.roll_back("Zoë", ""), house.releases.begin("v2", 0.05, "Zoë")),
    ):
        with pytest.raises(StorageError, match="v2 is not what was published"):
            move()
        assert house.registry.rollout().canary in (before.canary, None)


def test_an_unknown_version_is_not_found_whatever_one_wants_of_it(house: House) -> None:
    house.promote("v1")
    for ask in (
        lambda: house.releases.begin("v9", 0.05, "Zoë"),
        lambda: house.releases.promote("v9", "Zoë"),
        lambda: house.releases.force("v9", "why"),
        lambda: house.releases.state("v9"),
    ):
        with pytest.raises(NotFound, match="there are: v1"):
            ask()


def test_without_a_canary_nothing_widens(house: House) -> None:
    house.promote("v1")
    with pytest.raises(BadRequest, match="no canary to widen"):
        house.releases.widen(0.5, "Zoë")


# ---------------------------------------------------------------------------------------------- forced


def test_a_forced_decision_admits_and_keeps_what_the_gates_said(house: House) -> None:
    house.build("v1")
    failed = house.decide("v1", Outcome.FAIL)
    forced = house.releases.force("v1", "  the old one loses documents ")
    assert forced == replace(failed, forced="the old one loses documents", decided_at="2026-01-31T12:00:01.000+00:00")
    house.releases.promote("v1", "Zoë", "at night")
    assert house.registry.ledger()[-1].decision == forced


def test_what_was_never_measured_can_be_forced_and_says_that_nothing_was_measured(house: House) -> None:
    house.build("v1")
    house.decide("v1", questions="questions-0")
    forced = house.releases.force("v1", "there is no question set yet")
    assert (forced.verdicts, forced.outcome) == ((), Outcome.ERROR)
    assert house.releases.promote("v1", "Zoë").stable == "v1"


def test_a_forced_decision_holds_for_what_was_served_and_until_the_next_decision(house: House) -> None:
    house.build("v1")
    house.releases.force("v1", "why not")
    house.questions = "questions-2"
    with pytest.raises(NotAdmitted, match="questions-1 was measured, questions-2 would be served"):
        house.releases.promote("v1", "Zoë")
    house.questions = "questions-1"
    house.decide("v1", Outcome.FAIL)
    with pytest.raises(NotAdmitted, match="FAIL"):
        house.releases.promote("v1", "Zoë")


def test_a_forced_move_records_its_decision_and_is_made_on_it(house: House) -> None:
    house.promote("v1")
    house.build("v2")
    failed = house.decide("v2", Outcome.FAIL)
    house.releases.begin("v2", 0.05, "Zoë", reason=" it is late ", force=True)
    forced = house.registry.decisions("v2")[-1]
    assert (forced.forced, forced.verdicts) == ("it is late", failed.verdicts)
    assert house.registry.ledger()[-1].decision == forced
    house.decide("v2", Outcome.FAIL)
    with pytest.raises(NotAdmitted):
        house.releases.widen(0.25, "Zoë")
    house.releases.widen(0.5, "Zoë", "still", force=True)
    house.releases.promote("v2", "Zoë", "done", force=True)
    assert [decision.forced for decision in house.registry.decisions("v2")] == ["", "it is late", "", "still", "done"]


def test_a_forced_move_that_is_refused_leaves_nothing_on_record(house: House) -> None:
    house.promote("v1")
    house.build("v2", "v3", "v4")
    house.canary("v5", 0.5)
    house.registry.altered.add("v4")
    before = house.registry.rollout()
    late = replace(before, revision=0)
    for refused, move in (
        (BadRequest, lambda: house.releases.begin("v2", 1.5, "Zoë", reason="why not", force=True)),
        (BadRequest, lambda: house.releases.begin("v2", 0.5, "Zoë", reason="why not", force=True)),  # v5 is the canary
        (BadRequest, lambda: house.releases.begin("v2", 0.5, "Zoë", reason=" ", force=True)),
        (BadRequest, lambda: house.releases.widen(0.5, "Zoë", "why not", force=True)),  # it has as much
        (BadRequest, lambda: house.releases.promote("v3", "Zoë", "why not", force=True)),
        (PointerMoved, lambda: house.releases.promote("v5", "Zoë", "why not", expected=late, force=True)),
        (NotFound, lambda: house.releases.promote("v9", "Zoë", "why not", force=True)),
        (StorageError, lambda: (house.releases.roll_back("Zoë", ""),
                                house.releases.promote("v4", "Zoë", "why not", force=True))),
    ):  # fmt: skip
        with pytest.raises(refused):
            move()
    assert [decision.forced for id in ("v2", "v3", "v4", "v5") for decision in house.registry.decisions(id)] == [""]
    assert house.releases.state("v2") is State.BUILT


@pytest.mark.parametrize("why", ["", " \n", "\u200b\u2060"])
def test_forcing_needs_a_reason(house: House, why: str) -> None:
    house.build("v1")
    with pytest.raises(BadRequest, match="needs a reason"):
        house.releases.force("v1", why)
    assert house.registry.decisions("v1") == ()


# ---------------------------------------------------------------------------------------------- backward


def test_after_collecting_one_can_go_back_once_and_is_then_told_what_is_left(house: House) -> None:
    house.promote("v1", "v2", "v3", "v4")
    gone = removable(house.registry.versions(), house.registry.rollout(), keep=1)
    assert gone == ("v1",), "v4 is stable, v3 previous, v2 the one that is kept"
    for id in gone:
        house.registry.remove(id)
    assert house.releases.roll_back("Zoë", "wrong prices") == Rollout(stable="v3", revision=5)
    with pytest.raises(BadRequest, match=r"no previous version to roll back to; earlier ones that exist: v4, v2\."):
        house.releases.roll_back("Zoë", "still wrong")
    assert house.registry.rollout() == Rollout(stable="v3", revision=5)
    assert house.releases.roll_back("Zoë", "still wrong", to="v2") == Rollout(stable="v2", revision=6)


def test_going_back_to_a_version_that_is_gone_is_refused_and_moves_nothing(house: House) -> None:
    house.promote("v1", "v2", "v3")
    house.registry.remove("v1")
    house.registry.lose("v2")
    before = house.registry.rollout()
    for to in (None, "v1", "v2", "v9"):
        with pytest.raises(BadRequest, match=r"cannot be rolled back to: it is gone .*: none\."):
            house.releases.roll_back("Zoë", "wrong prices", to=to)
    assert (house.registry.rollout(), len(house.registry.ledger())) == (before, 3)


def test_only_what_was_stable_once_can_be_gone_back_to(house: House) -> None:
    house.promote("v1")
    house.canary("v2")
    house.releases.roll_back("the watch", "slower than stable")
    with pytest.raises(BadRequest, match="v2 cannot be rolled back to"):
        house.releases.roll_back("Zoë", "", to="v2")


def test_previous_is_never_what_is_stable(house: House) -> None:
    house.promote("v1", "v2")
    house.releases.roll_back("Zoë", "wrong prices")
    house.decide("v2")
    house.releases.promote("v2", "Zoë")
    house.releases.promote("v2", "Zoë")
    assert house.registry.rollout() == Rollout(stable="v2", previous="v1", revision=4)


def test_leaving_a_canary_needs_nothing_but_the_pointer(house: House) -> None:
    house.promote("v1")
    house.canary("v2")
    house.registry.illegible = True
    house.registry.altered |= {"v1", "v2"}
    house.registry.lose("v1")
    house.registry.lose("v2")
    after = house.releases.roll_back("the watch", "worse", noticed_at="2026-01-31T12:00:01.500+00:00")
    assert after == Rollout(stable="v1", revision=3)
    house.registry.illegible = False
    assert house.registry.ledger()[-1].noticed_at == "2026-01-31T12:00:01.500+00:00"


def test_the_previous_version_is_gone_back_to_although_the_ledger_is_damaged(house: House) -> None:
    house.promote("v1", "v2")
    house.registry.illegible = True
    assert house.releases.roll_back("Zoë", "wrong prices").stable == "v1"


def test_a_damaged_version_is_not_gone_back_to(house: House) -> None:
    house.promote("v1", "v2")
    house.registry.altered.add("v1")
    with pytest.raises(StorageError, match="v1 is not what was published"):
        house.releases.roll_back("Zoë", "wrong prices")
    assert house.registry.rollout().stable == "v2"


def test_earlier_versions_are_told_the_latest_first(house: House) -> None:
    house.promote("v1", "v2", "v3")
    house.registry.remove("v1")
    house.promote("v4")
    assert house.releases.earlier() == ("v3", "v2")


# ---------------------------------------------------------------------------------------------- at once, and afterwards


def test_of_two_promotions_at_once_the_second_is_told_what_moved(house: House) -> None:
    house.promote("v1")
    house.build("v2", "v3")
    house.decide("v2")
    house.decide("v3")
    seen = house.registry.rollout()
    house.releases.promote("v2", "the night shift", expected=seen)
    told = "at revision 2, not 1: the night shift made a promote move at 2026-01-31T12:00:02.000+00:00, from stable v1"
    with pytest.raises(PointerMoved, match=re.escape(told)):
        house.releases.promote("v3", "the day shift", expected=seen)
    with pytest.raises(PointerMoved, match=re.escape(told)):
        house.releases.roll_back("the day shift", "", to="v1", expected=replace(seen, stable="v9"))
    assert house.registry.rollout() == Rollout(stable="v2", previous="v1", revision=2)


def test_where_a_version_stands_is_read_off_the_records(house: House) -> None:
    house.promote("v1", "v2")
    house.build("v3", "v4", "v5")
    house.decide("v4")
    house.decide("v5", Outcome.INCONCLUSIVE)
    house.canary("v6")
    states = {id: house.releases.state(id) for id in ("v1", "v2", "v3", "v4", "v5", "v6")}
    assert states == {
        "v1": State.RETIRED,
        "v2": State.STABLE,
        "v3": State.BUILT,
        "v4": State.ADMITTED,
        "v5": State.BUILT,
        "v6": State.CANARY,
    }
    house.releases.roll_back("the watch", "worse")
    assert house.releases.state("v6") is State.RETIRED


def test_a_version_is_admitted_by_the_last_word_about_the_same_thing_and_by_no_earlier_one(house: House) -> None:
    house.build("v1")
    for outcome, state in ((Outcome.PASS, State.ADMITTED), (Outcome.FAIL, State.BUILT), (Outcome.PASS, State.ADMITTED)):
        house.decide("v1", outcome)
        assert house.releases.state("v1") is state
    house.decide("v1", Outcome.FAIL, questions="questions-0")
    assert house.releases.state("v1") is State.ADMITTED  # that was about something else
    house.decide("v1", Outcome.INCONCLUSIVE)
    house.releases.force("v1", "the old one loses documents")
    assert house.releases.state("v1") is State.ADMITTED


def test_every_time_is_written_in_one_zone() -> None:
    there = datetime(2026, 1, 31, 13, 30, 0, 1500, tzinfo=timezone(timedelta(hours=1, minutes=30)))
    assert stamp(there) == "2026-01-31T12:00:00.001+00:00"
