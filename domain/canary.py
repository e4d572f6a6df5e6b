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

    Evidence about another canary, or about an earlier time of this one, is no evidence.
    """
    if rollout.canary is None:
        return Advice(Step.WAIT, "There is no canary.")
    if (evidence.canary, evidence.began) != (rollout.canary, rollout.began):
        return Advice(Step.WAIT, f"The evidence is about {evidence.canary}, not about this canary.")
    counted = f"{evidence.canary_n} requests on {evidence.canary}, {evidence.stable_n} on {evidence.stable}"
    open_questions = [m for m in evidence.metrics if not m.advisory and m.outcome is not Outcome.PASS]
    told = "; ".join(f"{m.metric}: {m.reason}" for m in open_questions) or "nothing is shown yet"
    if evidence.outcome in (Outcome.FAIL, Outcome.ERROR):
        return Advice(Step.ROLL_BACK, f"{told} ({counted}).")
    if elapsed_s >= ramp.timeout_s:
        return Advice(Step.ROLL_BACK, f"{UNDECIDED} {elapsed_s:.0f} s, all the time it had: {told} ({counted}).")
    if evidence.outcome is Outcome.INCONCLUSIVE:
        return Advice(Step.WAIT, f"{told} ({counted}).")
    return _forward(rollout, evidence, ramp, counted)


def _forward(rollout: Rollout, evidence: Evidence, ramp: Ramp, counted: str) -> Advice:
    """The next share of a canary that is shown to be as good as stable, once it has answered enough at this one."""
    if evidence.since_widened < ramp.min_requests:
        seen = f"{evidence.since_widened} of {ramp.min_requests} requests at {rollout.share:.0%}"
        return Advice(Step.WAIT, f"As good as stable so far, {seen} ({counted}).")
    shown = f"As good as stable in every metric that binds ({counted})."
    wider = next((share for share in ramp.shares if share > rollout.share), None)
    return Advice(Step.PROMOTE, shown) if wider is None else Advice(Step.WIDEN, shown, wider)
