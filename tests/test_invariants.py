"""What holds after any sequence of events: nobody gets a version without a decision about exactly what is served.

A random machine builds, decides, forces, promotes, turns back, removes, damages and dies, in memory and in a folder.
It knows by itself which moves must be refused (`admits`), and reads the rest off the ledger.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from domain.errors import BadRequest, NotAdmitted, NotFound, PointerMoved, StorageError
from domain.releases import Binding, Decision, IndexVersion, Move, Outcome, Rollout, Verb, Verdict
from domain.releasing import Releases
from domain.rollout import removable
from retrieval.fingerprint import fingerprint, sha256_of
from retrieval.registry import FolderRegistry
from tests.fakes import MemoryRegistry

REFUSALS = (BadRequest, NotAdmitted, NotFound, PointerMoved, StorageError)
WORLD = ("dataset", "settings", "gates", "code")  # what a decision is bound to beside version and baseline
SHARES = (0.0, 0.05, 0.25, 0.5, 1.0)

MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None  # thousands of writes need not wait for a disk

which = st.integers(0, 4)  # a version by the order of building, of those there are
share = st.sampled_from(SHARES)
outcome = st.sampled_from(Outcome)
reason = st.sampled_from(("", " ", "an incident"))
moment = st.integers(0, 2**31).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


class Killed(BaseException):
    """The process ended here."""


class Mortal(MemoryRegistry):
    """Dies in its next move, `before` it or `after` it was made."""

    dies = ""

    def move(self, move: Move) -> None:
        dies, self.dies = self.dies, ""
        if dies == "before":
            raise Killed
        super().move(move)
        if dies == "after":
            raise Killed


class Events(RuleBasedStateMachine):
    """Any sequence of events. `sequences` and `moves` count what all of them came to."""

    sequences = 0
    moves: dict[Verb, int]
    refused: int

    def __init__(self) -> None:
        super().__init__()
        self.registry = self.make()
        self.releases = Releases(self.registry, self.served, self.now)
        self.clock = datetime(2026, 1, 31, tzinfo=UTC)
        self.world = dict.fromkeys(WORLD, 0)
        self.ids: list[str] = []
        self.damaged: set[str] = set()
        self.decisions: list[Decision] = []
        self.seen: tuple[Move, ...] = ()
        self.bound: dict[int, Binding] = {}  # revision -> what was served when that forward move was made
        self.stale = Rollout()

    # -------------------------------------------------------------------------------- the world

    def make(self) -> Any:
        return Mortal()

    def publish(self, number: int) -> str:
        id = f"v{number:012x}"
        self.registry.publish(Path("/nowhere"), IndexVersion(id, None, "c", "a", "e", 1, 1, self.clock.isoformat()))
        return id

    def damage(self, id: str) -> None:
        self.registry.altered.add(id)

    def lose(self, id: str) -> None:
        self.registry.lose(id)

    def die_in(self, call: Callable[[], object], when: str) -> None:
        self.registry.dies = when
        try:
            self.attempt(call)
        except Killed:
            pass
        finally:
            self.registry.dies = ""

    # -------------------------------------------------------------------------------- what the test knows itself

    def served(self, version: str, baseline: str | None) -> Binding:
        return Binding(version, *(f"{name} {self.world[name]}" for name in WORLD), baseline)

    def now(self) -> datetime:
        """No two records are of one moment, so none is taken for another."""
        self.clock += timedelta(milliseconds=1)
        return self.clock

    def pick(self, number: int) -> str:
        return self.ids[number % len(self.ids)]

    def there(self, id: str) -> bool:
        return id in {version.id for version in self.registry.versions()}

    def held(self) -> set[str | None]:
        now = self.registry.rollout()
        return {now.stable, now.previous, now.canary}

    def admits(self, id: str, now: Rollout) -> bool:
        """Whether `id` may be brought to people: whole, and the last word about exactly what is served is yes."""
        about = [d for d in self.decisions if d.binding == self.served(id, now.stable)]
        return self.there(id) and id not in self.damaged and bool(about) and yes(about[-1])

    def attempt(self, call: Callable[[], object]) -> bool:
        """Whether the call was not refused. A refusal changes nothing."""
        before, ledger = self.registry.rollout(), self.registry.ledger()
        try:
            call()
        except REFUSALS:
            assert (self.registry.rollout(), self.registry.ledger()) == (before, ledger)
            type(self).refused += 1
            return False
        return True

    # -------------------------------------------------------------------------------- events

    @initialize(moves=st.integers(0, 5))
    def start(self, moves: int) -> None:
        """Three versions, and of the moves promote, promote, begin the first few; often all of them."""
        self.ids += [self.publish(number) for number in range(3)]
        for number in range(min(moves, 2)):
            self.admit_and_promote(number)
        if moves > 2:
            self.admit_and_begin(2, 0.05, True)

    @rule(at=moment)
    def build(self, at: datetime) -> None:
        self.clock = at  # the clock may be set back
        if len(self.ids) < 5:
            self.ids.append(self.publish(len(self.ids)))

    @rule(number=which)
    def build_again(self, number: int) -> None:
        id = self.pick(number)
        if not self.there(id):
            self.publish(self.ids.index(id))
            self.damaged.discard(id)

    @rule(number=which, outcome=outcome, other=st.sampled_from(("", *WORLD, "baseline")))
    def decide(self, number: int, outcome: Outcome, other: str) -> None:
        """A decision about what would be served now, or with one thing other than it is."""
        binding = self.served(self.pick(number), self.baseline(self.pick(number)))
        self.record(replace(binding, **{other: "other"}) if other else binding, outcome)

    @rule(number=which)
    def admit(self, number: int) -> None:
        self.record(self.served(self.pick(number), self.baseline(self.pick(number))), Outcome.PASS)

    @rule(number=which)
    def admit_and_promote(self, number: int) -> None:
        self.admit(number)
        self.promote(number)

    @rule(number=which, share=share, auto=st.booleans())
    def admit_and_begin(self, number: int, share: float, auto: bool) -> None:
        self.admit(number)
        self.begin(number, share, auto)

    @rule(share=share)
    def admit_and_widen(self, share: float) -> None:
        if canary := self.registry.rollout().canary:
            self.admit(self.ids.index(canary))
        self.widen(share)

    @rule(number=which, first=outcome, second=outcome)
    def decide_twice_and_promote(self, number: int, first: Outcome, second: Outcome) -> None:
        for each in (first, second):
            self.decide(number, each, "")
        self.promote(number)

    def baseline(self, id: str) -> str | None:
        stable = self.registry.rollout().stable
        return stable if stable != id else None

    def record(self, binding: Binding, outcome: Outcome) -> None:
        advisory = Verdict("cost", Outcome.FAIL, "0.2 > 0.1", advisory=True)
        decision = Decision(binding, (Verdict("recall@8", outcome, "0.9 >= 0.8"), advisory), "r", "t")
        if self.attempt(lambda: self.registry.record(decision)):
            self.decisions.append(decision)

    @rule(number=which, why=reason)
    def force(self, number: int, why: str) -> None:
        made: list[Decision] = []
        forced = self.attempt(lambda: made.append(self.releases.force(self.pick(number), why)))
        assert forced == (bool(why.strip()) and self.there(self.pick(number)))
        self.decisions += made

    @rule(number=which, share=share, auto=st.booleans())
    def begin(self, number: int, share: float, auto: bool) -> None:
        id, now = self.pick(number), self.registry.rollout()
        free = now.stable is not None and now.canary is None and id != now.stable
        allowed = 0 < share < 1 and free and self.admits(id, now)
        assert self.attempt(lambda: self.releases.begin(id, share, "somebody", auto=auto)) == allowed
        self.note_bound(id, now)

    @rule(share=share)
    def widen(self, share: float) -> None:
        now = self.registry.rollout()
        allowed = now.canary is not None and now.share < share < 1 and self.admits(now.canary, now)
        assert self.attempt(lambda: self.releases.widen(share, "somebody")) == allowed
        self.note_bound(now.canary, now)

    @rule(number=which)
    def promote(self, number: int) -> None:
        id, now = self.pick(number), self.registry.rollout()
        allowed = id == now.stable or (now.canary in (None, id) and self.admits(id, now))
        assert self.attempt(lambda: self.releases.promote(id, "somebody")) == allowed
        self.note_bound(id, now)

    @rule(number=which, verb=st.sampled_from((Verb.CANARY, Verb.WIDEN, Verb.PROMOTE)), why=reason)
    def force_a_move(self, number: int, verb: Verb, why: str) -> None:
        """A forward move against the gates: as legal as any other, and recorded with its reason or not at all."""
        id, now = self.pick(number), self.registry.rollout()
        wider = (now.share + 1) / 2
        calls: dict[Verb, Callable[[], Rollout]] = {
            Verb.CANARY: lambda: self.releases.begin(id, 0.05, "somebody", reason=why, force=True),
            Verb.WIDEN: lambda: self.releases.widen(wider, "somebody", why, force=True),
            Verb.PROMOTE: lambda: self.releases.promote(id, "somebody", why, force=True),
        }
        free = {
            Verb.CANARY: now.stable is not None and now.canary is None and id != now.stable,
            Verb.WIDEN: now.canary is not None and wider < 1,
            Verb.PROMOTE: now.canary in (None, id),
        }
        brought = now.canary if verb is Verb.WIDEN else id
        nothing_to_do = verb is Verb.PROMOTE and id == now.stable
        whole = brought is not None and self.there(brought) and brought not in self.damaged
        made = self.attempt(calls[verb])
        assert made == (nothing_to_do or (free[verb] and whole and bool(why.strip())))
        if made and brought is not None and not nothing_to_do:
            binding = self.served(brought, now.stable)
            word = [decision for decision in self.registry.decisions(brought) if decision.binding == binding][-1]
            assert word.forced == why.strip()
            self.decisions.append(word)
        self.note_bound(brought, now)

    def note_bound(self, id: str | None, before: Rollout) -> None:
        if id is not None and self.registry.rollout() != before:
            self.bound[self.registry.rollout().revision] = self.served(id, before.stable)

    @rule()
    def roll_back(self) -> None:
        now = self.registry.rollout()
        whole = now.previous is not None and now.previous not in self.damaged
        assert self.attempt(lambda: self.releases.roll_back("somebody", "why")) == (now.canary is not None or whole)

    @rule(number=which)
    def roll_back_to(self, number: int) -> None:
        id, now = self.pick(number), self.registry.rollout()
        was_stable = id in {move.after.stable for move in self.seen}
        back = id != now.stable and was_stable and self.there(id) and id not in self.damaged
        allowed = back or (id == now.stable and now.canary is not None)
        assert self.attempt(lambda: self.releases.roll_back("somebody", "why", to=id)) == allowed

    @rule(keep=st.integers(-1, 3))
    def collect(self, keep: int) -> None:
        held, before = self.held(), {version.id for version in self.registry.versions()}
        if self.attempt(lambda: [*map(self.registry.remove, self.removable(keep))]):
            left = {version.id for version in self.registry.versions()}
            assert len(left - held) == min(keep, len(before - held))
            self.damaged &= left

    def removable(self, keep: int) -> tuple[str, ...]:
        return removable(self.registry.versions(), self.registry.rollout(), keep)

    @rule(number=which)
    def remove(self, number: int) -> None:
        id = self.pick(number)
        allowed = self.there(id) and id not in self.held()
        assert self.attempt(lambda: self.registry.remove(id)) == allowed
        self.damaged -= {id} if allowed else set()

    @rule(name=st.sampled_from(WORLD), value=st.integers(0, 1))
    def change(self, name: str, value: int) -> None:
        """Settings, questions, gates or code become others, or again what they were."""
        self.world[name] = value

    @rule(number=which)
    def tamper(self, number: int) -> None:
        if self.there(self.pick(number)):
            self.damage(self.pick(number))
            self.damaged.add(self.pick(number))

    @rule(number=which)
    def delete_by_hand(self, number: int) -> None:
        id = self.pick(number)
        if self.there(id) and id not in self.held():
            self.lose(id)
            self.damaged.discard(id)

    @rule()
    def look(self) -> None:
        """Somebody reads the pointer, to act on it later."""
        self.stale = self.registry.rollout()

    @rule(number=which, verb=st.sampled_from((Verb.WIDEN, Verb.PROMOTE, Verb.ROLLBACK)))
    def act_on_what_was_seen(self, number: int, verb: Verb) -> None:
        id, now, seen = self.pick(number), self.registry.rollout(), self.stale
        calls: dict[Verb, Callable[[], Rollout]] = {
            Verb.WIDEN: lambda: self.releases.widen(0.75, "late", expected=seen),
            Verb.PROMOTE: lambda: self.releases.promote(id, "late", expected=seen),
            Verb.ROLLBACK: lambda: self.releases.roll_back("late", "why", expected=seen),
        }
        made = self.attempt(calls[verb])
        if seen != now:
            assert not made or self.registry.rollout() == now, "nothing moves on what was seen too long ago"
        if verb is not Verb.ROLLBACK:
            self.note_bound(now.canary if verb is Verb.WIDEN else id, now)

    @rule(number=which, when=st.sampled_from(("before", "after")), verb=st.sampled_from((Verb.PROMOTE, Verb.ROLLBACK)))
    def die(self, number: int, when: str, verb: Verb) -> None:
        id, now = self.pick(number), self.registry.rollout()
        promote, back = (
            lambda: self.releases.promote(id, "somebody"),
            lambda: self.releases.roll_back("somebody", "why"),
        )
        self.die_in(promote if verb is Verb.PROMOTE else back, when)
        if verb is Verb.PROMOTE:
            self.note_bound(id, now)

    # -------------------------------------------------------------------------------- what holds at any time

    @invariant()
    def the_ledger_is_one_unbroken_chain_that_ends_at_the_pointer(self) -> None:
        ledger = self.registry.ledger()
        assert ledger[: len(self.seen)] == self.seen, "lines are only ever added"
        assert [move.after.revision for move in ledger] == list(range(1, len(ledger) + 1))
        before = self.seen[-1].after if self.seen else Rollout()
        for move in ledger[len(self.seen) :]:
            assert move.before == before
            self.check(move, {each.after.stable for each in ledger[: move.before.revision]})
            type(self).moves[move.verb] = type(self).moves.get(move.verb, 0) + 1
            before = move.after
        assert self.registry.rollout() == before
        self.seen = ledger

    def check(self, move: Move, were_stable: set[str | None]) -> None:
        """The move was one that may be made."""
        before, after, decision = move.before, move.after, move.decision
        if move.verb is Verb.ROLLBACK:
            assert after.canary is None
            assert after.stable == before.stable or after.stable in were_stable
            assert after.previous == (before.previous if after.stable == before.stable else None)
            return
        brought = after.stable if move.verb is Verb.PROMOTE else after.canary
        assert decision is not None
        assert decision in self.decisions
        assert decision.binding == self.bound[after.revision]
        assert decision.binding.version == brought
        assert yes(decision)
        assert brought not in self.damaged
        if move.verb is Verb.PROMOTE:
            assert (after.canary, after.previous) == (None, before.stable)
        else:
            assert (after.stable, after.previous) == (before.stable, before.previous)

    @invariant()
    def nothing_is_on_record_that_was_not_decided(self) -> None:
        for version in self.registry.versions():
            about = [decision for decision in self.decisions if decision.binding.version == version.id]
            assert list(self.registry.decisions(version.id)) == about

    @invariant()
    def the_pointer_makes_sense(self) -> None:
        now = self.registry.rollout()
        there = {version.id for version in self.registry.versions()}
        assert {id for id in self.held() if id} <= there
        assert now.previous is None or now.previous != now.stable
        assert now.canary is None or now.canary != now.stable
        assert (0 < now.share < 1) == (now.canary is not None)
        assert (now.began > 0) == (now.canary is not None)
        assert now.canary is not None or not now.auto

    @invariant()
    def whoever_is_a_canary_began_as_one(self) -> None:
        now = self.registry.rollout()
        if now.canary is not None:
            began = self.registry.ledger()[now.began - 1]
            assert (began.verb, began.after.canary, began.after.auto) == (Verb.CANARY, now.canary, now.auto)

    def teardown(self) -> None:
        type(self).sequences += 1


def yes(decision: Decision) -> bool:
    """Whether a decision lets a version through, worked out without the code under test."""
    binding = [verdict.outcome is Outcome.PASS for verdict in decision.verdicts if not verdict.advisory]
    return bool(decision.forced.strip()) or (bool(binding) and all(binding))


class FolderEvents(Events):
    """The same in a folder, where dying leaves the line of the last move unwritten or torn."""

    def make(self) -> Any:
        self.home = Path(mkdtemp(prefix="tidegate-events-", dir=MEMORY))
        return FolderRegistry(self.home / "registry")

    def publish(self, number: int) -> str:
        lines = [json.dumps({"chunk": number}).encode()]
        head = {"format": 1, "counts": {"chunks": 1}}
        id = fingerprint(head, lines)
        staged = self.home / "staged"
        staged.mkdir()
        (staged / "chunks.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
        files = {"chunks.jsonl": {"bytes": 1, "sha256": sha256_of(staged / "chunks.jsonl")}}
        (staged / "manifest.json").write_text(json.dumps({**head, "id": id, "files": files}))
        self.registry.publish(staged, IndexVersion(id, None, "c", "a", "e", 1, 1, self.clock.isoformat()))
        return id

    def damage(self, id: str) -> None:
        with (self.registry.folder(id) / "chunks.jsonl").open("ab") as file:
            file.write(b" ")

    def lose(self, id: str) -> None:
        shutil.rmtree(self.registry.folder(id))

    def die_in(self, call: Callable[[], object], when: str) -> None:
        before = self.registry.rollout()
        if when == "after" and self.attempt(call) and self.registry.rollout() != before:
            ledger = self.home / "registry" / "ledger.jsonl"
            content = ledger.read_bytes()
            torn = content.rfind(b"\n", 0, -1) + 1 + self.clock.second  # anywhere in the last line, also at its start
            ledger.write_bytes(content[:torn])

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.home)


def run(machine: type[Events], sequences: int, steps: int) -> None:
    """So many sequences, the same ones until the code changes: Hypothesis draws from constants it finds in it.

    Every kind of move must have been made, and many been refused; there are enough sequences for the rarest.
    """
    machine.sequences, machine.moves, machine.refused = 0, {}, 0
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=sequences,
            stateful_step_count=steps,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(f"{machine.__name__}: {machine.sequences} sequences, {machine.refused} refusals, {machine.moves}")
    assert machine.sequences >= sequences
    assert set(machine.moves) == set(Verb)
    assert machine.refused > sequences


def test_nobody_gets_a_version_without_a_decision_after_a_few_events() -> None:
    run(Events, 400, 15)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nobody_gets_a_version_without_a_decision_after_any_events() -> None:
    run(Events, 10_000, 12)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_in_a_folder_the_same_holds() -> None:
    run(FolderEvents, 200, 15)
