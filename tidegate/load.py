"""`tidegate load`: a running service under load, held to thresholds, with a report. What is measured is load/."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.errors import BadRequest, NotReady
from tidegate.config import AsJson
from tidegate.console import Code, complain, loaded, say, say_json

if TYPE_CHECKING:
    from load.running import Plan
    from load.samples import Sample
    from load.slo import Threshold, Verdict

MIXES = ("mixed", "answer", "conversation", "stream", "search")
ALWAYS = "error_share=0.01"  # what is asked of a run when nobody names a threshold


def load(
    ctx: typer.Context,
    url: Annotated[
        str | None, typer.Option(help="Address; the server of this data folder when left out.", show_default=False)
    ] = None,
    users: Annotated[int, typer.Option(min=1, max=5000, help="Users who wait for an answer before they ask on.")] = 20,
    rate: Annotated[
        float | None,
        typer.Option(min=0.01, max=5000, help="Arrivals a second instead of users.", show_default=False),
    ] = None,
    duration: Annotated[str, typer.Option(help="How long, like 60s or 5m.")] = "60s",
    mix: Annotated[str, typer.Option(help=f"What they do: {', '.join(MIXES)}.")] = "mixed",
    think: Annotated[float, typer.Option(min=0, max=600, help="Seconds of thought between questions, mean.")] = 1.0,
    slo: Annotated[
        list[str] | None,
        typer.Option("--slo", metavar="MEASURE=BOUND", help=f"A threshold, also several. {ALWAYS} when none is named."),
    ] = None,
    report: Annotated[Path, typer.Option(help="Folder for report, plots and samples.")] = Path("load-report"),
    questions: Annotated[
        Path | None,
        typer.Option(help="JSON lines with question and follow_up; those of the sample library when left out."),
    ] = None,
    key_file: Annotated[Path | None, typer.Option(help="File with the API key to show.", show_default=False)] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="The address may be another machine's, which is yours.")
    ] = False,
    as_json: AsJson = False,
) -> Code:
    """Put a running service under load; hold it to thresholds.

    With --rate requests arrive whatever the server does, and each is timed from when it was due. Thresholds are like
    p95_complete_ms=1500, stream.p95_first_ms=800, error_share=0.01, citations_share=0.99, requests_per_s=20. Exit code
    1 when one is missed or nothing succeeded, 4 when one could not be measured.
    """
    from load.running import NotRun, Plan, is_loopback, reported, run

    thresholds = _thresholds(slo or [ALWAYS])
    if mix not in MIXES:
        raise BadRequest(f"--mix {mix!r} is none, wanted {', '.join(MIXES)}.", "mix")
    for option, path in (("--questions", questions), ("--key-file", key_file)):
        if path is not None and not path.is_file():
            raise BadRequest(f"{option} {path} is no file: name one that is there.", option)
    where = (url or _own(ctx)).rstrip("/")
    if not re.match(r"https?://[^/]", where):
        raise BadRequest(f"--url {where!r} is no address, wanted one like http://127.0.0.1:8000.", "url")
    if not is_loopback(where) and not allow_remote:
        raise BadRequest(
            f"{where} is another machine: a load test can take it down, and a hosted model costs money for each "
            "question. If it is yours to load, say --allow-remote.",
            "url",
        )
    report.mkdir(parents=True, exist_ok=True)
    plan = Plan(
        where, report.absolute(), users, _seconds(duration), mix, rate, think, questions=questions, key_file=key_file
    )
    try:
        samples = run(plan)
    except NotRun as error:
        complain(str(error))
        return Code.NOT_MEASURED
    verdicts, page = reported(plan, thresholds, samples)
    return _told(plan, samples, verdicts, page, as_json)


def _thresholds(texts: list[str]) -> "list[Threshold]":
    from load.slo import threshold

    wrong: list[str] = []
    found: list[Threshold] = []
    for text in texts:
        try:
            found.append(threshold(text))
        except ValueError as error:
            wrong.append(str(error))
    if wrong:
        raise BadRequest(" ".join(wrong), "slo")
    return found


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)?", text.strip())
    seconds = float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2] or "s"] if found else 0.0
    if not 1 <= seconds <= 86_400:
        raise BadRequest(f"--duration {text!r} is none, wanted 1s to 24h, like 60s or 5m.", "duration")
    return seconds


def _own(ctx: typer.Context) -> str:
    """The address of this data folder's server."""
    from tidegate import server

    there = server.running(loaded(ctx).settings)
    if there is None:
        raise NotReady("No server runs here: start one by `tidegate up`, or name another with --url.")
    return there.url


def _told(plan: "Plan", samples: "list[Sample]", verdicts: "list[Verdict]", page: Path, as_json: bool) -> Code:
    from load.slo import Outcome, worst

    outcome = worst(verdicts)
    if as_json:
        rows: list[dict[str, Any]] = [
            {"threshold": v.threshold.text, "outcome": v.outcome.value, "value": v.value, "requests": v.count}
            for v in verdicts
        ]
        failed = sum(bool(sample.failure) for sample in samples)
        facts = {"run": plan.asked, "requests": len(samples), "failed": failed, "outcome": outcome.value}
        say_json(facts | {"thresholds": rows, "report": str(page)})
    else:
        say(plan.asked)
        for v in verdicts:
            value = "nothing to measure" if v.value is None else f"{v.value:.4g} of {v.count} requests"
            say(f"{v.outcome.value:<12}  {v.threshold.text:<28}  {value}")
        say(f"report: {page}")
    return {Outcome.HELD: Code.DONE, Outcome.MISSED: Code.REFUSED, Outcome.NOT_MEASURED: Code.NOT_MEASURED}[outcome]
