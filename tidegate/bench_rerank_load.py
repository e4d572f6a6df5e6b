"""`tidegate bench rerank-load`: what the engine gives on one device, and how long 50 pairs take below saturation.

In one process and without HTTP, so that the device is what is measured. Passages are text of the generated library, cut
when a version is built and of about 180 tokens with the question. load/reranker_bench.py runs this on a GPU machine.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from domain.errors import ConfigError
from domain.types import Chunk, Hit, PassageTokens, SourceRef
from tidegate.bench_lines import Figure, told
from tidegate.config import AsJson
from tidegate.console import Code, complain
from tidegate.progress import progress

if TYPE_CHECKING:
    from retrieval.pair_engine import PairEngine

PASSAGES = 50  # a request
MEAN_TOKENS, DEVIATION = 150, 40  # of a passage: with question and special tokens about 180
LOAD = 0.7  # of saturation
GOALS = {"cuda": 60_000.0}  # pairs a second of the MiniLM-L6 shape
USEFUL = 0.85

Request = tuple[str, tuple[Hit, ...]]


def rerank_load(
    device: Annotated[Literal["cpu", "cuda"], typer.Option(help="Where the model runs.")] = "cpu",
    pairs: Annotated[
        int | None, typer.Option(min=100, max=10_000_000, help="Pairs to read; 2,000, or 200,000 on cuda.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, max=120, help="Seconds of the open loop.")] = 30.0,
    model: Annotated[
        Path | None, typer.Option(help="Cross-encoder folder; the bundled MiniLM with a made-up head when left out.")
    ] = None,
    as_json: AsJson = False,
) -> Code:
    """Measure the pair engine of one device under load.

    Saturation, padding, tail latency at 70 % of it, parity with float32.
    """
    from retrieval.opening import open_engine
    from retrieval.torch_runtime import torch_on
    from tidegate.bench_rerank_model import made_up

    if device != "cpu":
        try:
            torch_on(device, "bfloat16", 1)
        except ConfigError as error:
            complain(str(error))
            return told([Figure("saturation_pairs_per_s", None, "pairs/s")], as_json)
    with TemporaryDirectory(prefix="tidegate-bench-") as scratch, progress() as report:
        report("loading the model", 0, 0)
        folder = model or made_up(Path(scratch) / "model")
        engine = open_engine(folder, device=device, remembered=0)
        requests = made_requests(engine, (pairs or (200_000 if device == "cuda" else 2_000)) // PASSAGES)
        report("saturation", 0, 0)
        asyncio.run(_closed(engine, requests[: max(2, len(requests) // 10)]))  # every shape is prepared
        before = (engine.ran.tokens, engine.ran.padded_tokens)
        took_s = asyncio.run(_closed(engine, requests))
        useful = (engine.ran.tokens - before[0]) / (engine.ran.padded_tokens - before[1])
        saturation = len(requests) * PASSAGES / took_s
        report(f"{LOAD:.0%} of saturation", 0, 0)
        latencies = asyncio.run(_open(engine, requests, LOAD * saturation / PASSAGES, seconds))
        report("float32", 0, 0)
        figures = _figures(device, saturation, useful, latencies) + _parity(engine, folder, device, requests[:20])
        engine.close()
    return told(figures, as_json)


def made_requests(engine: "PairEngine", count: int, seed: int = 0) -> list[Request]:
    """Questions of the generated library, each with 50 passages whose lengths are drawn around 150 tokens."""
    import numpy as np

    from eval.factgraph import generate

    library = generate(seed, 100, 200)
    source, readers = SourceRef("d", "", "", "", ""), frozenset({"public"})
    text = "\n".join(document.text for document in library.documents)
    whole = engine.tokens_of(Hit(Chunk("d#0", text, 0, "", source, "bench", readers), 0.0, 1, "bench"))
    ids = np.frombuffer(whole.ids, "<i4")
    questions = [question.query for question in library.questions]
    rng = np.random.default_rng(seed)

    def passage(place: int) -> Hit:
        length = int(np.clip(rng.normal(MEAN_TOKENS, DEVIATION), 16, 400))
        start = int(rng.integers(0, len(ids) - length))
        tokens = PassageTokens(whole.stamp, ids[start : start + length].tobytes())
        return Hit(Chunk(f"d#{place}", "", place, "", source, "bench", readers), 0.0, place + 1, "bench", tokens=tokens)

    return [(questions[i % len(questions)], tuple(passage(p) for p in range(PASSAGES))) for i in range(count)]


async def _closed(engine: "PairEngine", requests: Sequence[Request], clients: int = 32) -> float:
    """Seconds for all requests with so many in flight."""
    waiting = iter(requests)

    async def client() -> None:
        for question, hits in waiting:
            await engine.read(question, hits)

    began = perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return perf_counter() - began


async def _open(engine: "PairEngine", requests: Sequence[Request], rate: float, seconds: float) -> list[float]:
    """Milliseconds of each request, counted from when it was due; arrivals are random at `rate` a second (Poisson)."""
    import numpy as np

    due_s = np.cumsum(np.random.default_rng(1).exponential(1 / rate, max(20, int(rate * seconds))))
    began = perf_counter()

    async def one(due: float, request: Request) -> float:
        await asyncio.sleep(max(0.0, began + due - perf_counter()))
        await engine.read(*request)
        return 1000 * (perf_counter() - began - due)

    return list(await asyncio.gather(*(one(float(due), requests[i % len(requests)]) for i, due in enumerate(due_s))))


def _figures(device: str, saturation: float, useful: float, latencies: Sequence[float]) -> list[Figure]:
    import numpy as np

    goal = GOALS.get(device)
    p50, p99 = (float(np.quantile(latencies, share)) for share in (0.5, 0.99))
    aim, met = ("", None) if goal is None else (f">= {goal:g}", saturation >= goal)
    return [
        Figure("saturation_pairs_per_s", saturation, "pairs/s", aim=aim, met=met),
        Figure("useful_share", useful, "tokens that are not padding", aim=f">= {USEFUL:g}", met=useful >= USEFUL),
        Figure("p99_ms_at_70", p99, "ms for 50 pairs", {"p50": p50, "requests": float(len(latencies))}),
    ]


def _parity(engine: "PairEngine", folder: Path, device: str, requests: Sequence[Request]) -> list[Figure]:
    """Against the same model in float32 on torch."""
    from retrieval.opening import open_engine
    from tidegate.bench_rerank import parity

    plain = open_engine(folder, runtime="torch", dtype="float32", device=device, remembered=0)
    scores = [[list(one.score(*request)) for request in requests] for one in (engine, plain)]
    plain.close()
    return parity(*scores)
