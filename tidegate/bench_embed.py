"""`tidegate bench embed`: the bundled encoder over real passages, against what a user would run instead.

Each contender embeds the same texts in a process of its own (embed_peers.py), with one thread; the best of the rounds
counts, because a busy machine only ever makes things slower. With --serve also searches over HTTP.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest
from tidegate.bench_contenders import Told, contender
from tidegate.bench_lines import Figure, told
from tidegate.config import AsJson
from tidegate.console import Code, loaded, note
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from tidegate.settings import Settings

PEER = "sentence_transformers"
QUESTIONS = 200  # embedded one by one


def embed(
    ctx: typer.Context,
    corpus: Annotated[
        Path | None, typer.Option(help="BEIR collection to embed and ask; a generated library when left out.")
    ] = None,
    passages: Annotated[int, typer.Option(min=16, max=1_000_000, help="Passages to embed, at most.")] = 256,
    rounds: Annotated[int, typer.Option(min=1, max=20, help="Times each contender embeds everything.")] = 2,
    peers: Annotated[bool, typer.Option(help="Run the other too; its figures are missing otherwise.")] = True,
    serve: Annotated[bool, typer.Option("--serve", help="Also /v1/search over about 5,000 passages.")] = False,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="Seconds per measurement of --serve.")] = 10.0,
    as_json: AsJson = False,
) -> Code:
    """Measure the encoder: speed, and how near float32 it is.

    Passages per second of CPU time, and one question alone.
    """
    settings = loaded(ctx).settings
    with TemporaryDirectory(prefix="tidegate-embed-") as scratch, progress() as report:
        home = Path(scratch)
        report("reading", 0, 0)
        texts, asked = texts_of(settings, corpus, home)
        if len(texts) < passages:
            note(f"there are only {len(texts)} passages: they are what is embedded")
        job = home / "job.json"
        job.write_text(json.dumps({"passages": texts[:passages], "questions": asked[:QUESTIONS]}), "utf-8")
        runs: dict[str, list[Told]] = {}
        for number in range(rounds):
            for who in ("ours", PEER) if peers else ("ours",):
                report(f"round {number + 1} of {rounds}: {who.replace('_', ' ')}", 0, 0)
                runs.setdefault(who, []).append(contender("tidegate.embed_peers", who, job))
        figures = figures_of(runs, home)
        if serve:
            figures.append(served(settings, corpus, seconds, report))
    return told(figures, as_json)


def texts_of(settings: "Settings", corpus: Path | None, home: Path) -> tuple[list[str], list[str]]:
    """Passages as a build would embed them, and questions about them."""
    from eval.collection import load_beir
    from eval.factgraph import generate, write
    from eval.questions import load
    from retrieval.chunking import chunks_of, indexed_text
    from retrieval.documents import Corpus
    from tidegate.build import PASSAGE_TOKENS

    if corpus is None:
        write(generate(settings.sample.seed, settings.sample.documents, 4 * QUESTIONS), home / "library")
        asked = [question.query for question in load(home / "library" / "questions.jsonl") if not question.history]
        place, tokens = home / "library" / "documents.jsonl", settings.chunking.tokens
    else:
        place, tokens, asked = corpus, PASSAGE_TOKENS, list(load_beir(corpus, None, None)[0].values())
    documents = Corpus(place, "auto" if corpus is None else "beir", frozenset({"public"}), settings.access.tenant)
    texts = [indexed_text(chunk) for document in documents for chunk in chunks_of(document, "heading", tokens, 0)]
    if not texts or not asked:
        raise BadRequest(f"{place} has {len(texts)} passages and {len(asked)} questions: name another.", "corpus")
    return texts, asked


def figures_of(runs: dict[str, list[Told]], home: Path) -> list[Figure]:
    """The figures of the best rounds; those of a peer that was not run are None."""
    import numpy as np

    def best(who: str, key: str) -> float | None:
        return min((float(told[key]) for told in runs[who]), default=None) if who in runs else None

    count = runs["ours"][0]["passages"]
    ours, theirs = (count / took if (took := best(who, "cpu_s")) else None for who in ("ours", PEER))
    ratio = ours / theirs if ours and theirs else None
    query_ms = best("ours", "query_ms")
    figures = [
        Figure(f"passages_per_cpu_s ({runs['ours'][0]['name']})", ours, "passages/s", {"st": theirs}, {"st": ratio}),
        Figure("ratio_st", ratio, "x", aim=">= 2.5", met=None if ratio is None else ratio >= 2.5),
        Figure(
            "query_ms", query_ms, "ms", {"st": best(PEER, "query_ms")}, aim="<= 4", met=bool(query_ms and query_ms <= 4)
        ),
        Figure("query_p95_ms", best("ours", "query_p95_ms"), "ms", {"st": best(PEER, "query_p95_ms")}),
        Figure("query_cpu_ms", best("ours", "query_cpu_ms"), "ms", {"st": best(PEER, "query_cpu_ms")}),
    ]
    if PEER not in runs:
        return [*figures, Figure("cosine_min", None, ""), Figure("cosine_mean", None, "")]
    mine, plain = (np.load(home / f"{who}.npy", allow_pickle=False) for who in ("ours", PEER))
    cosines = (mine * plain).sum(1) / np.linalg.norm(plain, axis=1)
    least = float(cosines.min())
    return [
        *figures,
        Figure("cosine_min", least, "", aim=">= .9995", met=least >= 0.9995),
        Figure("cosine_mean", float(cosines.mean()), ""),
    ]


def served(settings: "Settings", corpus: Path | None, seconds: float, report: Report) -> Figure:
    """Searches a second over HTTP with eight clients; no question is asked twice, so no cached vector helps."""
    from load.closed_loop import Request
    from tidegate import ending, starting
    from tidegate.bench import bench_arguments, bench_index, measured, served_settings

    chosen = served_settings(settings, corpus)
    version, asked = bench_index(chosen, corpus, report)
    there = starting.launch(chosen, bench_arguments(chosen), lambda _: report("starting the graph", 0, 0))
    try:
        bodies = [json.dumps({"query": text, "k": 10, "rerank": False}).encode() for text in asked]
        result = measured(there.url, [Request("/v1/search", body) for body in bodies], 8, seconds, report)
    finally:
        ending.end(chosen, there)
    note(f"/v1/search over {version.chunks} passages, {len(result.failures)} requests failed")
    rate = None if result.failures else result.requests_per_s
    return Figure("rps_c8", rate, "requests/s", aim=">= 100", met=None if rate is None else rate >= 100)
