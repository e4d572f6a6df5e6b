"""`tidegate bench graph` and `bench serve`: what this machine gives, over HTTP, as a user would get it.

`graph` is the request graph with stages that do nothing; `serve` a real index. Client and server share the machine,
so the client's own work is in every figure. docs/benchmarks.md keeps the figures with hardware and date.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.config import AsJson
from tidegate.console import Code, complain, loaded, note, say, say_json
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from domain.releases import IndexVersion
    from load.closed_loop import Request, Result
    from tidegate.settings import Settings

LIBRARY_DOCUMENTS, CHUNK_TOKENS = 700, 60  # together about 5,000 passages

Seconds = Annotated[float, typer.Option(min=1, max=600, help="Seconds per measurement, after a warm-up.")]


def graph(ctx: typer.Context, seconds: Seconds = 10.0, as_json: AsJson = False) -> Code:
    """Measure the graph alone: four stages that do nothing.

    Behind two gateways: latency with 1 client, throughput with 32.
    """
    from load.closed_loop import Request
    from serving.address import free_port
    from serving.graph import start
    from serving.noop import noop_plan
    from serving.ray_home import Place

    settings = loaded(ctx).settings
    requests = [
        Request("/v1/answers", json.dumps({"question": f"When does gate {i} open?"}).encode()) for i in range(64)
    ]
    with progress() as report:
        report("starting the graph", 0, 0)
        running = start(noop_plan(), Place(port=free_port(), haproxy=settings.serving.haproxy))
        try:
            results = [measured(running.url, requests, clients, seconds, report) for clients in (1, 32)]
        finally:
            running.stop()
    for text in running.notes:
        note(text)
    facts = {"p50_ms": median_ms(results[0]), "rps_c32": round(results[1].requests_per_s, 1)}
    return finish(facts, results, as_json)


def serve(
    ctx: typer.Context,
    corpus: Annotated[
        Path | None, typer.Option(help="BEIR collection to index and ask; a generated library when left out.")
    ] = None,
    seconds: Seconds = 10.0,
    as_json: AsJson = False,
) -> Code:
    """Measure search and answers over a real index.

    Search is hybrid, not reranked, k 10; about 5,000 passages; latency with 1 client, throughput with 8.
    """
    from load.closed_loop import Request
    from tidegate import ending, starting

    settings = served_settings(loaded(ctx).settings, corpus)
    results: list[Result] = []
    with progress() as report:
        version, asked = bench_index(settings, corpus, report)
        # Every question is new to the server, as most are in life: a cache of query vectors would flatter.
        there = starting.launch(settings, bench_arguments(settings), lambda _: report("starting the graph", 0, 0))
        try:
            searches = [
                Request("/v1/search", json.dumps({"query": text, "k": 10, "rerank": False}).encode()) for text in asked
            ]
            answers = [Request("/v1/answers", json.dumps({"question": text}).encode()) for text in asked]
            for requests in (searches, answers):
                results += [measured(there.url, requests, clients, seconds, report) for clients in (1, 8)]
            resident_mb = resident(there.pid)
        finally:
            ending.end(settings, there)
    facts: dict[str, Any] = {"search": figures(*results[:2]), "answers": figures(*results[2:])}
    return finish(facts | {"resident_mb": resident_mb, "passages": version.chunks}, results, as_json)


def served_settings(given: "Settings", corpus: Path | None) -> "Settings":
    """Settings of an index that is built for measuring alone, served at a port that is free now."""
    from serving.address import free_port

    home = given.data_dir / "bench" / (corpus.resolve().name if corpus else "generated")
    return given.model_copy(
        update={
            "data_dir": home,
            "access": given.access.model_copy(update={"mode": "open"}),
            "chunking": given.chunking.model_copy(update={"strategy": "heading", "tokens": CHUNK_TOKENS}),
            "serving": given.serving.model_copy(update={"port": free_port()}),
        }
    )


def figures(one: "Result", eight: "Result") -> dict[str, float | None]:
    """Median latency with one client, and throughput with eight."""
    return {"p50_ms": median_ms(one), "rps_c8": round(eight.requests_per_s, 1)}


def median_ms(result: "Result") -> float | None:
    """The median latency with two digits; None when no request succeeded, which is not 0."""
    median = result.percentile(0.5)
    return None if median is None else round(median, 2)


def measured(url: str, requests: "Sequence[Request]", clients: int, seconds: float, report: Report) -> "Result":
    """The result of one closed loop."""
    import uvloop

    from load.closed_loop import run

    report(f"{requests[0].path} with {clients} client{'s' if clients > 1 else ''}", 0, 0)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # the client shares the cores it measures
        return runner.run(run(url, requests, clients, seconds, warm_up_s=2.0))


def bench_index(settings: "Settings", corpus: Path | None, report: Report) -> "tuple[IndexVersion, list[str]]":
    """The admitted version to measure on, built unless it is there, and questions nobody has asked yet."""
    from domain.releases import Move, Rollout, Verb
    from domain.releasing import stamp, utc_now
    from eval.collection import load_beir
    from eval.factgraph import generate, write
    from eval.questions import load
    from tidegate.build import build_version
    from tidegate.compose import make_registry

    registry = make_registry(settings)
    if corpus is None:
        folder = settings.data_dir / "library"
        write(generate(settings.sample.seed, LIBRARY_DOCUMENTS, 4 * settings.sample.questions), folder)
        built = build_version(settings, folder / "documents.jsonl", report)
        asked = [question.query for question in load(folder / "questions.jsonl") if not question.history]
    else:
        built = build_version(settings, corpus, report, format="beir")
        asked = list(load_beir(corpus, None, None)[0].values())
    pointer = registry.rollout()
    if pointer.stable != built.version.id:
        # Nobody is served from this folder but the benchmark, so there is nothing to decide about.
        after = Rollout(stable=built.version.id, revision=pointer.revision + 1)
        registry.move(Move(Verb.PROMOTE, stamp(utc_now()), "tidegate bench", pointer, after, "to be measured"))
    return built.version, asked


def bench_arguments(settings: "Settings") -> list[str]:
    """Options for a server process with these settings: everything that is not a default, said one by one."""
    from tidegate.effective import leaves
    from tidegate.settings import Settings

    default = dict(leaves(Settings()))
    changed = {path: value for path, value in leaves(settings) if value != default.get(path)}
    changed["embedding.query_cache"] = 0
    return [word for path, value in sorted(changed.items()) for word in ("--set", f"{path}={_written(value)}")]


def resident(pid: int) -> int:
    """Resident memory, in MiB, of a process and everything below it; shared pages count in each."""
    import psutil

    process = psutil.Process(pid)
    return int(sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))) >> 20


def finish(facts: dict[str, Any], results: "Sequence[Result]", as_json: bool) -> Code:
    """Prints the figures; failed requests are told and make the measurement worthless."""
    failures = [failure for result in results for failure in result.failures]
    if as_json:
        say_json(facts | {"failed": len(failures)})
    else:
        for name, value in facts.items():
            say(f"{name:<14} {value}")
    if failures:
        complain(f"{len(failures)} requests failed, the first with {failures[0]}")
        return Code.NOT_MEASURED
    return Code.DONE


def _written(value: object) -> str:
    from tidegate.effective import shown

    if isinstance(value, tuple):
        return json.dumps(shown("", value))
    return str(value)
