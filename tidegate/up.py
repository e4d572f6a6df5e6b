"""`tidegate up`: from nothing to a cited answer - sample library if none is named, build, gate, promote, serve."""

import json
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest
from tidegate.console import Code, Shared, loaded, say
from tidegate.progress import progress
from tidegate.serve import Port, with_port

if TYPE_CHECKING:
    from tidegate.settings import Settings


def up(
    ctx: typer.Context,
    corpus: Annotated[
        Path | None, typer.Argument(help="Folder of documents; the sample library when left out.")
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="Question set of the corpus; that of the settings when left out.")
    ] = None,
    groups: Annotated[str, typer.Option(help="Groups that may read documents which name none.")] = "",
    promote: Annotated[
        bool, typer.Option("--promote", help="Give a version that passes to everybody at once, without a canary.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Admit it although the gate says otherwise.")] = False,
    reason: Annotated[str, typer.Option(help="Why, with --force; it is recorded.", show_default=False)] = "",
    port: Port = None,
) -> Code:
    """Build, gate and serve in the background.

    The first version that passes is what everybody gets. A later one is compared with the version people have: if it
    passes it begins as a canary, which the server widens and promotes by itself, or turns back; --promote gives it to
    everybody at once. What was built and decided before is not done again. End the server with `tidegate down`.
    """
    from serving.address import check_free
    from tidegate import compose, server, starting
    from tidegate.admin import key_path, read_key
    from tidegate.admitting import build_and_admit, trial

    settings = with_question_set(with_port(loaded(ctx).settings, port), questions)
    if force and not reason.strip():
        raise BadRequest("--force needs --reason: it is recorded, for whoever asks why.", "reason")
    if corpus is not None and settings.evaluation.question_set is None and not force:
        raise BadRequest(
            f"{corpus} has no question set to be evaluated on: name one with --questions FILE, or admit it "
            "unmeasured with --force --reason TEXT.",
            "questions",
        )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends this ends the server that is starting, too
    # Everything that can be refused is refused now, not after minutes of building.
    starting.refuse_second(settings)
    check_free(settings.serving.host, settings.serving.port)
    compose.check_startable(settings)
    read_key(settings)
    server.check_writable(settings)

    with progress() as report:
        with starting.claim(settings):
            rollout = build_and_admit(
                settings, corpus, groups=groups, forced=reason if force else "", at_once=promote, report=report
            )
        report("starting the server", 0, 0)
        arguments = server_arguments(ctx, settings, questions, port)
        there = starting.launch(settings, arguments, lambda why: report("starting the server", 0, 0))
    say(f"\nServing version {rollout.stable} at {there.url}")
    if rollout.canary:
        say(trial(settings, rollout))
    say("Ask on the page, or:\n")
    say(f"  {curl(there.url, example_question(settings))}\n")
    say(f"The key that moves versions over HTTP and on the page is in {key_path(settings)}")
    say(f"End it with: {ending(ctx)}")
    return Code.DONE


def with_question_set(settings: "Settings", questions: Path | None) -> "Settings":
    """The settings with this question set in place of their own, if one is named."""
    if questions is None:
        return settings
    evaluation = settings.evaluation.model_copy(update={"question_set": questions.absolute()})
    return settings.model_copy(update={"evaluation": evaluation})


def server_arguments(ctx: typer.Context, settings: "Settings", questions: Path | None, port: int | None) -> list[str]:
    """What the server must be started with to serve, and to decide about versions, as was asked for here."""
    chosen = ["--set", f"evaluation.question_set={settings.evaluation.question_set}"] if questions else []
    return [*shared_arguments(ctx), *chosen, *(["--port", str(port)] if port else [])]


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
