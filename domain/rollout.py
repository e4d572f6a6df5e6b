"""Pointer arithmetic: which version a session gets, and every legal move of the rollout pointer.

Pure functions from one Rollout to the next; the registry makes the move real by compare-and-set. Forward moves
demand a passing Decision bound to exactly what would be served. Moving back never waits for a decision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from domain.errors import BadRequest, NotAdmitted, PointerMoved
from domain.releases import Binding, Decision, IndexVersion, Move, Rollout


def assign(rollout: Rollout, session_id: str) -> str | None:
    """The version this session gets, or None before the first promotion.

    A stable hash of canary and session decides, so a conversation never hops between versions, a widening keeps
    everybody who is already on the canary, and the next canary draws other sessions.
    """
    if rollout.canary is None:
        return rollout.stable
    digest = sha256(f"{rollout.canary}\0{session_id}".encode()).digest()
    position = int.from_bytes(digest[:8], "big") / 2**64  # uniform in [0, 1)
    return rollout.canary if position < rollout.share else rollout.stable


def against(rollout: Rollout, version: str) -> str | None:
    """What `version` is compared with: what people get now, or None where that is nothing or the version itself."""
    return rollout.stable if rollout.stable != version else None


def begin_canary(rollout: Rollout, decision: Decision, served: Binding, share: float, *, auto: bool = False) -> Rollout:
    """`share` (0 < share < 1) of the sessions go to the decided version; the rest stay on stable."""
    _check_share(share)
    version = decision.binding.version
    if rollout.stable is None:
        raise NotAdmitted(f"There is no stable version for {version} to be a canary of: promote it instead.")
    if version == rollout.stable:
        raise BadRequest(f"Version {version} is already stable: build or name another one.", "version")
    if rollout.canary not in (None, version):
        raise BadRequest(f"Version {rollout.canary} is the canary: promote it or roll it back first.", "version")
    if version == rollout.canary:
        raise BadRequest(f"Version {version} is the canary already: widen it instead.", "version")
    _check_admitted(decision, served)  # last: whoever can never begin it must not be sent to decide about it again
    return _next(rollout, canary=version, share=share, began=rollout.revision + 1, auto=auto)


def widen(rollout: Rollout, decision: Decision, served: Binding, share: float) -> Rollout:
    """The same canary with a larger share, as long as what is served is what was decided about."""
    _check_share(share)
    if rollout.canary is None:
        raise BadRequest("There is no canary to widen: begin one first.", "version")
    if share <= rollout.share:
        raise BadRequest(f"The canary already has {rollout.share:g} of the sessions: name a larger share.", "share")
    _check_admitted(decision, served)
    return _next(rollout, share=share)


def promote(rollout: Rollout, decision: Decision, served: Binding) -> Rollout:
    """The decided version becomes stable for everybody; promoting what is stable already changes nothing."""
    version = decision.binding.version
    if version == rollout.stable:
        return rollout
    if rollout.canary not in (None, version):
        raise BadRequest(f"Version {rollout.canary} is the canary: promote it or roll it back first.", "version")
    _check_admitted(decision, served)
    return _next(rollout, stable=version, previous=rollout.stable, **_NO_CANARY)


def roll_back(rollout: Rollout, earlier: Sequence[str], to: str | None = None) -> Rollout:
    """Without the canary if there is one, otherwise back to the previous version, or to `to`.

    `earlier` are the versions one can go back to: they were stable once and still exist. Going back forgets where we
    came from, so that rolling back twice does not bring the bad version forward again.
    """
    if rollout.canary is not None and to in (None, rollout.stable):
        return _next(rollout, **_NO_CANARY)
    wanted, there = to or rollout.previous, ", ".join(earlier) or "none"
    if wanted is None:
        raise BadRequest(f"There is no previous version to roll back to; earlier ones that exist: {there}.", "version")
    if wanted == rollout.stable:
        raise BadRequest(f"Version {wanted} is stable already; earlier ones that exist: {there}.", "version")
    if wanted not in earlier:
        raise BadRequest(
            f"Version {wanted} cannot be rolled back to: it is gone or never was stable. Earlier ones that exist: "
            f"{there}.",
            "version",
        )
    return _next(rollout, stable=wanted, previous=None, **_NO_CANARY)


def removable(versions: Sequence[IndexVersion], rollout: Rollout, keep: int) -> tuple[str, ...]:
    """Versions that nobody needs, oldest first: not stable, previous or canary, nor the newest `keep` of the others.

    `versions` come oldest first.
    """
    if keep < 0:
        raise BadRequest(f"{keep} versions cannot be kept: name 0 or more.", "keep")
    others = [version.id for version in versions if version.id not in _held(rollout)]
    return tuple(others[: max(0, len(others) - keep)])


def check_removable(version: str, rollout: Rollout) -> None:
    """Raises BadRequest for a version that people get or could go back to."""
    if role := _held(rollout).get(version):
        raise BadRequest(f"Version {version} is {role} and stays: move the pointer away from it first.", "version")


def arriving(before: Rollout, after: Rollout) -> tuple[str, ...]:
    """The versions that a move brings to people; they must exist. What people had already need not be looked for:
    turning back from a canary must work whatever has become of the rest.
    """
    pairs = ((after.stable, before.stable), (after.canary, before.canary))
    return tuple(version for version, had in pairs if version is not None and version != had)


def unrecorded(move: Move, decisions: Sequence[Decision]) -> Decision | None:
    """The decision that has to be recorded with a move: a forced one that is not among `decisions`, those on record
    about its version, oldest first.

    Raises NotAdmitted when somebody decided against the version after this move was thought of.
    """
    decision = move.decision
    if decision is None:
        return None
    if decision.forced and decision not in decisions:
        return decision
    about_it = [each for each in decisions if each.binding == decision.binding]
    if about_it and not about_it[-1].admits:
        version, last = decision.binding.version, about_it[-1]
        raise NotAdmitted(
            f"Version {version} was decided about again at {last.decided_at} ({last.outcome.name}), while it was about "
            "to move: nothing has moved, look at that decision first."
        )
    return None


def told(rollout: Rollout) -> str:
    """The pointer in words."""
    stable = f"stable {rollout.stable}" if rollout.stable else "nothing stable"
    return f"{stable}, canary {rollout.canary} at {rollout.share:.0%}" if rollout.canary else f"{stable}, no canary"


def moved_meanwhile(expected: Rollout, current: Rollout, last: Move | None) -> PointerMoved:
    """What to tell somebody whose move came too late. `last` is the move that was faster, if it is known."""
    if last is not None and last.after == current:
        what = f"{last.who} made a {last.verb} move at {last.at}, from {told(last.before)} to {told(current)}"
    else:
        what = f"it has {told(current)}"
    return PointerMoved(
        f"The rollout pointer is at revision {current.revision}, not {expected.revision}: {what}; "
        "read it again and decide again."
    )


def _held(rollout: Rollout) -> dict[str, str]:
    """The versions that must stay, and what each of them is."""
    roles = {"what a rollback goes back to": rollout.previous, "the canary": rollout.canary, "stable": rollout.stable}
    return {version: role for role, version in roles.items() if version is not None}


_NO_CANARY: Mapping[str, object] = {"canary": None, "share": 0.0, "began": 0, "auto": False}


def _next(rollout: Rollout, **changes: object) -> Rollout:
    return replace(rollout, revision=rollout.revision + 1, **changes)  # type: ignore[arg-type]  # fields of Rollout


def _check_share(share: float) -> None:
    if not 0.0 < share < 1.0:
        raise BadRequest(
            f"A canary share of {share:g} is not between 0 and 1: 0.05 means five sessions in 100.", "share"
        )


def _check_admitted(decision: Decision, served: Binding) -> None:
    """Raises NotAdmitted unless the decision passed, or was forced, and speaks of exactly what would be served."""
    version = decision.binding.version
    differing = [
        f"{name} {getattr(decision.binding, name)} was measured, {getattr(served, name)} would be served"
        for name in ("version", "dataset", "settings", "gates", "code", "baseline")
        if getattr(decision.binding, name) != getattr(served, name)
    ]
    if differing:
        named = decision.binding.dataset != served.dataset
        raise NotAdmitted(
            f"The decision about {version} is not about this: {'; '.join(differing)}. Decide about it as it would be "
            f"served now: tidegate gate {served.version}"
            f"{', or name the question set that it was decided on with --questions' if named else ''}."
        )
    if not decision.admits:
        worst = [v for v in decision.verdicts if not v.advisory and v.outcome is decision.outcome]
        reasons = "; ".join(f"{v.gate}: {v.reason}" for v in worst) or "no gate was measured"
        raise NotAdmitted(f"Version {version} may not reach people ({decision.outcome.name}): {reasons}.")
