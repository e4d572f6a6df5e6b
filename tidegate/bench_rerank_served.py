"""`tidegate bench rerank --serve`: search with reranking over HTTP, as a client sees it.

Twice: with every core on one request, for who waits for 50 passages of 200 tokens; and with a replica of one thread for
every core, for how much eight clients get through. The graph and the client share the machine.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.bench import bench_arguments, bench_index, measured
from tidegate.bench_lines import Figure
from tidegate.progress import Report

if TYPE_CHECKING:
    from load.closed_loop import Result
    from tidegate.settings import Settings

PASSAGES = 50
SECONDS = 15.0
REPEATS = 20  # a question with another number behind it is another question, and there are enough for a fast machine
AIM_MS = 500.0
CROWD_AIM = 1.15


def served(settings: "Settings", corpus: Path | None, model: Path, report: Report) -> list[Figure]:
    """The time of one client's requests, and what eight get through compared with one at a time."""
    from tidegate.bench_rerank import bench_settings

    given = bench_settings(settings, corpus)
    reading = {"backend": "cross_encoder", "folder": model, "depth": PASSAGES, "share": 1.0, "within_ms": 9000}
    given = given.model_copy(update={"rerank": given.rerank.model_copy(update=reading)})
    _, asked = bench_index(given, corpus, report)
    half, cores = len(asked) // 2, os.cpu_count() or 1
    wide = _measured(_shaped(given, threads=cores, replicas=1), asked[:half], report)
    narrow = _measured(_shaped(given, threads=1, replicas=cores), asked[half:], report)
    return figures_of(wide, narrow)


def _shaped(given: "Settings", threads: int, replicas: int) -> "Settings":
    """The settings with so many replicas of the reranker, each of so many threads, at a free port."""
    from serving.address import free_port

    stages = given.serving.stages
    stage = stages.reranker.model_copy(update={"min_replicas": replicas, "max_replicas": replicas})
    sizes = stages.model_copy(update={"reranker": stage})
    return given.model_copy(
        update={
            "rerank": given.rerank.model_copy(update={"threads": threads}),
            "serving": given.serving.model_copy(update={"port": free_port(), "stages": sizes}),
        }
    )


def _measured(chosen: "Settings", asked: Sequence[str], report: Report) -> "tuple[Result, Result]":
    """One client, then eight; nobody asks what was asked before, for scores of a moment ago are remembered."""
    from load.closed_loop import Request
    from tidegate import ending, starting

    texts = [f"{text} {number}" for number in range(REPEATS) for text in asked]
    body = [json.dumps({"query": text, "k": PASSAGES, "rerank": True}).encode() for text in texts]
    requests = [Request("/v1/search", each) for each in body]
    there = starting.launch(chosen, bench_arguments(chosen), lambda _: report("starting the graph", 0, 0))
    try:
        one = measured(there.url, requests[: len(requests) // 3], 1, SECONDS, report)
        return one, measured(there.url, requests[len(requests) // 3 :], 8, SECONDS, report)
    finally:
        ending.end(chosen, there)


def figures_of(wide: "tuple[Result, Result]", narrow: "tuple[Result, Result]") -> list[Figure]:
    """Not measured where a request failed: what is left would be another question."""
    if any(result.failures for result in (*wide, *narrow)):
        return [Figure(name, None, unit) for name, unit in (("http_ms", "ms"), ("concurrent8", "x"))]
    p50, gain = wide[0].percentile(0.5), _gain(*narrow)
    others = {
        "one_at_a_time_rps": narrow[0].requests_per_s,
        "eight_rps": narrow[1].requests_per_s,
        "eight_p95_ms": narrow[1].percentile(0.95),
        "all_cores_on_one_request": _gain(*wide),
    }
    met = None if p50 is None else p50 <= AIM_MS
    enough = None if gain is None else gain >= CROWD_AIM
    return [
        Figure("http_ms", p50, "ms", {"p95": wide[0].percentile(0.95)}, aim=f"<= {AIM_MS:g}", met=met),
        Figure("concurrent8", gain, "x", others, aim=f">= {CROWD_AIM:g}", met=enough),
    ]


def _gain(one: "Result", eight: "Result") -> float | None:
    return eight.requests_per_s / one.requests_per_s if one.requests_per_s else None
