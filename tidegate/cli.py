"""The command line: one table of verbs, the options they share, and the one place where errors become exit codes.

A verb is a function in a small file of its own, listed in VERBS at the foot; it imports whatever is heavy inside,
prints through console.py, and returns a Code or nothing.
"""

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from domain.errors import BadRequest, TidegateError
from tidegate import (
    api_keys,
    ask,
    bench,
    bench_answers,
    bench_build,
    bench_canary,
    bench_dense,
    bench_embed,
    bench_gate,
    bench_ingest,
    bench_lexical,
    bench_quality,
    bench_rerank,
    bench_rerank_load,
    bench_retrieve,
    bench_rewriting,
    bench_scaling,
    bench_seeking,
    bench_sync,
    build,
    calibrate,
    compare,
    compare_chunkers,
    config,
    documents,
    evaluate,
    gate,
    judge,
    load,
    observe,
    preflight,
    releases,
    serve,
    sync,
    train_abstention,
    train_reranker,
    up,
)
from tidegate.console import Code, Shared, complain, exit_code, make_streams_safe, silence_stdout

Verbs = Mapping[str, tuple[Callable[..., Code | None], str]]  # name -> the function, and an example for its help


def main(argv: Sequence[str] | None = None, verbs: Verbs | None = None) -> int:
    """Run one command line; the exit code comes back. Nothing that a verb raises gets past here."""
    make_streams_safe()
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(args, VERBS if verbs is None else verbs)
        if sys.stdout:  # None when it was closed before the start
            sys.stdout.flush()
    except BrokenPipeError:  # `tidegate versions | head -1`: the reader has what it wanted
        silence_stdout()
        return Code.REFUSED
    except OSError as error:
        silence_stdout()
        complain(f"The output could not be written: {error.strerror or error}.")
        return Code.REFUSED
    return code


def _run(args: list[str], verbs: Verbs) -> int:
    try:
        result = command(verbs)(hoist(args) or ["--help"], prog_name="tidegate", standalone_mode=False)
        return Code.DONE if result is None else int(result)
    except KeyboardInterrupt:
        return Code.INTERRUPTED
    except SystemExit:  # Typer's way of saying that the reader of our output went away
        return Code.REFUSED
    except BrokenPipeError:
        raise
    except Exception as error:
        if "--debug" in args:
            traceback.print_exc()
        code, text = explain(error)
        complain(text)
        return code


def explain(error: Exception) -> tuple[Code, str]:
    """The exit code of anything a verb can raise, and the sentence a person reads."""
    one_line = " ".join(str(error).split())
    if isinstance(error, TidegateError):
        return exit_code(error), str(error)
    if isinstance(error, typer.TyperException):  # an option, argument or verb that does not exist
        context = getattr(error, "ctx", None)
        verb = context.command_path if context else "tidegate"
        return Code.USAGE, f"{_told(error)} See: {verb} --help"
    if isinstance(error, typer.Abort):
        return Code.REFUSED, "A question was left without an answer."
    if isinstance(error, OSError):  # a file or address that nobody wrapped: the machine's word is clearer than "a bug"
        where = f": {error.filename}" if error.filename else ""
        return Code.REFUSED, f"{error.strerror or one_line or type(error).__name__}{where}."
    return Code.REFUSED, f"This is a bug in Tidegate, --debug shows where: {type(error).__name__}: {one_line[:300]}"


def _told(error: typer.TyperException) -> str:
    """What is wrong with the command line, with the value that was given where one is to blame."""
    from pydantic import ValidationError  # Typer's own

    said = " ".join(error.format_message().split())
    if not isinstance(error.__cause__, ValidationError):
        return said
    given = repr(error.__cause__.errors(include_url=False)[0]["input"])
    shown = given if len(given) <= 60 else f"{given[:60]}..."
    return said.replace("Input should be", f"got {shown}, wanted", 1) + "."


def hoist(args: Sequence[str]) -> list[str]:
    """The arguments with the shared options moved to the front, so that they may stand before or after the verb.

    Whatever follows `--` is left alone.
    """
    end = args.index("--") if "--" in args else len(args)
    front: list[str] = []
    rest: list[str] = []
    words = iter(args[:end])
    for word in words:
        name, equals, value = word.partition("=")
        if name in ("--config", "--set"):
            given = value if equals else next(words, None)
            if given is None:
                raise BadRequest(f"Option {name} needs a value after it, see tidegate --help.", name)
            front += [name, given]
        else:
            (front if word == "--debug" else rest).append(word)
    return [*front, *rest, *args[end:]]


def command(verbs: Verbs) -> Callable[..., Any]:
    """The whole command line, made from a table of verbs. Any: what a verb returns comes through Typer untyped."""
    root = _group(_shared.__doc__)
    root.callback()(_shared)
    groups = {name: _group(text) for name, text in GROUPS.items() if any(verb.startswith(f"{name} ") for verb in verbs)}
    for name, (verb, example) in verbs.items():
        group, _, last = name.rpartition(" ")
        (groups[group] if group else root).command(last, epilog=f"Example: {example}")(verb)
    for name, group_app in groups.items():
        root.add_typer(group_app, name=name)
    return typer.main.get_command(root)


def _group(text: str | None) -> typer.Typer:
    # Plain help starts fast, copies well and needs no Unicode.
    return typer.Typer(help=text, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _version(on: bool) -> None:
    if on:
        from importlib.metadata import version

        typer.echo(f"tidegate {version('tidegate')}")
        raise typer.Exit


def _shared(
    ctx: typer.Context,
    config: Annotated[
        Path | None, typer.Option(help="Settings file; else TIDEGATE_CONFIG, else ./tidegate.yaml.", show_default=False)
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set one value, above file and variables.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="On an error, print the trace too.")] = False,  # noqa: ARG001
    version: Annotated[  # noqa: ARG001 - its callback does the work, as main does for --debug
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Cited answers from a private library, on Ray Serve, behind an evaluation gate.

    Begin with `tidegate up`. A new version goes to people by build, gate and canary --auto, and back by rollback.

    --config, --set and --debug may also stand after the verb. Exit codes: 0 done, 1 refused or failed, 2 usage or
    settings, 3 inconclusive, 4 could not measure, 5 partial, 130 interrupted.
    """
    pairs = [word.partition("=") for word in values or ()]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise BadRequest(f"--set {wrong[0]} has no value, wanted KEY=VALUE like --set retrieval.k1=0.9.", "set")
    if nameless := [value for key, _, value in pairs if not key.strip()]:
        raise BadRequest(f"--set ={nameless[0]} has no key, wanted KEY=VALUE like --set retrieval.k1=0.9.", "set")
    ctx.obj = Shared(config, {key.strip(): value for key, _, value in pairs})


GROUPS: Mapping[str, str] = {
    "bench": "Measure this machine, the gate and the canary.",
    "config": "Show or check the settings.",
    "keys": "Make and revoke the keys of readers and admins.",
    "judge": "Find what a judge is worth, and let it grade answers.",
}

VERBS: Verbs = {
    "up": (up.up, "tidegate up --port 8001"),
    "build": (build.build, "tidegate build ./handbook --groups staff"),
    "sync": (sync.sync, "tidegate sync ./handbook --groups staff --auto"),
    "versions": (build.versions, "tidegate versions --json"),
    "evaluate": (evaluate.evaluate, "tidegate evaluate v0123456789ab --questions questions.jsonl"),
    "calibrate": (calibrate.calibrate, "tidegate calibrate v0123456789ab --json"),
    "compare": (compare.compare, "tidegate compare v0123456789ab vba9876543210 --html report.html"),
    "compare-chunkers": (
        compare_chunkers.compare_chunkers,
        "tidegate compare-chunkers ./handbook --questions questions.jsonl --strategies heading,semantic",
    ),
    "gate": (gate.gate, "tidegate gate v0123456789ab --json"),
    "judge calibrate": (judge.calibrate, "tidegate judge calibrate --json"),
    "judge score": (judge.score, "tidegate judge score v0123456789ab --json"),
    "canary": (releases.canary, "tidegate canary v0123456789ab --auto"),
    "observe": (observe.observe, "tidegate observe --json"),
    "promote": (releases.promote, "tidegate promote v0123456789ab"),
    "rollback": (releases.rollback, 'tidegate rollback --reason "answers without sources"'),
    "forget": (documents.forget, 'tidegate forget minutes/2024.md --reason "asked for by its author"'),
    "restore": (documents.restore, "tidegate restore minutes/2024.md"),
    "readers": (documents.readers, "tidegate readers minutes/2024.md --groups staff,board"),
    "compact": (documents.compact, "tidegate compact --json"),
    "keys add": (api_keys.add, "tidegate keys add reading-room --groups staff,public"),
    "keys list": (api_keys.listed, "tidegate keys list --json"),
    "keys revoke": (api_keys.revoke, "tidegate keys revoke reading-room"),
    "gc": (releases.gc, "tidegate gc --keep 3 --dry-run"),
    "serve": (serve.serve, "tidegate serve --port 8001"),
    "down": (serve.down, "tidegate down"),
    "status": (serve.status, "tidegate status --json"),
    "ask": (ask.ask, 'tidegate ask "When does the tide turn?"'),
    "search": (ask.search, "tidegate search ERR_CONN_RESET --mode lexical"),
    "load": (load.load, "tidegate load --users 20 --duration 60s --slo p95_complete_ms=1500 --report ./load"),
    "preflight": (preflight.preflight, "tidegate preflight --json"),
    "train-reranker": (
        train_reranker.train_reranker,
        "tidegate train-reranker --questions questions.jsonl --out ./reranker --minutes 60",
    ),
    "train-abstention": (train_abstention.train_abstention, "tidegate train-abstention --out covering.json"),
    "bench graph": (bench.graph, "tidegate bench graph --json"),
    "bench serve": (bench.serve, "tidegate bench serve --seconds 20"),
    "bench answers": (bench_answers.answers, "tidegate bench answers --questions 100 --json"),
    "bench canary": (bench_canary.canary, "tidegate bench canary --json"),
    "bench dense": (bench_dense.dense, "tidegate bench dense --vectors 20000"),
    "bench embed": (bench_embed.embed, "tidegate bench embed --corpus ./cranfield --json"),
    "bench gate": (bench_gate.gate, "tidegate bench gate --json"),
    "bench ingest": (bench_ingest.ingest, "tidegate bench ingest --corpus ./files --json"),
    "bench lexical": (bench_lexical.lexical, "tidegate bench lexical --documents 10000 --json"),
    "bench quality": (
        bench_quality.quality,
        "tidegate bench quality --beir ./hotpotqa --split dev --rerank ./reranker",
    ),
    "bench rerank": (bench_rerank.rerank, "tidegate bench rerank --corpus ./cranfield --json"),
    "bench rerank-load": (bench_rerank_load.rerank_load, "tidegate bench rerank-load --device cuda --json"),
    "bench build": (bench_build.build, "tidegate bench build --documents 1000 --json"),
    "bench retrieve": (bench_retrieve.retrieve, "tidegate bench retrieve --chunks 5000,50000 --plot growth.png"),
    "bench rewriting": (
        bench_rewriting.rewriting,
        "tidegate bench rewriting --beir ./canard-dev --questions 300 --json",
    ),
    "bench seeking": (bench_seeking.seeking, "tidegate bench seeking --questions 200 --json"),
    "bench sync": (bench_sync.sync, "tidegate bench sync --json"),
    "bench scaling": (bench_scaling.scaling, "tidegate bench scaling --chunks 5000 --json"),
    "config show": (config.show, "tidegate config show retrieval --set retrieval.k1=1.2"),
    "config check": (config.check, "tidegate config check --config examples/tidegate.yaml"),
}
