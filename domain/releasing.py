"""How the pointer is moved: every way a version reaches people or leaves them, and nothing beside it.

The command line, the HTTP surface and the watch over a canary all come through here. Which moves are legal is said in
rollout.py; here the decision is looked up, the version's folder checked, and the move written with its reason.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from domain import rollout as pointer
from domain.errors import BadRequest, NotAdmitted
from domain.ports import IndexRegistry
from domain.releases import Binding, Decision, Move, Outcome, Rollout, State, Verb


def utc_now() -> datetime:
    """The time now, with its zone."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """A time as every record has it: ISO 8601 in UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class Releases:
    """The moves of one registry's pointer.

    `served(version, baseline)` says what a decision must be bound to, to be about what would be served. Every method
    gives the pointer as it is afterwards. Each raises PointerMoved when somebody else was faster, and NotAdmitted,
    BadRequest or NotFound when the move is not allowed; in all of these cases nothing has changed.
    """

    registry: IndexRegistry
    served: Callable[[str, str | None], Binding]
    now: Callable[[], datetime] = utc_now

    def begin(self, version: str, share: float, who: str, *, auto: bool = False, reason: str = "") -> Rollout:
        """`share` of the sessions go to `version`, if a decision admits it."""
        before = self.registry.rollout()
        served, decision = self._admitting(version, before)
        after = pointer.begin_canary(before, decision, served, share, auto=auto)
        return self._moved(Verb.CANARY, before, after, who, reason, decision)

    def widen(self, share: float, who: str, reason: str = "", *, expected: Rollout | None = None) -> Rollout:
        """More of the sessions go to the canary."""
        before = expected or self.registry.rollout()
        if before.canary is None:
            raise BadRequest("There is no canary to widen: begin one first.", "version")
        served, decision = self._admitting(before.canary, before)
        after = pointer.widen(before, decision, served, share)
        return self._moved(Verb.WIDEN, before, after, who, reason, decision)

    def promote(self, version: str, who: str, reason: str = "", *, expected: Rollout | None = None) -> Rollout:
        """`version` becomes stable for everybody; promoting what is stable already changes nothing."""
        before = expected or self.registry.rollout()
        self.registry.folder(version)
        if version == before.stable:
            return before
        served, decision = self._admitting(version, before)
        after = pointer.promote(before, decision, served)
        return self._moved(Verb.PROMOTE, before, after, who, reason, decision)

    def roll_back(
        self, who: str, reason: str, *, to: str | None = None, noticed_at: str = "", expected: Rollout | None = None
    ) -> Rollout:
        """Without the canary if there is one, otherwise back to the previous version or the earlier one named `to`.

        Never waits for a decision. A version that is gone or never was stable is refused, naming those one can go
        back to.
        """
        before = expected or self.registry.rollout()
        after = pointer.roll_back(before, self.earlier(), to)
        return self._moved(Verb.ROLLBACK, before, after, who, reason, None, noticed_at)

    def force(self, version: str, why: str) -> Decision:
        """Record that `version` is admitted as it would be served now although the gates did not say so."""
        if not why.strip():
            raise BadRequest("A forced decision needs a reason: it is recorded, for whoever asks why.", "reason")
        served = self.served(version, self._baseline(version, self.registry.rollout()))
        latest = next((d for d in reversed(self.registry.decisions(version)) if d.binding == served), None)
        base = latest or Decision(served, (), "", "")
        forced = replace(base, forced=why.strip(), decided_at=stamp(self.now()))
        self.registry.record(forced)
        return forced

    def earlier(self) -> tuple[str, ...]:
        """Versions that were stable once, are not now, and still exist; the latest first."""
        there = {version.id for version in self.registry.versions()}
        now = self.registry.rollout().stable
        was = [move.after.stable for move in reversed(self.registry.ledger()) if move.after.stable]
        return tuple(dict.fromkeys(version for version in was if version != now and version in there))

    def state(self, version: str) -> State:
        """Where a version stands. Raises NotFound for an unknown one."""
        rollout = self.registry.rollout()
        if version == rollout.stable:
            return State.STABLE
        if version == rollout.canary:
            return State.CANARY
        if any(version in (move.after.stable, move.after.canary) for move in self.registry.ledger()):
            return State.RETIRED
        admitted = any(d.outcome is Outcome.PASS or d.forced for d in self.registry.decisions(version))
        return State.ADMITTED if admitted else State.BUILT

    def _admitting(self, version: str, rollout: Rollout) -> tuple[Binding, Decision]:
        """What would be served, and the latest decision about exactly that; without one, the latest of all, for the
        rule in rollout.py to say what differs. Raises NotAdmitted when there is none at all.
        """
        self.registry.folder(version)
        self.registry.verify(version)
        served = self.served(version, self._baseline(version, rollout))
        decisions = self.registry.decisions(version)
        if not decisions:
            raise NotAdmitted(f"Version {version} was never decided about: tidegate gate {version}.")
        admitting = [d for d in decisions if d.binding == served and (d.outcome is Outcome.PASS or d.forced)]
        about_it = admitting or [d for d in decisions if d.binding == served] or list(decisions)
        return served, about_it[-1]

    @staticmethod
    def _baseline(version: str, rollout: Rollout) -> str | None:
        return rollout.stable if rollout.stable != version else None

    def _moved(
        self,
        verb: Verb,
        before: Rollout,
        after: Rollout,
        who: str,
        reason: str,
        decision: Decision | None,
        noticed_at: str = "",
    ) -> Rollout:
        if after != before:
            self.registry.move(Move(verb, stamp(self.now()), who, before, after, reason, decision, noticed_at))
        return after
