"""`tidegate serve`, `down` and `status`: the graph in this process, its end, and how it is doing."""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import NotReady, StorageError
from tidegate.config import AsJson
from tidegate.console import Code, loaded, note, say, say_json, say_piece

if TYPE_CHECKING:
    from tidegate.settings import Settings

Port = Annotated[int | None, typer.Option(min=1, max=65535, help="Port to listen on.", show_default=False)]


def serve(ctx: typer.Context, port: Port = None) -> None:
    """Serve the admitted version until it is stopped.

    Ctrl-C ends it, and so does `tidegate down`.
    """
    from serving.address import check_free
    from tidegate import compose, starting
    from tidegate.admin import make_key, read_key

    settings = with_port(loaded(ctx).settings, port)
    starting.refuse_second(settings)
    check_free(settings.serving.host, settings.serving.port)
    compose.check_startable(settings)
    stable = compose.make_registry(settings).rollout().stable
    if stable is None:
        raise NotReady("No index version is admitted yet: run `tidegate up`.")
    check_opens(settings, stable)
    recorded = _can_be_recorded(settings)
    if recorded:
        make_key(settings)
    else:
        read_key(settings)  # raises what the gateways would die of
    # Ray's workers look for modules where their driver stands, and `eval` or `domain` is a likely name for a folder.
    os.chdir(settings.data_dir)
    with starting.claim(settings) if recorded else nullcontext():
        _until_ended(settings, recorded)


def _until_ended(settings: "Settings", recorded: bool) -> None:
    from serving.graph import start
    from tidegate import compose_graph, server

    where, started, ended = compose_graph.place(settings), None, threading.Event()
    try:
        _on_signals(signal.default_int_handler)
        if recorded:
            server.record(settings, where.url)
        started = start(compose_graph.graph_plan(settings), where)
        _on_signals(signal.default_int_handler)  # Ray puts a handler of its own there
        if recorded:
            server.record(settings, where.url, str(started.home.folder))
        for text in started.notes:
            note(text)
        say_piece(f"serving {where.url}\n")  # at once, also into a log
        if recorded and settings.canary.watch:
            threading.Thread(target=watch, args=(settings, ended), name="watch", daemon=True).start()
        threading.Event().wait()
    except (KeyboardInterrupt, SystemExit):  # the latter from Ray's handler, as long as Ray is starting
        return
    finally:
        _on_signals(signal.SIG_IGN)  # an impatient second Ctrl-C would leave half of it running
        ended.set()
        if started is not None:
            started.stop()
        if recorded:
            server.forget(settings, os.getpid())


def watch(settings: "Settings", ended: threading.Event) -> None:
    """Turn a bad canary back and let one that has leave go forward, until `ended`; each move is told in the log."""
    from tidegate.compose_releases import make_lookout, make_releases
    from tidegate.tracking import follow
    from tidegate.watching import Watch, run

    def tell(text: str) -> None:
        note(text)
        threading.Thread(target=follow, args=(settings,), daemon=True).start()  # the tracker must not hold up a look

    run(Watch(make_lookout(settings), make_releases(settings)), ended.wait, settings.canary.every_s, tell)


def _on_signals(do: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for sort in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sort, do)


def _can_be_recorded(settings: "Settings") -> bool:
    from tidegate import server

    try:
        server.check_writable(settings)
    except StorageError:
        note(
            f"{settings.data_dir} cannot be written: serving from it all the same, but `tidegate status` and "
            "`tidegate down` will not see this server; end it with Ctrl-C."
        )
        return False
    return True


def check_opens(settings: "Settings", version: str) -> None:
    """Raises IncompatibleIndex for a version of another encoder: replicas would wait for it until somebody looks.

    Loading an encoder takes seconds, so its name is compared first, and all of it only when that differs.
    """
    from tidegate import compose

    if settings.retrieval.knowledge_base is not None:  # searched in the version's place: nothing of it is opened
        return
    chosen = settings.embedding
    names = {"hashing": f"hashing-{chosen.dimensions}", "folder": chosen.folder.name if chosen.folder else ""}
    built = {there.id: there.embedder for there in compose.make_registry(settings).versions()}
    # A hosted encoder is asked nothing here and loads nothing, so its version is opened, which compares the whole tag.
    by_name = chosen.backend != "bedrock"
    if not by_name or not built.get(version, "").startswith(f"{names.get(chosen.backend, chosen.backend)}-"):
        compose.open_index(settings, compose.make_embedder(settings), version)


def down(ctx: typer.Context) -> None:
    """End the server of this data folder, and nothing else."""
    from tidegate import ending, server

    settings = loaded(ctx).settings
    there = server.recorded(settings)
    if there is None:
        say("nothing is running here")
        return
    alive = there.alive
    ending.end(settings, there)
    say(f"stopped {there.url}" if alive else f"{there.url} was no longer running; what it left behind is cleared up")


def status(ctx: typer.Context, as_json: AsJson = False) -> Code:
    """Say whether the server answers, and what people get.

    The server is the one of this data folder. Exit code 1 when it is not ready, with what it waits for.
    """
    from dataclasses import asdict

    from tidegate import server
    from tidegate.compose import make_registry

    settings = loaded(ctx).settings
    there, rollout = server.recorded(settings), make_registry(settings).rollout()
    alive = there is not None and there.alive
    ready, why = there.ready() if there and alive else (False, "not running")
    if there and alive and not there.folder:
        why = f"it is starting ({why})"
    if there and not alive:
        why = f"not running: process {there.pid} is gone, see {server.log_path(settings)}"
    if as_json:
        facts = {"running": alive, "ready": ready, "waiting_for": why, "url": there.url if there and alive else None}
        say_json({**facts, "pid": there.pid if there and alive else None, "rollout": asdict(rollout)})
    else:
        say(
            f"{there.url} (process {there.pid}): {'ready' if ready else f'not ready: {why}'}"
            if there and alive
            else why
        )
        roles = {"stable": rollout.stable, "canary": rollout.canary, "previous": rollout.previous}
        say(", ".join(f"{role} {version or 'none'}" for role, version in roles.items()))
    return Code.DONE if ready else Code.REFUSED


def with_port(settings: "Settings", port: int | None) -> "Settings":
    """The settings, with another port when one was named."""
    if port is None:
        return settings
    return settings.model_copy(update={"serving": settings.serving.model_copy(update={"port": port})})
