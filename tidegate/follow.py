"""`tidegate canary --auto`: the watch over a canary in the foreground, until it is decided."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from domain.canary import UNDECIDED, Step
from domain.errors import BadRequest, StorageError
from domain.ports import IndexRegistry
from domain.releases import Evidence, Outcome, Rollout, Verb
from tidegate.console import Code, note, say, say_json
from tidegate.observe import more_requests
from tidegate.who import who

if TYPE_CHECKING:
    from domain.releases import Move
    from tidegate.settings import Settings
    from tidegate.watching import Look

# What is news of a canary that waits: half as many requests again, and at least so many more. A line for every few
# requests would fill the terminal of whoever comes back in the morning.
NEWS, LEAST_NEWS = 1.5, 10


def follow(settings: "Settings", rollout: Rollout, as_json: bool) -> Code:
    """Watch the canary of `rollout` and do what its evidence asks for; whoever started this gave it leave to go
    forward. Any number of watches may run at once, the server's too: one of them makes each move.
    """
    from tidegate.bound import check_server
    from tidegate.compose_releases import make_lookout, make_releases
    from tidegate.watching import Watch, run

    if rollout.canary is None:
        raise BadRequest("There is no canary to watch: name a version to begin one with.", "version")
    check_server(settings)
    lookout = make_lookout(settings)
    watch = Watch(lookout, make_releases(settings), who(), forward=True)

    def over(seconds: float) -> bool:
        time.sleep(seconds)
        return decided(lookout.registry, rollout)

    note(f"watching canary {rollout.canary}; `tidegate observe` has the numbers; Ctrl-C ends only the watching")
    run(watch, over, settings.canary.every_s, note, Waiting(note))
    return ended(settings, rollout, as_json)


def decided(registry: IndexRegistry, rollout: Rollout) -> bool:
    """True when the canary of `rollout` is with people no more, or only another time. While nobody can read the pointer
    nobody knows: a file server that is away for a moment must not end a watch.
    """
    try:
        return registry.rollout().began != rollout.began
    except StorageError:
        return False


class Waiting:
    """Tells what a canary waits for, in one short line, when that has changed noticeably since the last one."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._stage: tuple[float, Outcome] | None = None
        self._requests = 0

    def __call__(self, look: "Look") -> None:
        if look.advice.step is not Step.WAIT:
            return
        share, requests = look.rollout.share, look.evidence.canary_n
        stage = (share, look.evidence.outcome)
        if stage == self._stage and requests < max(NEWS * self._requests, self._requests + LEAST_NEWS):
            return
        self._stage, self._requests = stage, requests
        counted = f"{requests} request{'' if requests == 1 else 's'} so far"
        self._tell(f"waiting at {share:.0%}: {counted}; {_missing(look.evidence)}")


def _missing(evidence: Evidence) -> str:
    """What keeps the canary from its next share: of the metrics, the one that needs most."""
    if evidence.outcome is Outcome.PASS:
        return f"as good as stable, {evidence.since_widened} of them at this share"
    undecided = [m for m in evidence.metrics if not m.advisory and m.outcome is Outcome.INCONCLUSIVE]
    unknown = [m.metric for m in undecided if m.more is None]
    if len(unknown) == len(undecided):
        return "nothing can be said yet"
    if unknown:
        return f"how many more {unknown[0]} takes cannot be said yet"
    most, name = max((more_requests(evidence, m) or 0, m.metric) for m in undecided)
    return f"{name} takes about {most} more"


def ended(settings: "Settings", rollout: Rollout, as_json: bool) -> Code:
    """Say how the canary of `rollout` went, move by move, and end with a meaning."""
    from dataclasses import asdict

    from serving.rollout_wire import move_json
    from tidegate.compose import make_registry
    from tidegate.tracking import follow as tell_tracker

    tell_tracker(settings)
    ledger = make_registry(settings).ledger()
    moves = [move for move in ledger if rollout.began in (move.before.began, move.after.began)]
    last = moves[-1]
    if as_json:
        say_json({"moves": [move_json(move) for move in moves], "rollout": asdict(last.after)})
    else:
        say(_as_line(last))
    if last.verb is Verb.PROMOTE:
        return Code.DONE
    return Code.INCONCLUSIVE if last.reason.startswith(UNDECIDED) else Code.REFUSED


def _as_line(move: "Move") -> str:
    done = f"promoted, everybody gets {move.after.stable}" if move.verb is Verb.PROMOTE else "rolled back"
    return f"{move.before.canary} {done} by {move.who} at {move.at}: {move.reason or 'no reason given'}"
