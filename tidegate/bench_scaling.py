"""`tidegate bench scaling`: the constants from which the needs of a large library are computed, and what they come to.

Bytes, memory and milliseconds are measured on a library that is built here and cut into shards; the rows for other
sizes are computed by sizing.py and say so. Text and vectors are made up as in bench_retrieve.py.
"""

import asyncio
import multiprocessing
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, thread_time
from typing import Annotated, Any

import typer

from domain.amending import NOTHING_AMENDED
from tidegate.bench_lines import Figure, told
from tidegate.config import AsJson
from tidegate.console import Code
from tidegate.progress import Report, progress
from tidegate.sizing import Constants, Machine, Need, need

SIZES = {"10M": 10e6, "100M": 100e6, "1B": 1e9}
KEPT = ("chunks.jsonl", "texts.npy", "tokens/", "manifest.json")  # read for hits, for builds, or once
CUTOFF, TEXTS_PER_CHUNK = 50, 4  # of some thirty words each

Chunks = Annotated[int, typer.Option(min=1000, max=5_000_000, help="Passages of the library that is measured.")]
Shards = Annotated[int, typer.Option(min=2, max=64, help="Shards it is cut into.")]


@dataclass(frozen=True, slots=True)
class Searched:
    """Milliseconds of a core for one search in one index, and bytes of the process that the index added."""

    ms: float
    heap_bytes: float | None
    process_mb: float | None


def scaling(
    chunks: Chunks = 50_000,
    shards: Shards = 4,
    embed_ms: Annotated[float, typer.Option(min=0, help="Milliseconds to embed one question.")] = 4.0,
    hop_ms: Annotated[float, typer.Option(min=0, help="Milliseconds for one call to a replica and back.")] = 2.0,
    within_ms: Annotated[float, typer.Option(min=1, help="Milliseconds that one search may take.")] = 100.0,
    replicas: Annotated[int, typer.Option(min=1, max=100, help="Replicas of each shard.")] = 2,
    memory_gb: Annotated[float, typer.Option(min=1, help="Memory of a rented machine.")] = 64.0,
    cores: Annotated[int, typer.Option(min=1, max=1024, help="Cores of a rented machine.")] = 16,
    price: Annotated[float, typer.Option(min=0, help="Price of one machine for an hour; 0 tells hours alone.")] = 0.0,
    as_json: AsJson = False,
) -> Code:
    """Compute what large libraries need, from measured costs.

    Measures what a chunk and a shard cost; computes 10 million to a billion chunks. The computed rows are extrapolated,
    in proportion; docs/scaling.md says what that leaves out.
    """
    with TemporaryDirectory(prefix="tidegate-bench-") as place, progress() as report:
        constants, figures = measured(Path(place), chunks, shards, embed_ms, report)
    machine = Machine(memory_gb, cores, hop_ms, price)
    for name, size in SIZES.items():
        figures += _computed(name, need(size, constants, machine, within_ms, replicas))
    return told(figures, as_json)


def measured(place: Path, chunks: int, shards: int, embed_ms: float, report: Report) -> tuple[Constants, list[Figure]]:
    """The constants, and the figures that tell them."""
    from retrieval.building import build
    from retrieval.registry import FolderRegistry
    from retrieval.sharding import shard_folder
    from tidegate.bench_vectors import WordSums

    report(f"building {chunks} passages", 0, 0)
    registry = FolderRegistry(place / "registry")
    made = build(_documents(chunks), embedder=WordSums(), registry=registry, staging=place / "staging", chunker="whole")
    whole = registry.folder(made.version.id)
    began = perf_counter()
    folders = []
    for number in range(shards):
        report("cutting shards", number, shards)
        folders.append(shard_folder(whole, place / "shards", number, shards))
    cut_s = perf_counter() - began
    report("searching", 0, 0)
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:  # a process each
        of_whole, of_shard = pool.apply(searched, (whole,)), pool.apply(searched, (folders[0],))
        own_ms, merge_ms, sent_kb = pool.apply(together, (folders,))
        _, one_merge_ms, _ = pool.apply(together, ([whole],))
    part = chunks / shards
    slope = max(0.0, (of_whole.ms - of_shard.ms) / (chunks - part))  # a core's ms per chunk
    merge_slope = max(0.0, merge_ms - one_merge_ms) / (shards - 1)
    heap = heap_slope(of_whole, of_shard, chunks - part)  # caches and libraries are in both, and fall out
    process_mb = (of_shard.process_mb or 0.0) + (of_shard.heap_bytes or 0.0) / 1e6 - (heap or 0.0) * part / 1e6
    searched_bytes, kept_bytes = _bytes(whole, chunks)
    constants = Constants(
        searched_bytes,
        kept_bytes,
        heap or 0.0,
        process_mb,
        max(0.0, own_ms - slope * part),
        slope * 1e6,
        max(0.0, one_merge_ms - merge_slope),
        merge_slope,
        embed_ms,
    )
    return constants, [
        Figure("searched_bytes", searched_bytes, "bytes a chunk, read by every search"),
        Figure("kept_bytes", kept_bytes, "bytes a chunk, read for hits"),
        Figure("heap_bytes", heap, "bytes a chunk, of the process"),
        Figure(
            "process_mb",
            None if of_shard.process_mb is None else process_mb,
            "MB of a replica without any chunk, encoder not counted",
        ),
        Figure("cut_ms_per_1000", 1e6 * cut_s / (shards * part), "ms per 1,000 chunks of a shard"),
        Figure("search_ms", of_whole.ms, "ms of a core, one index", {f"one of {shards} shards": of_shard.ms}),
        Figure("shard_ms", own_ms, "ms of a core, all rounds of one shard"),
        Figure("ms_per_million", constants.ms_per_million, "ms of a core per million chunks of a shard"),
        Figure("fixed_ms", constants.fixed_ms, "ms of a core, a shard however small"),
        Figure("merge_ms", constants.merge_ms, "ms at the gateway, however few shards"),
        Figure("merge_ms_per_shard", constants.merge_ms_per_shard, "ms at the gateway, each further shard"),
        Figure("sent_kb_per_shard", sent_kb, "kB to and from a shard, one search"),
    ]


def heap_slope(whole: Searched, shard: Searched, chunks: float) -> float | None:
    """Bytes of the process that each chunk costs; None where this machine does not tell memory."""
    if whole.heap_bytes is None or shard.heap_bytes is None:
        return None
    return max(0.0, whole.heap_bytes - shard.heap_bytes) / chunks


def searched(folder: Path) -> Searched:
    """What a hybrid search of one index takes. Runs in a process of its own, so that its memory is the index's."""
    from domain.types import Query
    from retrieval.index import HybridIndex
    from tidegate.bench_build import status_mb
    from tidegate.bench_retrieve import READER
    from tidegate.bench_vectors import WordSums

    embedder, asked = WordSums(), _questions()
    before_mb, before_heap_mb = status_mb("VmRSS"), status_mb("RssAnon")
    index = HybridIndex.open(folder, embedder, dense="faiss")
    times = []
    for text in (*asked, *asked):
        began = thread_time()
        index.search(Query(text), READER, CUTOFF)
        times.append(1000 * (thread_time() - began))
    after_mb = status_mb("RssAnon")
    heap = None if after_mb is None or before_heap_mb is None else 1e6 * max(0.0, after_mb - before_heap_mb)
    return Searched(median(times[len(asked) :]), heap, before_mb)


def together(folders: Sequence[Path]) -> tuple[float, float, float]:
    """Of one search over all shards: milliseconds of one shard's rounds, of the gateway's part, and kB per shard.

    Everything is pickled on its way, as between processes; what Ray adds to a call is not in it.
    """
    return asyncio.run(_together(folders))


async def _together(folders: Sequence[Path]) -> tuple[float, float, float]:
    from domain.types import Query
    from retrieval.phases import recipe
    from retrieval.sharded import ShardedRetriever
    from tidegate.bench_retrieve import READER

    shards = [Timed(folder, number) for number, folder in enumerate(folders)]
    retriever, asked = ShardedRetriever(shards, recipe("convex"), limit_s=600.0), _questions()
    own, gateway, sent = [], [], []
    for text in (*asked, *asked):
        for shard in shards:
            shard.ms = shard.sent = 0.0
        began = thread_time()
        await retriever.retrieve(Query(text), READER, "any", CUTOFF)
        all_ms = 1000 * (thread_time() - began)
        own.append(median(shard.ms for shard in shards))
        gateway.append(max(0.0, all_ms - sum(shard.ms for shard in shards)))
        sent.append(sum(shard.sent for shard in shards) / len(shards) / 1000)
    half = len(asked)
    return median(own[half:]), median(gateway[half:]), median(sent[half:])


class Timed:
    """A shard in this very thread, with pickling: thread time is work, also on a busy machine."""

    def __init__(self, folder: Path, number: int) -> None:
        from retrieval.index import HybridIndex
        from tidegate.bench_vectors import WordSums

        self.name, self.ms, self.sent = f"retriever-{number}", 0.0, 0.0
        self.index = HybridIndex.open(folder, WordSums(), dense="faiss")

    def _step(self, work: Any, *arguments: Any) -> Any:  # Any: as the step has it
        there = pickle.dumps(arguments)
        began = thread_time()
        answer = pickle.dumps(work(*pickle.loads(there)))  # noqa: S301 - our own
        self.ms += 1000 * (thread_time() - began)
        self.sent += len(there) + len(answer)
        return pickle.loads(answer)  # noqa: S301 - our own

    async def survey(self, *question: Any) -> Any:
        from retrieval.shard_library import surveyed

        return self._step(lambda *of: surveyed(self.index, NOTHING_AMENDED, *of), question[0], question[1], question[3])

    async def shortlist(self, *question: Any) -> Any:
        from retrieval.shard_library import shortlisted

        asked, scope, _, vectors, statistics = question
        return self._step(lambda *of: shortlisted(self.index, NOTHING_AMENDED, *of), asked, scope, vectors, statistics)

    async def hits(self, *question: Any) -> Any:
        from retrieval.shard_library import hits_of

        return self._step(lambda *of: hits_of(self.index, NOTHING_AMENDED, *of), question[0], question[1])

    async def passages(self, *question: Any) -> Any:
        from retrieval.shard_library import chunks_of, viewed

        here = viewed(self.index, NOTHING_AMENDED)
        return here, self._step(lambda *of: chunks_of(self.index, NOTHING_AMENDED, *of), question[0], question[1])


def _documents(chunks: int) -> Iterator[Any]:  # Documents
    from domain.types import Document
    from tidegate.bench_retrieve import READER
    from tidegate.bench_texts import short_texts

    texts = short_texts(chunks * TEXTS_PER_CHUNK)
    for number in range(chunks):
        text = " ".join(islice(texts, TEXTS_PER_CHUNK))
        yield Document(f"{number:08}", "", f"{text} N{number}.", "", "", "", READER.groups, READER.tenant, "")


def _questions() -> list[str]:
    from tidegate.bench_texts import questions

    return questions(60)


def _bytes(folder: Path, chunks: int) -> tuple[float, float]:
    """Bytes a chunk in files that every search reads, and in others."""
    every = kept = 0
    for path in folder.rglob("*"):
        if path.is_file():
            name, size = path.relative_to(folder).as_posix(), path.stat().st_size
            every, kept = every + size, kept + (size if name.startswith(KEPT) else 0)
    return (every - kept) / chunks, kept / chunks


def _computed(name: str, of: Need) -> list[Figure]:
    return [
        Figure(f"shards_{name}", of.shards, f"shards of {of.chunks_per_shard} chunks (computed)"),
        Figure(f"memory_gb_{name}", of.memory_gb_per_shard, "GB in memory a shard (computed)"),
        Figure(f"disk_gb_{name}", of.disk_gb_per_shard, "GB on disk a shard (computed)"),
        Figure(f"machines_{name}", of.machines, "machines (computed)"),
        Figure(f"latency_ms_{name}", of.latency_ms, "ms a search, nobody waiting (computed)"),
        Figure(f"searches_per_s_{name}", of.searches_per_s, "searches a second (computed)"),
        Figure(f"machine_hours_{name}", of.machine_hours, "machine hours a month (computed)", {"price": of.cost}),
    ]
