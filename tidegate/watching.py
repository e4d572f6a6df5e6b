"""The watch over a canary: look at what was observed, hear what that asks for, do it, again and again.

A watch keeps nothing that it could not read again: pointer, ledger and observations say where a canary stands, so a
restart goes on where the last one was, and any number of watches over one canary agree or lose a race harmlessly. What
evidence asks for is domain/canary.py; how it is weighed is eval/canary.py.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Lock

from domain.canary import Advice, Ramp, Step, advise
from domain.errors import BadRequest, NotAdmitted, PointerMoved, StorageError, TidegateError
from domain.ports import IndexRegistry, Observations
from domain.releases import Evidence, Move, Observation, Rollout
from domain.releasing import Releases, stamp, utc_now

log = logging.getLogger("tidegate.watch")

WHO = "tidegate watch"
BLIND_S = 60.0  # long enough for a file server to come back, short enough that nobody trusts a canary unseen
REFUSED_S = 60.0  # until a refused widening or promotion is tried again

Weigh = Callable[[Sequence[Observation], Rollout, float], Evidence]  # observations, pointer, time of the last widening


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at one moment of a canary that began at `since`, and what that asks for."""

    rollout: Rollout
    evidence: Evidence
    advice: Advice
    since: str = ""


@dataclass(frozen=True, slots=True)
class Lookout:
    """Sees how the canary is doing, and changes nothing."""

    registry: IndexRegistry
    observations: Observations
    weigh: Weigh
    ramp: Ramp
    now: Callable[[], datetime] = utc_now

    def look(self) -> Look | None:
        """The canary of the pointer in force; None without a canary. Raises as `look_at` does."""
        rollout = self.registry.rollout()
        return self.look_at(rollout) if rollout.canary is not None else None

    def look_at(self, rollout: Rollout) -> Look:
        """The canary of this pointer.

        Raises StorageError when ledger or observations cannot be read: not seen is not the same as nothing there.
        """
        began, widened = times(self.registry.ledger(), rollout)
        observed = self.observations.read(rollout.canary or "", rollout.began)
        kept = self.observations.kept(rollout.canary or "", rollout.began)
        evidence = replace(self.weigh(observed, rollout, widened.timestamp()), kept=kept)
        elapsed_s = max(0.0, (self.now() - began).total_seconds())  # below 0 when somebody set the clock back
        return Look(rollout, evidence, advise(rollout, evidence, elapsed_s, self.ramp), stamp(began))


def live(lookout: Lookout) -> Callable[[], tuple[Evidence, Advice] | None]:
    """A function for threads to call: what is known live and what it asks for, None without a canary."""
    one_at_a_time = Lock()

    def known() -> tuple[Evidence, Advice] | None:
        with one_at_a_time:
            look = lookout.look()
        return (look.evidence, look.advice) if look else None

    return known


def times(ledger: Sequence[Move], rollout: Rollout) -> tuple[datetime, datetime]:
    """When this canary began, and when it last got a larger share. Raises StorageError when the ledger lacks it."""
    about_it = [m for m in ledger if (m.after.canary, m.after.began) == (rollout.canary, rollout.began)]
    try:
        first, last = about_it[0], about_it[-1]
        return datetime.fromisoformat(first.at).astimezone(UTC), datetime.fromisoformat(last.at).astimezone(UTC)
    except (IndexError, ValueError, OverflowError) as error:
        raise StorageError(
            f"The ledger does not say when canary {rollout.canary} began (revision {rollout.began}): "
            "restore it from a backup, or roll the canary back."
        ) from error


@dataclass(slots=True)
class Watch:
    """Does what the canary's evidence asks for, as `who`.

    Turning back needs no leave. Widening and promoting do: `auto` in the pointer, or `forward`, the leave of whoever
    runs this watch. A canary that cannot be seen for BLIND_S seconds is turned back too.
    """

    lookout: Lookout
    releases: Releases
    who: str = WHO
    forward: bool = False
    _calm: tuple[Rollout, datetime] | None = field(default=None, init=False)  # the last look that asked for no retreat
    _blind: tuple[Rollout, datetime] | None = field(default=None, init=False)  # the first look that saw nothing
    _refused: tuple[Rollout, datetime, TidegateError] | None = field(default=None, init=False)

    def step(self) -> tuple[Look, Rollout] | None:
        """One look, and the pointer after what it asked for was done; None without a canary.

        Raises PointerMoved when somebody else was faster, and what reading and moving raise.
        """
        now, rollout = self.lookout.now(), self.lookout.registry.rollout()
        if rollout.canary is None:
            return None
        # The ledger shows how late a retreat was: counted from the last look to which the canary still seemed fine,
        # for what turns it back came some time after that.
        calm = self._calm[1] if self._calm and self._calm[0].began == rollout.began else now
        try:
            look = self.lookout.look_at(rollout)
            self._blind = None
        except Exception as error:  # a bug hides a canary just as a damaged record does
            look = self._unseen(rollout, now, error)
        if look.advice.step is not Step.ROLL_BACK:
            self._calm = (rollout, now)
        return look, self.act(look, noticed=min(calm, now))

    def act(self, look: Look, noticed: datetime | None = None) -> Rollout:
        """The pointer after what was seen asked for was done. `noticed` is when a retreat could have been known of;
        now when left out. Raises as `step` does.
        """
        now, rollout = self.lookout.now(), look.rollout
        try:
            if look.advice.step is Step.ROLL_BACK:
                when, reason = stamp(noticed or now), look.advice.reason
                return self.releases.roll_back(self.who, reason, noticed_at=when, expected=rollout)
            if look.advice.step is Step.WAIT or not (rollout.auto or self.forward):
                return rollout
            return self._forward_unless_refused(rollout, look.advice, now)
        except (NotAdmitted, BadRequest) as error:
            if self.lookout.registry.rollout() != rollout:
                raise PointerMoved(f"The pointer moved while canary {rollout.canary} was looked at.") from error
            raise

    def _forward_unless_refused(self, rollout: Rollout, advice: Advice, now: datetime) -> Rollout:
        # Whether a version may go forward is found out by reading all of it: not again every second.
        if self._refused and self._refused[0] == rollout and _within(now, self._refused[1], REFUSED_S):
            raise self._refused[2]
        try:
            return self._forward(rollout, advice)
        except PointerMoved:
            raise
        except TidegateError as error:
            self._refused = (rollout, now, error)
            raise

    def _forward(self, rollout: Rollout, advice: Advice) -> Rollout:
        if advice.step is Step.WIDEN:
            return self.releases.widen(advice.share, self.who, advice.reason, expected=rollout)
        return self.releases.promote(rollout.canary or "", self.who, advice.reason, expected=rollout)

    def _unseen(self, rollout: Rollout, now: datetime, error: Exception) -> Look:
        """The retreat of a canary that nobody can see any more; raises `error` while there is hope."""
        if self._blind is None or self._blind[0].began != rollout.began:
            self._blind = (rollout, now)
        if _within(now, self._blind[1], BLIND_S):
            self._calm = (rollout, now)
            raise error
        reason = f"Nothing could be seen of it for {BLIND_S:g} s: {_trouble(error)}"
        return Look(rollout, _nothing(rollout), Advice(Step.ROLL_BACK, reason))


def _trouble(error: Exception) -> str:
    """What went wrong, for whoever reads the log or the ledger."""
    bug = "" if isinstance(error, TidegateError) else f"This is a bug in Tidegate: {type(error).__name__}: "
    return f"{bug}{error}"


def _within(now: datetime, since: datetime, span_s: float) -> bool:
    """True for a moment less than `span_s` seconds after `since`; false when the clock was set back before it."""
    return timedelta(0) <= now - since < timedelta(seconds=span_s)


def _nothing(rollout: Rollout) -> Evidence:
    return Evidence(rollout.canary or "", rollout.stable or "", rollout.began, 0, 0, 0)


def run(
    watch: Watch,
    over: Callable[[float], bool],
    every_s: float,
    tell: Callable[[str], None],
    see: Callable[[Look], None] = lambda look: None,
) -> None:
    """Step until `over`, which waits for so many seconds and says whether to end (Event.wait does).

    Every move is told, every trouble once until it is over, and every look seen. Nothing else stops a watch: one that
    ended unnoticed would leave a bad canary with people all night.
    """
    trouble = ""
    while not over(every_s):
        try:
            text, trouble = _stepped(watch, see, trouble)
            if text:
                tell(text)
        except Exception:
            log.exception("What became of the canary could not be told; the watch goes on.")


def _stepped(watch: Watch, see: Callable[[Look], None], trouble: str) -> tuple[str, str]:
    """What is to be told of one step, "" for nothing new, and the trouble there is now."""
    try:
        step = watch.step()
    except PointerMoved:
        return "", trouble  # somebody else acted: the next look sees what they made of it
    except Exception as error:
        now = _trouble(error)
        if not isinstance(error, TidegateError) and now != trouble:
            log.exception("The watch over the canary failed; it goes on looking.")
    else:
        if step is None:
            return "", ""
        see(step[0])
        return told(*step), ""
    return f"The canary cannot be watched or moved at the moment: {now}" if now != trouble else "", now


def told(look: Look, after: Rollout) -> str:
    """What became of a canary in this step, in one sentence; "" when nothing moved."""
    before, why = look.rollout, look.advice.reason
    if after == before:
        return ""
    if after.canary == before.canary:
        return f"Canary {before.canary} widened from {before.share:.3g} to {after.share:.3g} of the sessions: {why}"
    if after.stable == before.canary:
        return f"Canary {before.canary} promoted, everybody gets it: {why}"
    return f"Canary {before.canary} rolled back, everybody gets {after.stable}: {why}"
