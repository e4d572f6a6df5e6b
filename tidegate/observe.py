"""`tidegate observe`: what is known live about the canary, what that asks for, and with --act that one step done."""

from math import ceil
from typing import TYPE_CHECKING, Annotated

import typer

from domain.canary import Step
from domain.errors import StorageError
from domain.releases import Evidence, Outcome
from tidegate.config import AsJson
from tidegate.console import Code, complain, loaded, note, say, say_json
from tidegate.gate import OUTCOME_CODES
from tidegate.who import who

if TYPE_CHECKING:
    from domain.releases import Kept, LiveMetric
    from tidegate.settings import Settings
    from tidegate.watching import Look


def observe(
    ctx: typer.Context,
    act: Annotated[bool, typer.Option("--act", help="Do the one step that the evidence asks for.")] = False,
    as_json: AsJson = False,
) -> Code:
    """Show how the canary does against stable.

    At any time and as often as you like: the bounds hold at every moment. Changes nothing without --act. Exit code 0
    as good as stable, 1 worse, 3 nobody can tell yet, 4 no canary or no evidence that can be read.
    """
    from serving.rollout_wire import evidence_json
    from tidegate.compose_releases import make_lookout

    settings = loaded(ctx).settings
    lookout = make_lookout(settings)
    try:
        look = lookout.look()
    except StorageError as error:
        complain(f"The evidence cannot be read: {error}")
        return Code.NOT_MEASURED
    if look is None:
        return _without_canary(as_json)
    done = acted(settings, look) if act else ""
    if as_json:
        share = {"share": look.rollout.share, "done": done}
        say_json(evidence_json(look.evidence, look.advice, look.since) | share)
    else:
        for line in lines(look):
            say(line)
        if act:
            say(done or "nothing to do")
    return OUTCOME_CODES[look.evidence.outcome]


def acted(settings: "Settings", look: "Look") -> str:
    """Does what was seen asks for, as the person who said so; what became of it, "" when that was to wait.

    Raises what stands against the move, and PointerMoved when somebody made another one meanwhile.
    """
    from tidegate.bound import check_server
    from tidegate.compose_releases import make_lookout, make_releases
    from tidegate.tracking import follow
    from tidegate.watching import Watch, told

    if look.advice.step in (Step.WIDEN, Step.PROMOTE):
        check_server(settings)
    after = Watch(make_lookout(settings), make_releases(settings), who(), forward=True).act(look)
    if after != look.rollout:
        follow(settings)
    return told(look, after)


def _without_canary(as_json: bool) -> Code:
    if as_json:
        say_json({"canary": None})
    note("there is no canary to observe: begin one with tidegate canary VERSION")
    return Code.NOT_MEASURED


# ---------------------------------------------------------------------------------------------- how it looks


def lines(look: "Look") -> list[str]:
    """The evidence as a table, one metric a line, and what it asks for."""
    evidence, rollout = look.evidence, look.rollout
    head = (
        f"canary {evidence.canary} with {rollout.share:.0%} of the sessions, {evidence.canary_n} requests "
        f"({evidence.since_widened} at this share); stable {evidence.stable}, {evidence.stable_n} requests"
    )
    rows = [_HEADINGS, *(_row(metric, more_requests(evidence, metric)) for metric in evidence.metrics)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    table = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    step = f"widen to {look.advice.share:.0%}" if look.advice.step is Step.WIDEN else look.advice.step
    verdict = f"{evidence.outcome.name}: {step.replace('_', ' ')}. {_open(look) or look.advice.reason}"
    return [head, *_kept(evidence.kept), *table, verdict]


def more_requests(evidence: Evidence, metric: "LiveMetric") -> int | None:
    """About how many more requests on the canary would settle a metric that not every request is eligible for; None
    where nobody can say.
    """
    if metric.more is None or not metric.canary_n:
        return None
    return ceil(metric.more * evidence.canary_n / metric.canary_n)


def _open(look: "Look") -> str:
    """The metrics that a canary waits for, whose numbers are in the table; "" when it waits for something else."""
    if look.advice.step is not Step.WAIT or look.evidence.outcome is not Outcome.INCONCLUSIVE:
        return ""
    names = [m.metric for m in look.evidence.metrics if not m.advisory and m.outcome is Outcome.INCONCLUSIVE]
    return f"Not decided: {', '.join(names)}." if names else ""


def _kept(kept: "Kept") -> list[str]:
    """What a person must know to read the counts."""
    told = []
    if kept.one_in > 1:
        told.append(f"counted are the requests that were kept: all at first, by now one in {kept.one_in}")
    if kept.lost:
        told.append(f"{kept.lost} observations were lost: the log of the server says why, a full disk or a slow one")
    return told


_HEADINGS = ("metric", "canary", "stable", "difference", "at all times between", "")


def _row(metric: "LiveMetric", more: int | None) -> tuple[str, ...]:
    both = (metric.canary_mean, metric.stable_mean)
    difference = f"{both[0] - both[1]:+.3f}" if both[0] is not None and both[1] is not None else "not measured"
    return (
        metric.metric + (" (paired)" if metric.paired else ""),
        _mean(metric.canary_mean, metric.canary_n),
        _mean(metric.stable_mean, metric.stable_n),
        difference,
        f"{metric.low:+.3f} .. {metric.high:+.3f}",
        "for information" if metric.advisory else metric.outcome.name + (f", about {more} more" if more else ""),
    )


def _mean(mean: float | None, n: int) -> str:
    return f"none ({n})" if mean is None else f"{mean:.3f} ({n})"
