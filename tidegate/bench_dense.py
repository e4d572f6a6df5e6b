"""`tidegate bench dense`: every dense arm and what a user would pick instead, under readers who see less and less.

recall@10 is against the exact arm over the same visible rows. Queries are asked one at a time on one thread, each once.
The vectors are made up so that they are as hard as those of MiniLM are (`like_minilm`), or a file of your own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.errors import BadRequest
from tidegate.bench_lines import Figure, told
from tidegate.config import AsJson
from tidegate.console import Code
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from retrieval.arms import DenseArm, Visible

    Vectors = NDArray[np.float32]
    Search = Callable[[Vectors, int], NDArray[np.int64]]

SHARES = {"100%": 1.0, "10%": 0.1, "1%": 0.01, "0.1%": 0.001}  # of the rows are visible, drawn at random
AIM = 0.99
CUTOFF, WARM_UP = 10, 10
TOPICS_PER_ROOT, SPREAD, FALLS_OVER = 6, 1.2, 80  # see like_minilm


def dense(
    vectors: Annotated[int, typer.Option(min=1_000, max=10_000_000, help="Vectors to search.")] = 100_000,
    dimensions: Annotated[int, typer.Option(min=8, max=8192, help="Their length.")] = 384,
    queries: Annotated[int, typer.Option(min=10, max=100_000, help="Queries, each asked once a reader.")] = 200,
    asked: Annotated[int, typer.Option(min=10, max=10_000, help="Hits asked for; a hybrid search asks for 100.")] = 10,
    data: Annotated[
        str, typer.Option(help="minilm, gaussian (the hard case, without an aim), or a .npy file of unit rows.")
    ] = "minilm",
    kinds: Annotated[str, typer.Option(help="Arms to measure, comma separated.")] = "exact,faiss,codes,ivf,hnsw",
    as_json: AsJson = False,
) -> Code:
    """Measure the dense arms: recall, latency, memory.

    Recall@10 is against exact, latency by visible share. Beside each stand plain FAISS indexes with a bitmap selector,
    built and searched in the same process.
    """
    from retrieval.dense_choice import DENSE
    from tidegate.bench_dense_peers import peers

    names = [name.strip() for name in kinds.split(",") if name.strip()]
    if unknown := [name for name in names if name not in DENSE]:
        raise BadRequest(f"--kinds {unknown[0]} is not known: use {', '.join(DENSE)}.", "kinds")
    with progress() as report:
        report("making vectors", 0, 0)
        sample = sampled(*made(data, vectors, dimensions, queries), asked)
        beside = {name: _peer(name, build, sample, report) for name, build in peers(sample.vectors).items()}
        found = [
            figure
            for name in names
            for figure in figures(name, _arm(name, sample, report), beside, aimed=data != "gaussian")
        ]
    return told(found, as_json)


# ---------------------------------------------------------------------------------------------- vectors


def made(data: str, vectors: int, dimensions: int, queries: int) -> "tuple[Vectors, Vectors]":
    """Unit rows to search and unit queries that are not among them. Raises BadRequest for a file that holds neither."""
    import numpy as np

    if data == "minilm":
        both = like_minilm(vectors + queries, dimensions, seed=7)
    elif data == "gaussian":
        both = _unit(np.random.default_rng(7).standard_normal((vectors + queries, dimensions), np.float32))
    else:
        try:
            rows = np.load(Path(data), mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise BadRequest(
                f"--data {data} cannot be read ({error}): use minilm, gaussian or a .npy file.", "data"
            ) from error
        if rows.ndim != 2 or len(rows) < 10 * queries:
            raise BadRequest(f"--data {data} is {rows.shape}: at least {10 * queries} rows are wanted.", "data")
        both = _unit(np.random.default_rng(7).permutation(np.asarray(rows[: vectors + queries], np.float32)))
    return np.ascontiguousarray(both[:-queries]), np.ascontiguousarray(both[-queries:])


def like_minilm(n: int, dimensions: int, seed: int) -> "Vectors":
    """float32 [n, dimensions], unit rows: topics of unequal size in a space whose later directions hardly vary.

    Set so that an inverted file finds the same share of neighbours as on 17,000 vectors of real passages: .95 with an
    eighth of its lists and .98 with a quarter, where gaussian rows give .37 and .60. Topics grow with the root of n.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    topics = max(1, round(TOPICS_PER_ROOT * n**0.5))
    deviation = np.exp(-np.arange(dimensions, dtype=np.float32) / (2 * FALLS_OVER))
    sizes = np.arange(1, topics + 1) ** -0.5
    turned = np.linalg.qr(rng.standard_normal((dimensions, dimensions)))[0].astype(np.float32)
    centres = rng.standard_normal((topics, dimensions), np.float32) * deviation
    rows = rng.standard_normal((n, dimensions), np.float32) * (SPREAD * deviation)
    rows += centres[rng.choice(topics, n, p=sizes / sizes.sum())]
    return _unit(rows @ turned)


def _unit(rows: "NDArray[np.floating[Any]]") -> "Vectors":
    import numpy as np

    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


# ---------------------------------------------------------------------------------------------- measuring


@dataclass(frozen=True, slots=True)
class Sample:
    """What every index is measured on."""

    vectors: "Vectors"
    queries: "Vectors"
    readers: "Mapping[str, Visible]"  # by visible share
    truth: "Mapping[str, list[NDArray[np.int64]]]"  # by visible share: the nearest visible rows of each query
    asked: int


@dataclass(frozen=True, slots=True)
class Measured:
    """One index: by visible share recall@10, p50 and p95 in ms and the median of the CPU time, which other work on the
    machine hardly changes; MiB held beside the mapped vectors, seconds to build.

    A reader who sees nothing has no recall, which is not 0.
    """

    recall: Mapping[str, float | None]
    p50_ms: Mapping[str, float]
    p95_ms: Mapping[str, float]
    cpu_ms: Mapping[str, float]
    memory_mb: float
    build_s: float


def sampled(vectors: "Vectors", queries: "Vectors", asked: int) -> Sample:
    """The sample over these vectors: a reader per share, and what an exact search finds for each of them."""
    import numpy as np

    from retrieval.arms import Visible
    from retrieval.faiss_arm import FaissArm

    rng, exact = np.random.default_rng(11), FaissArm(vectors)  # equal to the numpy arm bit for bit, and faster
    readers = {name: Visible(rng.random(len(vectors)) < share) for name, share in SHARES.items()}
    truth = {name: [exact.search(query, CUTOFF, v).rows for query in queries] for name, v in readers.items()}
    return Sample(vectors, queries, readers, truth, asked)


def _arm(kind: str, made_of: "Sample", report: Report) -> Measured:
    """One of our arms, made now from nothing but the vectors."""
    from retrieval.dense_choice import Opening, open_dense

    report(f"building {kind}", 0, 0)
    start = perf_counter()
    arm: Any = open_dense(kind, Opening(made_of.vectors, Path("no folder of a version")))
    build_s = perf_counter() - start
    report(f"searching {kind}", 0, 0)
    searches = {name: partial(_rows_of, arm, visible) for name, visible in made_of.readers.items()}
    return _measured(searches, made_of, _beside_mb(arm, made_of.vectors), build_s)


def _beside_mb(arm: Any, vectors: "Vectors") -> float:  # any arm; each holds something else
    """MiB that an arm holds, or maps, beside the vectors."""
    from tidegate.bench_dense_peers import size_mb

    if arm.name == "ivf":
        return float(arm.lists.centroids.nbytes + arm.lists.starts.nbytes + arm.lists.rows.nbytes) / 2**20
    if arm.name == "gpu":
        return vectors.nbytes / 2**20  # of the device
    index = {"codes": "codes", "hnsw": "graph"}.get(arm.name)
    return size_mb(getattr(arm, index)) if index else 0.0


def _rows_of(arm: "DenseArm", visible: "Visible", query: "Vectors", n: int) -> "NDArray[np.int64]":
    return arm.search(query, n, visible).rows


def _peer(name: str, build: Callable[[], Any], made_of: "Sample", report: Report) -> Measured:
    """One plain FAISS index."""
    from tidegate.bench_dense_peers import search, size_mb

    report(f"building {name}", 0, 0)
    start = perf_counter()
    index = build()
    build_s = perf_counter() - start
    report(f"searching {name}", 0, 0)
    searches = {share: search(name, index, visible.mask) for share, visible in made_of.readers.items()}
    return _measured(searches, made_of, size_mb(index), build_s)


def _measured(searches: "Mapping[str, Search]", made_of: "Sample", memory_mb: float, build_s: float) -> Measured:
    """Every query asked of every reader's search, after a few that are not counted: the first one prepares a reader."""
    import numpy as np

    recall, p50_ms, p95_ms, cpu_ms = {}, {}, {}, {}
    for share, search in searches.items():
        for query in made_of.queries[:WARM_UP]:
            search(query, made_of.asked)
        took_ms, spent_ms, found = [], [], 0.0
        for query, nearest in zip(made_of.queries, made_of.truth[share], strict=True):
            start, began = perf_counter(), process_time()
            rows = search(query, made_of.asked)
            took_ms.append((perf_counter() - start) * 1000)
            spent_ms.append((process_time() - began) * 1000)
            found += np.isin(nearest, rows[:CUTOFF]).sum() / max(1, nearest.size)
        seeing = sum(nearest.size > 0 for nearest in made_of.truth[share])
        recall[share] = float(found) / seeing if seeing else None
        p50_ms[share], p95_ms[share] = (float(np.percentile(took_ms, p)) for p in (50, 95))
        cpu_ms[share] = float(np.median(spent_ms))
    return Measured(recall, p50_ms, p95_ms, cpu_ms, memory_mb, build_s)


# ---------------------------------------------------------------------------------------------- figures


def figures(kind: str, ours: Measured, peers: Mapping[str, Measured], aimed: bool) -> list[Figure]:
    """What one arm came to, beside each peer; the aim holds for every share of recall@10."""
    found = []
    for share in ours.recall:
        value = ours.recall[share]
        found.append(
            Figure(
                f"{kind}_recall@{CUTOFF}_{share}",
                value,
                "share",
                {name: peer.recall[share] for name, peer in peers.items()},
                aim=f"at least {AIM}" if aimed else "",
                met=value >= AIM if aimed and value is not None else None,
            )
        )
    for what in ("p50_ms", "p95_ms", "cpu_ms"):
        for share, took_ms in getattr(ours, what).items():
            theirs = {name: getattr(peer, what)[share] for name, peer in peers.items()}
            ratio = {name: value / took_ms for name, value in theirs.items()}
            found.append(Figure(f"{kind}_{what}_{share}", took_ms, "ms", theirs, ratio))
    for what, unit in (("memory_mb", "MiB"), ("build_s", "s")):
        found.append(
            Figure(f"{kind}_{what}", getattr(ours, what), unit, {n: getattr(p, what) for n, p in peers.items()})
        )
    return found
