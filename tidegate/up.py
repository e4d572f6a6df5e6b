"""`tidegate up`: from nothing to a cited answer - sample library if none is named, build, evaluate, promote, serve."""

import asyncio
import json
import shlex
import signal
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest, NotAdmitted
from domain.releases import Binding, Decision, Outcome
from tidegate.console import Code, Shared, loaded, note, say
from tidegate.progress import Report, progress
from tidegate.serve import Port, with_port

if TYPE_CHECKING:
    from eval.questions import Question
    from tidegate.settings import Settings


def up(
    ctx: typer.Context,
    corpus: Annotated[
        Path | None, typer.Argument(help="Folder of documents; the sample library when left out.")
    ] = None,
    questions: Annotated[Path | None, typer.Option(help="Question set of the corpus (JSON lines).")] = None,
    groups: Annotated[str, typer.Option(help="Groups that may read documents which name none.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Promote although the evaluation says otherwise.")] = False,
    reason: Annotated[str, typer.Option(help="Why, with --force; it is recorded.", show_default=False)] = "",
    port: Port = None,
) -> Code:
    """Build, evaluate, admit and serve, in the background; end it with `tidegate down`."""
    from serving.address import check_free
    from tidegate import compose, server

    settings = with_port(loaded(ctx).settings, port)
    if force and not reason.strip():
        raise BadRequest("--force needs --reason: it is recorded, for whoever asks why.", "reason")
    if corpus is not None and questions is None and not force:
        raise BadRequest(
            f"{corpus} has no question set to be evaluated on: name one with --questions FILE, or admit it "
            "unmeasured with --force --reason TEXT.",
            "questions",
        )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends this ends the server that is starting, too
    # Everything that can be refused is refused now, not after minutes of building.
    server.refuse_second(settings)
    check_free(settings.serving.host, settings.serving.port)
    compose.check_startable(settings)
    server.check_writable(settings)

    with progress() as report:
        with server.claim(settings):
            version = build_and_admit(settings, corpus, questions, groups, reason if force else "", report)
        arguments = [*shared_arguments(ctx), *(["--port", str(port)] if port else [])]
        report("starting the server", 0, 0)
        there = server.launch(settings, arguments, lambda why: report("starting the server", 0, 0))
    say(f"\nServing version {version} at {there.url}")
    say("Ask on the page, or:\n")
    say(f"  {curl(there.url, example_question(settings))}\n")
    say(f"End it with: {ending(ctx)}")
    return Code.DONE


def build_and_admit(
    settings: "Settings", corpus: Path | None, questions: Path | None, groups: str, forced: str, report: Report
) -> str:
    """The version that is stable afterwards: built, evaluated and promoted, each unless that has been done already.

    Raises NotAdmitted when the evaluation does not pass, and people keep getting what they got.
    """
    from domain.releasing import Releases
    from tidegate.build import build_version, tell
    from tidegate.compose import make_registry
    from tidegate.evaluate import question_set
    from tidegate.measuring import binding
    from tidegate.sample import corpus_path, make_sample, questions_path
    from tidegate.suggestions import offer

    if corpus is None:
        report("writing the sample library", 0, 0)
        make_sample(settings)
    asked = () if corpus is not None and questions is None else question_set(settings, questions)
    built = build_version(settings, corpus or corpus_path(settings), report, groups=groups)
    tell(built.outcomes)
    served = binding(settings, built.version.id, asked)
    decision = decision_about(settings, served, asked, forced, report)
    for verdict in decision.verdicts:
        note(f"{verdict.outcome.name} {verdict.gate}: {verdict.reason}")
    if decision.forced:
        note(f"forced: {decision.forced}")
    registry = make_registry(settings)
    rollout = registry.rollout()
    if decision.outcome is not Outcome.PASS and not decision.forced:
        kept = f"people keep getting {rollout.stable}" if rollout.stable else "nobody gets anything yet"
        missed = "; ".join(f"{v.gate}: {v.reason}" for v in decision.verdicts if v.outcome is not Outcome.PASS)
        raise NotAdmitted(
            f"Version {built.version.id} may not be served under these settings ({missed}); {kept}: mend the corpus, "
            "the questions or the settings, or overrule it with --force --reason TEXT."
        )
    Releases(registry, lambda _version, _baseline: served).promote(built.version.id, "tidegate up", decision.forced)
    offer(settings, questions if corpus is not None else questions_path(settings))
    return built.version.id


def decision_about(
    settings: "Settings", served: Binding, asked: "tuple[Question, ...]", forced: str, report: Report
) -> Decision:
    """The recorded decision about exactly what would be served; measured now when there is none that admits it.

    Without questions nothing can be measured, and only a forced decision admits.
    """
    from tidegate.compose import make_registry
    from tidegate.measuring import decide

    registry = make_registry(settings)
    for earlier in reversed(registry.decisions(served.version)):
        if earlier.binding == served and (earlier.outcome is Outcome.PASS or earlier.forced):
            return earlier
    if asked:
        decision = asyncio.run(decide(settings, served.version, asked, report)).decision
        if decision.outcome is Outcome.PASS or not forced:
            return decision
    else:
        decision = Decision(served, (), "", datetime.now(UTC).isoformat(timespec="seconds"))
    decision = replace(decision, forced=forced)
    registry.record(decision)
    return decision


def shared_arguments(ctx: typer.Context) -> list[str]:
    """The options before the verb, for the process that will serve: it must see the same settings."""
    shared = ctx.find_object(Shared) or Shared(None, {})
    config = ["--config", str(shared.config)] if shared.config else []
    return [*config, *(word for key, value in shared.overrides.items() for word in ("--set", f"{key}={value}"))]


def ending(ctx: typer.Context) -> str:
    """The line that ends what this program started: the same program under the same settings."""
    program = [sys.executable, "-m", "tidegate"] if Path(sys.argv[0]).stem == "__main__" else sys.argv[:1]
    return shlex.join([*program, *shared_arguments(ctx), "down"])


def example_question(settings: "Settings") -> str:
    """A question worth asking first."""
    from tidegate.suggestions import offered

    return next(iter(offered(settings.data_dir)), "What is this library about?")


def curl(url: str, question: str) -> str:
    """One line that asks from a shell."""
    body = json.dumps({"question": question})  # ASCII, so that no terminal's encoding can spoil what is pasted
    return f"curl -s {url}/v1/answers -H 'Content-Type: application/json' -d {shlex.quote(body)}"
