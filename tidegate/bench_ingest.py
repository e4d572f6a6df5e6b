"""`tidegate bench ingest`: how fast files become documents, and whether memory stays flat however many come.

The files are read again and again, each round as a build reads them, without cutting or embedding. Memory is that of
this process and of the one that reads files for it, after every round.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest, CorpusError
from tidegate.bench_lines import Figure, told
from tidegate.config import AsJson
from tidegate.console import Code, loaded, note
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from domain.types import Document
    from retrieval.documents import Corpus

PAGE_CHARS = 3000  # characters that count as a page where a file has no pages or slides of its own
FLAT = 1.10  # memory at the end against that after the first fifth of the rounds


@dataclass(frozen=True, slots=True)
class Round:
    """One reading of all files: seconds, and megabytes after it, here and in the process that reads."""

    seconds: float
    here_mb: float
    apart_mb: float


def ingest(
    ctx: typer.Context,
    corpus: Annotated[Path, typer.Option(help="Folder of files to read.", show_default=False)],
    rounds: Annotated[int, typer.Option(min=5, max=10_000, help="Times all of them are read.")] = 50,
    as_json: AsJson = False,
) -> Code:
    """Measure how fast files are read, and memory over time.

    A page is a page of a PDF, a slide, or 3,000 characters of anything else.
    """
    from retrieval.documents import Corpus
    from tidegate.compose_ingestion import limits_of

    settings = loaded(ctx).settings
    if not corpus.exists():
        raise CorpusError(f"Corpus {corpus} does not exist: name a folder of documents.")
    documents = Corpus(corpus, "folder", frozenset({"public"}), settings.access.tenant, limits_of(settings))
    read = list(documents)  # the first reading starts the process and loads what it needs
    if not read:
        raise BadRequest(f"{corpus} has no file that can be read: name another folder.", "corpus")
    pages, files = sum(map(pages_of, read)), len(documents.outcomes)
    size = sum(path.stat().st_size for path in corpus.rglob("*") if path.is_file())
    del read
    note(f"{files} files, {pages} pages, {size / 1e6:.1f} MB, read {rounds} times")
    with progress() as report:
        timed = list(_rounds(documents, rounds, report))
    return told(figures_of(timed, files, pages, size), as_json)


def pages_of(document: "Document") -> int:
    """How many pages a document counts as, one at least."""
    own = sum(mark.name.startswith(("page ", "slide ")) for mark in document.marks)
    return own or max(round(len(document.text) / PAGE_CHARS), 1)


def _rounds(documents: "Corpus", rounds: int, report: Report) -> Sequence[Round]:
    found = []
    for number in range(rounds):
        report("reading", number, rounds)
        began = perf_counter()
        for _ in documents:
            pass
        took = perf_counter() - began
        found.append(Round(took, *memory()))
    return found


def memory() -> tuple[float, float]:
    """Megabytes this process holds, and those of the largest one that reads files."""
    import psutil

    from retrieval.parsing.apart import PROCESSES

    apart = [psutil.Process(pid).memory_info().rss for pid in PROCESSES.pids()]
    return psutil.Process(os.getpid()).memory_info().rss / 1e6, max(apart, default=0) / 1e6


def figures_of(rounds: Sequence[Round], files: int, pages: int, size: int) -> list[Figure]:
    """Rates of the median round; peaks of all rounds; and memory at the end against the beginning."""
    usual = median(one.seconds for one in rounds)
    fifth = max(len(rounds) // 5, 1)
    growth = {}
    for name in ("here_mb", "apart_mb"):
        early = median(getattr(one, name) for one in rounds[:fifth])
        late = median(getattr(one, name) for one in rounds[-fifth:])
        growth[name] = late / early if early else None
    return [
        Figure("pages_per_s", pages / usual, "pages/s"),
        Figure("files_per_s", files / usual, "files/s"),
        Figure("mb_per_s", size / usual / 1e6, "MB/s"),
        Figure("peak_here_mb", max(one.here_mb for one in rounds), "MB"),
        Figure("peak_apart_mb", max(one.apart_mb for one in rounds) or None, "MB"),  # None: nothing was read apart
        Figure("memory_growth_here", growth["here_mb"], "x", aim=f"<= {FLAT}", met=_flat(growth["here_mb"])),
        Figure("memory_growth_apart", growth["apart_mb"], "x", aim=f"<= {FLAT}", met=_flat(growth["apart_mb"])),
    ]


def _flat(growth: float | None) -> bool | None:
    return None if growth is None else growth <= FLAT
