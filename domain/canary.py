"""What live evidence asks for: wait, widen, promote or turn back. Pure; it never looks at a request itself.

The guarantee: without shown evidence nothing ever widens, and whatever is undecided when its time is over ends at
stable. How evidence is weighed is eval/canary.py; who carries a step out is releasing.py.
"""

from dataclasses import dataclass
from enum import StrEnum

from domain.releases import Evidence, Outcome, Rollout

UNDECIDED = "Undecided after"  # so begins the reason of a canary whose time was over, for who reads the ledger


class Step(StrEnum):
    """What to do next with a canary."""

    WAIT = "wait"
    WIDEN = "widen"
    PROMOTE = "promote"
    ROLL_BACK = "roll_back"


@dataclass(frozen=True, slots=True)
class Ramp:
    """How a canary widens: its shares in rising order (0..1), the requests it must have answered at each before the
    next, and the seconds after which an undecided canary ends.
    """

    shares: tuple[float, ...] = (0.05, 0.25, 0.5)
    min_requests: int = 50
    timeout_s: float = 86_400.0


@dataclass(frozen=True, slots=True)
class Advice:
    """A step, the share it widens to, and why, with the numbers."""

    step: Step
    reason: str
    share: float = 0.0


def advise(rollout: Rollout, evidence: Evidence, elapsed_s: float, ramp: Ramp) -> Advice:
    """The next step of the canary in `rollout`, `elapsed_s` seconds after it began.

    Evidence about another canary, or about an earlier time of this one, is no evidence. A canary that is shown to be
    as good as stable has nothing left to run out of time for: it goes forward, or waits for whoever may move it. The
    clock alone never moves anything forward, and set back (a negative `elapsed_s`) it moves nothing at all.
    """
    if rollout.canary is None:
        return Advice(Step.WAIT, "There is no canary.")
    counted = f"{evidence.canary_n} requests on {evidence.canary}, {evidence.stable_n} on {evidence.stable}"
    if evidence.kept.lost:
        counted += f", {evidence.kept.lost} observations lost"
    if (evidence.canary, evidence.began) != (rollout.canary, rollout.began):
        outcome, told = Outcome.INCONCLUSIVE, "the evidence is about another canary, or another time of this one"
    else:
        outcome, told = evidence.outcome, _told(evidence)
    if outcome in (Outcome.FAIL, Outcome.ERROR):
        return Advice(Step.ROLL_BACK, f"{told} ({counted}).")
    if outcome is Outcome.PASS:
        if evidence.since_widened >= ramp.min_requests:
            return _forward(rollout, ramp, counted)
        seen = f"{evidence.since_widened} of {ramp.min_requests} requests at {rollout.share:.3g} of the sessions"
        told = f"as good as stable so far, {seen}"
    if elapsed_s >= ramp.timeout_s:
        return Advice(Step.ROLL_BACK, f"{UNDECIDED} {elapsed_s:.0f} s, all the time it had: {told} ({counted}).")
    return Advice(Step.WAIT, f"Not decided: {told} ({counted}).")


def _told(evidence: Evidence) -> str:
    """The numbers of the metrics that decided, which are the worst of those that bind."""
    worst = [m for m in evidence.metrics if not m.advisory and m.outcome is evidence.outcome]
    return "; ".join(f"{m.metric}: {m.reason}" for m in worst) or "nothing is shown yet"


def _forward(rollout: Rollout, ramp: Ramp, counted: str) -> Advice:
    """The next share of a canary that is as good as stable and has answered enough at this one; then everybody."""
    shown = f"As good as stable in every metric that binds ({counted})."
    wider = next((share for share in ramp.shares if share > rollout.share), None)
    return Advice(Step.PROMOTE, shown) if wider is None else Advice(Step.WIDEN, shown, wider)
