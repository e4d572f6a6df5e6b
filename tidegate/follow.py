"""`tidegate canary --auto`: the watch over a canary in the foreground, until it is decided."""

import time
from typing import TYPE_CHECKING

from domain.canary import UNDECIDED, Step
from domain.errors import BadRequest
from domain.releases import Rollout, Verb
from tidegate.console import Code, note, say, say_json
from tidegate.who import who

if TYPE_CHECKING:
    from domain.releases import Move
    from tidegate.settings import Settings
    from tidegate.watching import Look

TOLD_S = 10.0  # between two lines on a canary that waits


def follow(settings: "Settings", rollout: Rollout, as_json: bool) -> Code:
    """Watch the canary of `rollout` and do what its evidence asks for; whoever started this gave it leave to go
    forward. Any number of watches may run at once, the server's too: one of them makes each move.
    """
    from tidegate.bound import check_server
    from tidegate.compose import make_lookout, make_releases
    from tidegate.watching import Watch, run

    if rollout.canary is None:
        raise BadRequest("There is no canary to watch: name a version to begin one with.", "version")
    check_server(settings)
    lookout = make_lookout(settings)
    watch = Watch(lookout, make_releases(settings), who(), forward=True)

    def over(seconds: float) -> bool:
        time.sleep(seconds)
        return lookout.registry.rollout().began != rollout.began

    note(f"watching canary {rollout.canary}; Ctrl-C ends the watching, not the canary")
    run(watch, over, settings.canary.every_s, note, Waiting())
    return ended(settings, rollout, as_json)


class Waiting:
    """Tells every now and then what a canary waits for."""

    def __init__(self) -> None:
        self._told_at = -TOLD_S

    def __call__(self, look: "Look") -> None:
        if look.advice.step is Step.WAIT and time.monotonic() - self._told_at >= TOLD_S:
            self._told_at = time.monotonic()
            note(f"waiting: {look.advice.reason}")


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
