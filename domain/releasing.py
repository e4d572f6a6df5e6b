"""How the pointer is moved: every way a version reaches people or leaves them, and nothing beside it.

The command line, the HTTP surface and the watch over a canary all come through here. Which moves are legal is said in
rollout.py; here the decision is looked up, the version's folder checked, and the move written with its reason.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from domain import rollout as pointer
from domain.errors import BadRequest, NotAdmitted, NotFound
from domain.policies import unseen
from domain.ports import IndexRegistry
from domain.releases import Binding, Decision, Move, Rollout, State, Verb


def utc_now() -> datetime:
    """The time now, with its zone."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """A time as every record has it: ISO 8601 in UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def state_of(version: str, rollout: Rollout, ledger: Iterable[Move], decisions: Iterable[Decision]) -> State:
    """Where a version stands, by what the records say; `decisions` are those about it, oldest first.

    Whether one of them is about what would be served now is not asked: admitted is what some last word admits.
    """
    if version == rollout.stable:
        return State.STABLE
    if version == rollout.canary:
        return State.CANARY
    if any(version in (move.after.stable, move.after.canary) for move in ledger):
        return State.RETIRED
    last = {decision.binding: decision for decision in decisions}  # a later failure outweighs an earlier pass
    return State.ADMITTED if any(decision.admits for decision in last.values()) else State.BUILT


@dataclass(frozen=True, slots=True)
class Releases:
    """The moves of one registry's pointer.

    `served(version, baseline)` says what a decision must be bound to, to be about what would be served. Every method
    gives the pointer as it is afterwards. Each raises PointerMoved when somebody else was faster, NotAdmitted,
    BadRequest or NotFound when the move is not allowed, and StorageError when a record or a version is damaged or
    cannot be written; in all of these cases nothing has changed.

    A forward move with `force` is admitted for its `reason` although the gates did not say so. Its decision is recorded
    with the move or not at all: a version that could not be moved must not stay admitted behind everybody's back.
    """

    registry: IndexRegistry
    served: Callable[[str, str | None], Binding]
    now: Callable[[], datetime] = utc_now

    def begin(
        self, version: str, share: float, who: str, *, auto: bool = False, reason: str = "", force: bool = False
    ) -> Rollout:
        """`share` of the sessions go to `version`, if a decision admits it."""
        before = self.registry.rollout()
        served, decision = self._deciding(version, before, force, reason)
        after = pointer.begin_canary(before, decision, served, share, auto=auto)
        return self._forward(Verb.CANARY, before, after, who, reason, decision)

    def widen(
        self, share: float, who: str, reason: str = "", *, expected: Rollout | None = None, force: bool = False
    ) -> Rollout:
        """More of the sessions go to the canary."""
        before = expected or self.registry.rollout()
        if before.canary is None:
            raise BadRequest("There is no canary to widen: begin one first.", "version")
        served, decision = self._deciding(before.canary, before, force, reason)
        after = pointer.widen(before, decision, served, share)
        return self._forward(Verb.WIDEN, before, after, who, reason, decision)

    def promote(
        self, version: str, who: str, reason: str = "", *, expected: Rollout | None = None, force: bool = False
    ) -> Rollout:
        """`version` becomes stable for everybody; promoting what is stable already changes nothing."""
        before = expected or self.registry.rollout()
        self.registry.folder(version)
        if version == before.stable:
            return before
        served, decision = self._deciding(version, before, force, reason)
        after = pointer.promote(before, decision, served)
        return self._forward(Verb.PROMOTE, before, after, who, reason, decision)

    def roll_back(
        self, who: str, reason: str, *, to: str | None = None, noticed_at: str = "", expected: Rollout | None = None
    ) -> Rollout:
        """Without the canary if there is one, otherwise back to the previous version or the earlier one named `to`.

        Never waits for a decision. Leaving the canary needs nothing but the pointer, whatever is damaged. A version
        that is gone, damaged or never was stable is refused, naming those one can go back to.
        """
        before = expected or self.registry.rollout()
        after = pointer.roll_back(before, self._ways_back(before, to), to)
        if after.stable is not None and after.stable != before.stable:
            self.registry.verify(after.stable)
        return self._moved(Move(Verb.ROLLBACK, stamp(self.now()), who, before, after, reason, None, noticed_at))

    def force(self, version: str, why: str) -> Decision:
        """Record that `version` is admitted as it would be served now although the gates did not say so.

        What they last said about exactly that stays in the record. It holds until somebody decides again.
        """
        _, forced = self._deciding(version, self.registry.rollout(), True, why)
        self.registry.record(forced)
        return forced

    def earlier(self) -> tuple[str, ...]:
        """Versions that were stable once, are not now, and still exist; the latest first."""
        now = self.registry.rollout()
        was = [now.previous]
        for move in reversed(self.registry.ledger()):
            was += [move.after.stable, move.before.stable, move.before.previous]
        return tuple(v for v in dict.fromkeys(was) if v is not None and v != now.stable and self._exists(v))

    def state(self, version: str) -> State:
        """Where a version stands. Raises NotFound for an unknown one."""
        self.registry.folder(version)
        rollout, ledger = self.registry.rollout(), self.registry.ledger()
        return state_of(version, rollout, ledger, self.registry.decisions(version))

    def _deciding(self, version: str, rollout: Rollout, force: bool, why: str) -> tuple[Binding, Decision]:
        """What would be served, and the decision that counts: the latest about exactly that, so that a later failure
        outweighs an earlier pass. Without one the latest of all, for the rule in rollout.py to say what differs.

        With `force` it is one that is not on record yet. Raises NotAdmitted when there is none at all.
        """
        if force and all(map(unseen, why)):
            raise BadRequest("A forced decision needs a reason: it is recorded, for whoever asks why.", "reason")
        self.registry.folder(version)
        served = self.served(version, pointer.against(rollout, version))
        decisions = self.registry.decisions(version)
        about_it = [d for d in decisions if d.binding == served]
        if force:
            said = about_it[-1] if about_it else Decision(served, (), "", "")
            return served, replace(said, forced=why.strip(), decided_at=stamp(self.now()))
        if not decisions:
            raise NotAdmitted(f"Version {version} was never decided about: tidegate gate {version}.")
        return served, (about_it or decisions)[-1]

    def _ways_back(self, rollout: Rollout, to: str | None) -> tuple[str, ...]:
        """The versions one can go back to. The ledger is read only where the pointer does not say."""
        if rollout.canary is not None and to in (None, rollout.stable):
            return ()
        if rollout.previous is not None and to in (None, rollout.previous) and self._exists(rollout.previous):
            return (rollout.previous,)
        return self.earlier()

    def _exists(self, version: str) -> bool:
        try:
            self.registry.folder(version)
        except NotFound:
            return False
        return True

    def _forward(
        self, verb: Verb, before: Rollout, after: Rollout, who: str, reason: str, decision: Decision
    ) -> Rollout:
        """The move made, after a last look at what people would get."""
        self.registry.verify(decision.binding.version)
        return self._moved(Move(verb, stamp(self.now()), who, before, after, reason, decision))

    def _moved(self, move: Move) -> Rollout:
        self.registry.move(move)
        return move.after
