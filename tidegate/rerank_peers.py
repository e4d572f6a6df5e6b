"""One contender of `tidegate bench rerank` in a process of its own: `python -m tidegate.rerank_peers WHO JOB THREADS`.

Every contender reads the same question-passage lists with the same number of threads and says what it took, in seconds
of the CPU and of the clock, and what it scored. Peers are run as their own documentation says, ours as it is served.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from domain.errors import BadRequest
from domain.types import Chunk, Hit, SourceRef
from tidegate.console import say_json_line

Lists = list[tuple[str, list[str]]]  # a question with its passages
Told = dict[str, Any]  # a JSON object
AT_ONCE = 8


def main(who: str, job: Path, threads: int) -> Told:
    """What contender `who` took for the lists in `job`, and their scores."""
    given = json.loads(job.read_text("utf-8"))
    lists: Lists = [(entry["question"], entry["passages"]) for entry in given["lists"]]
    return CONTENDERS[who](Path(given["model"]), lists, threads)


def ours(model: Path, lists: Lists, threads: int) -> Told:
    """The engine, one request at a time and eight at a time. Passages were cut when the version was built."""
    from retrieval.opening import open_engine

    engine = open_engine(model, threads=threads, remembered=0)
    requests = [(question, _hits(passages, engine)) for question, passages in lists]

    async def alone() -> Told:
        return await _each(engine.read, requests, 1)

    async def crowd() -> Told:
        return await _each(engine.read, requests, AT_ONCE)

    asyncio.run(_each(engine.read, requests[:1], 1))
    told, eight = asyncio.run(alone()), asyncio.run(crowd())
    engine.check()
    facts = {
        "tag": engine.tag,
        "useful_share": engine.ran.tokens / engine.ran.padded_tokens,
        "crowd_wall_s": eight["wall_s"],
        "crowd_p95_s": eight["p95_s"],
        "apart": float(np.abs(np.array(told["scores"]) - np.array(eight["scores"])).max()),
    }
    engine.close()
    return told | facts


def onnx(model: Path, lists: Lists, threads: int) -> Told:
    """ONNX Runtime in float32 by hand: pairs cut at the request, sorted by length, in small batches."""
    from retrieval.cross_encoder import CrossEncoder
    from retrieval.pair_requests import Reading
    from retrieval.runtimes import Choice

    encoder = CrossEncoder(model, Choice("onnx", "float32", "cpu", threads))

    async def read(question: str, hits: Sequence[Hit]) -> Reading:
        return Reading(tuple(encoder.score(question, hits)), 0)

    requests = [(question, _hits(passages)) for question, passages in lists]
    asyncio.run(_each(read, requests[:1], 1))
    return asyncio.run(_each(read, requests, 1))


def sentence_transformers(model: Path, lists: Lists, batch: int | None = None) -> Told:
    """`CrossEncoder.predict` with its defaults, or with batches of `batch`; in float32, the oracle of the scores."""
    from sentence_transformers import CrossEncoder

    encoder = CrossEncoder(str(model), device="cpu", local_files_only=True)
    more = {} if batch is None else {"batch_size": batch}
    from retrieval.pair_requests import Reading

    async def read(question: str, hits: Sequence[Hit]) -> Reading:
        pairs = [(question, hit.chunk.text) for hit in hits]
        scores = encoder.predict(pairs, show_progress_bar=False, activation_fn=_raw, **more)
        return Reading(tuple(map(float, scores)), 0)

    requests = [(question, _hits(passages)) for question, passages in lists]
    asyncio.run(_each(read, requests[:1], 1))
    return asyncio.run(_each(read, requests, 1))


def best_sentence_transformers(model: Path, lists: Lists, threads: int) -> Told:  # noqa: ARG001
    """As above with the batch size, of four that are tried on a tenth of the lists, which suits this machine best."""
    few = lists[: max(1, len(lists) // 10)]
    speeds = {batch: -sentence_transformers(model, few, batch)["cpu_s"] for batch in (4, 8, 16, 64)}
    best = max(speeds, key=lambda batch: speeds[batch])
    return sentence_transformers(model, lists, best) | {"batch": best}


async def _each(
    read: Callable[[str, Sequence[Hit]], Awaitable[Any]],  # Any: a Reading
    requests: Sequence[tuple[str, tuple[Hit, ...]]],
    at_once: int,
) -> Told:
    """All requests, `at_once` at a time: seconds of the CPU and of the clock, the slowest but 5 %, and every score."""
    scores: list[list[float]] = [[] for _ in requests]
    took: list[float] = []
    waiting = iter(range(len(requests)))

    async def client() -> None:
        for place in waiting:
            began = time.perf_counter()
            reading = await read(*requests[place])
            took.append(time.perf_counter() - began)
            scores[place] = list(reading.logits)

    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(client() for _ in range(at_once)))
    return {
        "pairs": sum(len(hits) for _, hits in requests),
        "cpu_s": time.process_time() - cpu,
        "wall_s": time.perf_counter() - wall,
        "p95_s": float(np.quantile(took, 0.95)),
        "scores": scores,
    }


def _hits(passages: Sequence[str], engine: Any = None) -> tuple[Hit, ...]:  # Any: a PairEngine, imported where needed
    source, readers = SourceRef("d", "", "", "", ""), frozenset({"public"})
    hits = tuple(
        Hit(Chunk(f"d#{i}", text, i, "", source, "bench", readers), 0.0, i + 1, "bench")
        for i, text in enumerate(passages)
    )
    if engine is None:
        return hits
    return tuple(replace(hit, tokens=engine.tokens_of(hit)) for hit in hits)


def _raw(logits: Any) -> Any:  # torch.Tensor, which only the peer knows
    return logits


CONTENDERS: dict[str, Callable[[Path, Lists, int], Told]] = {
    "ours": ours,
    "onnx": onnx,
    "sentence_transformers": lambda model, lists, _: sentence_transformers(model, lists),
    "sentence_transformers_best": best_sentence_transformers,
}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in CONTENDERS:
        raise BadRequest(f"Name one of {', '.join(CONTENDERS)}, a job file and a number of threads.", "who")
    say_json_line(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
