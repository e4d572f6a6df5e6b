"""`tidegate bench rerank`: a cross-encoder of MiniLM's size over real passages, against what a user would run instead.

Each contender reads the same lists in a process of its own (rerank_peers.py), with one thread; the best of the rounds
counts, because a busy machine only ever makes things slower. With --serve also over HTTP, on all cores.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.bench_contenders import Told, contender
from tidegate.bench_lines import Figure, told
from tidegate.config import AsJson
from tidegate.console import Code, loaded, note
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from tidegate.settings import Settings

PASSAGES = 50  # a question
PASSAGE_TOKENS = 201  # 200 is the default, at which a collection keeps its own, longer passages
PEERS = {"st": "sentence_transformers", "st_best": "sentence_transformers_best", "ort": "onnx"}
AIMS = {"st": 5.0, "ort": 1.3}


def rerank(
    ctx: typer.Context,
    corpus: Annotated[
        Path | None, typer.Option(help="BEIR collection to read and ask; a generated library when left out.")
    ] = None,
    queries: Annotated[int, typer.Option(min=1, max=1000, help="Questions, each with 50 passages.")] = 10,
    model: Annotated[
        Path | None, typer.Option(help="Cross-encoder folder; the bundled MiniLM with a made-up head when left out.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=20, help="Times each contender reads everything.")] = 2,
    peers: Annotated[bool, typer.Option(help="Run the others too; their figures are missing otherwise.")] = True,
    serve: Annotated[bool, typer.Option("--serve", help="Also over HTTP: 50 passages, one client and eight.")] = False,
    as_json: AsJson = False,
) -> Code:
    """Measure reranking: speed, and whether order is kept.

    Pairs per second of CPU time, and the order of float32, for 50 passages of real text a question. Peers run in the
    same rounds with the same threads.
    """
    from tidegate.bench_rerank_model import made_up
    from tidegate.bench_rerank_served import served

    settings = loaded(ctx).settings
    with TemporaryDirectory(prefix="tidegate-bench-") as scratch, progress() as report:
        home = Path(scratch)
        folder = model or made_up(home / "model")
        lists = candidate_lists(settings, corpus, queries, report)
        job = home / "job.json"
        job.write_text(json.dumps({"model": str(folder), "lists": lists}), "utf-8")
        runs: dict[str, list[Told]] = {}
        for number in range(rounds):
            for name, who in {"ours": "ours", **(PEERS if peers else {})}.items():
                report(f"round {number + 1} of {rounds}: {who.replace('_', ' ')}", 0, 0)
                runs.setdefault(name, []).append(contender("tidegate.rerank_peers", who, job))
        figures = figures_of({name: max(done, key=speed) for name, done in runs.items()})
        if serve:
            figures += served(settings, corpus, folder, report)
    return told(figures, as_json)


def speed(done: Told) -> float:
    """Pairs per second of CPU time."""
    return float(done["pairs"] / done["cpu_s"])


def figures_of(best: dict[str, Told]) -> list[Figure]:
    """The figures of the best rounds; those of peers that were not run are None."""
    ours = best["ours"]
    there = {name: speed(best[name]) if name in best else None for name in PEERS}
    ratios = {name: speed(ours) / value if value else None for name, value in there.items()}
    reached = [ratios[name] >= aim if ratios[name] is not None else None for name, aim in AIMS.items()]  # type: ignore[operator]
    crowd, alone = ours["pairs"] / ours["crowd_wall_s"], ours["pairs"] / ours["wall_s"]
    return [
        Figure("pairs_per_cpu_s", speed(ours), "pairs/s", there, ratios),
        *(
            Figure(f"ratio_{name}", ratios[name], "x", aim=f">= {aim:g}", met=met)
            for (name, aim), met in zip(AIMS.items(), reached, strict=True)
        ),
        *parity(ours["scores"], best["st"]["scores"] if "st" in best else None),
        Figure("apart_in_a_crowd", ours["apart"], "logit"),
        Figure("useful_share", ours["useful_share"], "tokens that are not padding"),
        Figure("alone_p95_ms", 1000 * ours["p95_s"], "ms"),
        Figure("crowd_pairs_per_s", crowd, "pairs/s", {"alone": alone}, {"alone": crowd / alone}),
        Figure("crowd_p95_ms", 1000 * ours["crowd_p95_s"], "ms"),
    ]


def parity(ours: Sequence[Sequence[float]], plain: Sequence[Sequence[float]] | None) -> list[Figure]:
    """How far our order and scores are from those of float32, list by list; the worst list is given as a peer."""
    if plain is None:
        return [Figure(name, None, unit) for name, unit in (("spearman", ""), ("kendall", ""), ("max_apart", "logit"))]
    import numpy as np

    from eval.agreement import kendall, spearman

    pairs = list(zip(ours, plain, strict=True))
    ranks = [spearman(mine, theirs) for mine, theirs in pairs]
    orders = [kendall(mine, theirs) for mine, theirs in pairs]
    mean, order = float(np.mean(ranks)), float(np.mean(orders))
    spread = float(np.mean([np.std(theirs) for _, theirs in pairs]))
    return [
        Figure("spearman", mean, "", {"worst": min(ranks)}, aim=">= .999", met=mean >= 0.999),
        Figure("kendall", order, "", {"worst": min(orders)}, aim=">= .999", met=order >= 0.999),
        Figure(
            "max_apart",
            max(abs(a - b) for mine, theirs in pairs for a, b in zip(mine, theirs, strict=True)),
            "logit",
            {"deviation_of_a_list": spread},
        ),
    ]


def candidate_lists(settings: "Settings", corpus: Path | None, queries: int, report: Report) -> list[Told]:
    """Questions with the 50 passages that share most words with each."""
    import asyncio

    from domain.types import Mode, Query
    from retrieval.reranking import passage
    from tidegate.bench import bench_index
    from tidegate.compose import anonymous, make_library

    chosen = bench_settings(settings, corpus)
    version, asked = bench_index(chosen, corpus, report)

    async def found() -> list[Told]:
        library, reader, lists = make_library(chosen), anonymous(chosen), []
        await library.refresh()
        for question in asked:
            hits = (await library.retrieve(Query(question), reader, version.id, PASSAGES, Mode.LEXICAL)).hits
            if len(hits) == PASSAGES:  # a question with few words may have fewer
                lists.append({"question": question, "passages": [passage(hit.chunk) for hit in hits]})
            if len(lists) == queries:
                break
        library.close()
        return lists

    lists = asyncio.run(found())
    if len(lists) < queries:
        note(f"only {len(lists)} questions have {PASSAGES} passages: they are what is read")
    return lists


def bench_settings(settings: "Settings", corpus: Path | None) -> "Settings":
    """Settings of a library for this bench alone: nothing is embedded by a model, passages have 200 tokens."""
    home = settings.data_dir / "bench" / f"rerank-{corpus.resolve().name if corpus else 'generated'}"
    return settings.model_copy(
        update={
            "data_dir": home,
            "access": settings.access.model_copy(update={"mode": "open"}),
            "chunking": settings.chunking.model_copy(update={"strategy": "heading", "tokens": PASSAGE_TOKENS}),
            "embedding": settings.embedding.model_copy(update={"backend": "hashing"}),
            "rerank": settings.rerank.model_copy(update={"backend": "none"}),
        }
    )
