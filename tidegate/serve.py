"""`tidegate serve`, `down` and `status`: the graph in this process, its end, and how it is doing."""

import signal
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import NotReady
from tidegate.config import AsJson
from tidegate.console import Code, loaded, note, say, say_json

if TYPE_CHECKING:
    from tidegate.settings import Settings

Port = Annotated[int | None, typer.Option(min=1, max=65535, help="Port to listen on.", show_default=False)]


def serve(ctx: typer.Context, port: Port = None) -> None:
    """Serve the admitted version until Ctrl-C or `tidegate down`."""
    from serving.graph import start
    from tidegate import compose, server

    settings = with_port(loaded(ctx).settings, port)
    server.refuse_second(settings)
    compose.check_startable(settings)
    if compose.make_registry(settings).rollout().stable is None:
        raise NotReady("No index version is admitted yet: run `tidegate up`.")

    ended = threading.Event()
    for sort in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sort, lambda *_: ended.set())
    where = compose.place(settings)
    started = start(compose.graph_plan(settings), where)
    try:
        server.record(settings, where.url)
        for text in started.notes:
            note(text)
        say(f"serving {where.url}")
        ended.wait()
    finally:
        server.forget(settings)
        started.stop()


def down(ctx: typer.Context) -> None:
    """End the server of this data folder, and nothing else."""
    from tidegate import server

    settings = loaded(ctx).settings
    there = server.running(settings)
    if there is None:
        say("nothing is running here")
        return
    server.end(there.pid)
    server.record_path(settings).unlink(missing_ok=True)
    say(f"stopped {there.url}")


def status(ctx: typer.Context, as_json: AsJson = False) -> Code:
    """Say whether the server of this data folder answers, and which versions people get. Exit code 1 when not ready."""
    from dataclasses import asdict

    from tidegate import server
    from tidegate.compose import make_registry

    settings = loaded(ctx).settings
    there, rollout = server.running(settings), make_registry(settings).rollout()
    ready, why = there.ready if there else (False, "not running")
    if as_json:
        facts = {"running": there is not None, "ready": ready, "waiting_for": why, "url": there.url if there else None}
        say_json({**facts, "pid": there.pid if there else None, "rollout": asdict(rollout)})
    else:
        say(f"{there.url} (process {there.pid}): {'ready' if ready else why}" if there else "not running")
        roles = {"stable": rollout.stable, "canary": rollout.canary, "previous": rollout.previous}
        say(", ".join(f"{role} {version or 'none'}" for role, version in roles.items()))
    return Code.DONE if ready else Code.REFUSED


def with_port(settings: "Settings", port: int | None) -> "Settings":
    """The settings, with another port when one was named."""
    if port is None:
        return settings
    return settings.model_copy(update={"serving": settings.serving.model_copy(update={"port": port})})
