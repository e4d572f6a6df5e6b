"""`tidegate bench retrieve`: how time and memory of a hybrid search grow with the library.

Text is that of bench_texts.py, a passage a text, and vectors are those of bench_vectors.py: encoding a question takes
next to no time here, so add the encoder's own to every latency. Each size is built and opened as any version is, and
searched in a process of its own whose memory is told.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest
from domain.types import Document, Query, Scope
from tidegate.bench_build import status_mb
from tidegate.bench_lines import Figure, told
from tidegate.bench_texts import questions, short_texts
from tidegate.config import AsJson
from tidegate.console import Code, loaded
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from tidegate.settings import Settings

CUTOFF = 10
READER = Scope("default", frozenset({"public"}))


@dataclass(frozen=True, slots=True)
class Searched:
    """What searching one size took. Memory is that of the searching process: all of it, and what the index added."""

    chunks: int
    p50_ms: float
    p95_ms: float
    resident_mb: float | None
    index_mb: float | None
    build_s: float


def retrieve(
    ctx: typer.Context,
    chunks: Annotated[str, typer.Option(help="Sizes of the library in passages, comma separated.")] = (
        "5000,50000,500000"
    ),
    queries: Annotated[int, typer.Option(min=10, max=1_000, help="Queries, each asked twice, the second timed.")] = 200,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of the growth to this PNG file.")] = None,
    as_json: AsJson = False,
) -> Code:
    """Measure hybrid search as the library grows.

    The p50, p95 and memory at each size. Ten passages a search, everything visible, one client, one thread, the dense
    arm of the settings.
    """
    settings, asked = loaded(ctx).settings, questions(queries)
    with progress() as report:
        searched = [measured(settings, size, asked, report) for size in sizes(chunks)]
    if plot is not None:
        from eval.plots import growth, png

        plot.write_bytes(
            png(growth([(s.chunks, s.p50_ms, s.p95_ms, s.resident_mb) for s in searched], "hybrid search"))
        )
    return told(figures(searched), as_json)


def sizes(text: str) -> list[int]:
    """The sizes, ascending. Raises BadRequest for what is none."""
    wrong = [word for word in text.split(",") if not word.strip().isdecimal() or not 100 <= int(word) <= 20_000_000]
    if wrong:
        raise BadRequest(f"--chunks {text}: {wrong[0]!r} is no number from 100 to 20000000.", "chunks")
    return sorted({int(word) for word in text.split(",")})


def figures(searched: Sequence[Searched]) -> list[Figure]:
    """Four figures a size, and the power of the size with which the median grows from the smallest to the largest."""
    found = [
        figure
        for s in searched
        for figure in (
            Figure(f"p50_ms_{s.chunks}", s.p50_ms, "ms"),
            Figure(f"p95_ms_{s.chunks}", s.p95_ms, "ms"),
            Figure(f"resident_mb_{s.chunks}", s.resident_mb, "MB", {"index": s.index_mb}),
            Figure(f"build_s_{s.chunks}", s.build_s, "s"),
        )
    ]
    if len(searched) > 1:
        first, last = searched[0], searched[-1]
        power = log(last.p50_ms / first.p50_ms) / log(last.chunks / first.chunks)
        found.append(Figure("growth", power, "power of the size (1: in proportion)"))
    return found


def measured(settings: "Settings", chunks: int, asked: Sequence[str], report: Report) -> Searched:
    """A library of so many passages, built, opened and searched."""
    import numpy as np

    with TemporaryDirectory(prefix="tidegate-bench-") as place:
        report(f"building {chunks} passages", 0, 0)
        began = perf_counter()
        version = _build(settings, Path(place), chunks)
        build_s = perf_counter() - began
        report(f"searching {chunks} passages", 0, 0)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            times, resident_mb, before_mb = pool.apply(search, (settings, Path(place), version, asked))
    index_mb = None if resident_mb is None or before_mb is None else resident_mb - before_mb
    p50, p95 = np.percentile(times, (50, 95)).tolist()
    return Searched(chunks, p50, p95, resident_mb, index_mb, build_s)


def _build(settings: "Settings", place: Path, chunks: int) -> str:
    from retrieval.building import build
    from retrieval.dense_choice import part
    from tidegate.bench_vectors import WordSums
    from tidegate.compose import make_registry

    registry = make_registry(settings.model_copy(update={"data_dir": place}))
    report = build(
        _documents(chunks),
        embedder=WordSums(),
        registry=registry,
        staging=place / "staging",
        chunker="whole",
        extra=(part(settings.retrieval.dense),),
    )
    return report.version.id


def _documents(chunks: int) -> Iterator[Document]:
    """A document a passage; the number makes every text another one."""
    for i, text in enumerate(short_texts(chunks)):
        yield Document(f"{i:08}", "", f"{text} N{i}.", "", "", "", READER.groups, READER.tenant, "")


def search(
    settings: "Settings", place: Path, version: str, asked: Sequence[str]
) -> tuple[list[float], float | None, float | None]:
    """Milliseconds of each search, resident MB after them, and before the version was opened."""
    from tidegate.bench_vectors import WordSums
    from tidegate.compose import open_index

    before_mb = status_mb("VmRSS")
    index = open_index(settings.model_copy(update={"data_dir": place}), WordSums(), version)
    times = []
    for timed in (False, True):
        for text in asked:
            began = perf_counter()
            index.search(Query(text), READER, CUTOFF)
            if timed:
                times.append(1000 * (perf_counter() - began))
    return times, status_mb("VmRSS"), before_mb
