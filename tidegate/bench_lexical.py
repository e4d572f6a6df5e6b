"""`tidegate bench lexical`: the lexical arm against bm25s and rank-bm25 on short texts, and what a change of it costs.

Everybody gets the same tokens from our analyser and the same k1, b and idf; each query is analysed, scored and cut to
its best 10, on one thread. The texts are made up: bench_texts.py. Peers know no readers and no updates.
"""

import multiprocessing
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.bench_lines import Figure, told
from tidegate.bench_texts import questions, short_texts
from tidegate.config import AsJson
from tidegate.console import Code
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from retrieval.arms import Visible
    from retrieval.lexical import Bm25Arm

CUTOFF = 10
CHANGED, UPDATES = 100, 5  # documents of an update, updates whose median is told
SLOW = 20  # queries that are put to rank-bm25, which takes some 200 ms for each
SEES = 0.1  # share of the rows that a reader sees, drawn at random
AIM = 100.0

Ask = Callable[[str], Any]  # what a peer gives back is its own


def lexical(
    documents: Annotated[int, typer.Option(min=2_000, max=5_000_000, help="Short texts to search.")] = 100_000,
    queries: Annotated[int, typer.Option(min=10, max=1_000, help="Queries, each asked twice, the second timed.")] = 200,
    as_json: AsJson = False,
) -> Code:
    """Measure the lexical arm: search, indexing, updates.

    Against bm25s and rank-bm25 on the same tokens. Updates also on a tenth of the texts: how they grow.
    """
    with progress() as report, TemporaryDirectory(prefix="tidegate-bench-") as place:
        report("making texts", 0, 0)
        texts, asked = list(short_texts(documents)), questions(queries)
        found = figures(texts, asked, Path(place), report)
    return told(found, as_json)


def figures(texts: Sequence[str], asked: Sequence[str], place: Path, report: Report) -> list[Figure]:
    """All figures over these texts; files are made in `place`."""
    import numpy as np

    from retrieval.analysis import analyse
    from retrieval.arms import Visible
    from retrieval.lexical import Bm25Arm

    report("counting", 0, 0)
    index_s = seconds(lambda: Bm25Arm.build(texts).save(place / "bm25"))
    began = perf_counter()
    arm = Bm25Arm.load(place / "bm25")
    open_ms = 1000 * (perf_counter() - began)
    everyone = Visible(np.ones(len(texts), np.bool_))
    some = Visible(np.random.default_rng(7).random(len(texts)) < SEES)
    report("searching", 0, 0)
    ours = p50_ms(lambda query: arm.search(query, CUTOFF, everyone), asked)
    reader = p50_ms(lambda query: arm.search(query, CUTOFF, some), asked)
    cold = p50_ms(lambda query: _unaided(arm).search(query, CUTOFF, everyone), asked, ask_before=False)
    mapped_mb = sum(file.stat().st_size for file in (place / "bm25").iterdir()) / 1e6
    resident_mb = in_a_process_of_its_own(place / "bm25", len(texts), asked)
    report("indexing with bm25s and rank-bm25", 0, 0)
    began = perf_counter()
    tokens = [analyse(text) for text in texts]
    analysed_s = perf_counter() - began
    peers = {"bm25s": bm25s(tokens), "rank_bm25": rank_bm25(tokens)}
    del tokens
    times: dict[str, float | None] = {
        name: p50_ms(peer[1], asked[: SLOW if name == "rank_bm25" else None]) if peer else None
        for name, peer in peers.items()
    }
    indexing = {name: analysed_s + peer[0] if peer else None for name, peer in peers.items()}
    if peers["bm25s"]:
        times["bm25s_scores"] = p50_ms(peers["bm25s"][2], asked)  # no ranking, which is where most of its time goes
    apart = _apart(arm, everyone, peers["bm25s"], asked)
    del peers
    ratios = {name: None if theirs is None else theirs / ours for name, theirs in times.items()}
    report("updating", 0, 0)
    update, tenth = (update_ms(some_texts, place / "live") for some_texts in (texts, texts[: len(texts) // 10]))
    to_rank_bm25 = ratios["rank_bm25"]
    return [
        Figure("p50_ms", ours, "ms", times, ratios),
        Figure(
            "ratio_rank_bm25",
            to_rank_bm25,
            "x",
            aim=f">= {AIM:g}",
            met=None if to_rank_bm25 is None else to_rank_bm25 >= AIM,
        ),
        Figure("ratio_bm25s", ratios["bm25s"], "x"),
        Figure("p50_cold_ms", cold, "ms"),
        Figure("p50_reader_ms", reader, "ms"),
        Figure("scores_apart", apart, "largest difference to bm25s"),
        Figure("index_s", index_s, "s", indexing, {name: s and s / index_s for name, s in indexing.items()}),
        Figure("open_ms", open_ms, "ms"),
        Figure("mapped_mb", mapped_mb, "MB"),
        Figure("resident_mb", resident_mb, "MB"),
        Figure("update_ms", update, "ms"),
        Figure("update_tenth_ms", tenth, "ms"),
        Figure("update_growth", update / tenth, "x for 10 times the texts"),
        Figure("derive_share", _derive_s(texts, place) / index_s, "of index_s"),
    ]


# ---------------------------------------------------------------------------------------------- ours


def update_ms(texts: Sequence[str], place: Path) -> float:
    """Milliseconds until 100 changed documents are on disk and found, 50 of them new and 50 in another's place."""
    from retrieval.lexical_updates import LexicalUpdates

    shutil.rmtree(place, ignore_errors=True)
    taken = []
    with LexicalUpdates(place) as writer:
        writer.add({f"d{i:07d}": text for i, text in enumerate(texts)})
        for number in range(UPDATES):
            some = [(number * CHANGED + i) % len(texts) for i in range(CHANGED // 2)]
            changed = {f"d{i:07d}": f"{texts[-1 - i]} changed{number}" for i in some}
            added = {f"e{number}-{i:07d}": f"{texts[i]} changed{number}" for i in some}
            began = perf_counter()
            snapshot = writer.update(changed | added, [])
            found = snapshot.search(f"changed{number}", CUTOFF, snapshot.everyone)
            taken.append(1000 * (perf_counter() - began))
            if found.rows.size != CUTOFF:
                raise RuntimeError("An update was not found by the next search: this is a bug.")
    return median(taken)


def _derive_s(texts: Sequence[str], place: Path) -> float:
    """Seconds for the lexical files of a version in which 100 documents are new; what has not changed is known."""
    import numpy as np

    from retrieval import lexical_files
    from retrieval.lexical_merging import Taken, merge_into
    from retrieval.lexical_segment import Segment

    parent = lexical_files.read(place / "bm25")
    old = np.arange(CHANGED, len(texts))
    new = np.arange(CHANGED)

    def derived() -> None:
        fresh = Segment.of(f"{text} changed" for text in texts[:CHANGED])
        merge_into(place / "derived", [Taken(parent, old, old), Taken(fresh, new, new)], len(texts))

    return seconds(derived)


def in_a_process_of_its_own(folder: Path, rows: int, asked: Sequence[str]) -> float | None:
    """MB that a process grows by when it opens the arm and answers; the mapped pages that it touched are in it."""
    # A fresh interpreter: in this one, memory that was freed is used again and hides what is needed.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_grown_mb, (folder, rows, list(asked)))


def _grown_mb(folder: Path, rows: int, asked: Sequence[str]) -> float | None:
    import numpy as np

    from retrieval.arms import Visible
    from retrieval.lexical import Bm25Arm

    Bm25Arm.build(["warm up"]).search("warm up", CUTOFF, Visible(np.ones(1, np.bool_)))
    before = _resident_mb()
    arm, everyone = Bm25Arm.load(folder), Visible(np.ones(rows, np.bool_))
    for query in asked:
        arm.search(query, CUTOFF, everyone)
    after = _resident_mb()
    return None if before is None or after is None else after - before


def _resident_mb() -> float | None:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # no Linux: not measured
        return None
    return next(int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith("VmRSS:"))


def _unaided(arm: "Bm25Arm") -> "Bm25Arm":
    """The same arm with nothing kept from earlier queries."""
    return type(arm)(arm.segment, arm.k1, arm.b, room=0)


# ---------------------------------------------------------------------------------------------- peers

Peer = tuple[float, Ask, Callable[[str], Any]]  # seconds to index tokens, a search, the scores of all rows: a vendor's


def bm25s(tokens: Sequence[Sequence[str]]) -> Peer | None:
    """bm25s as a user would call it; None where it is not installed."""
    import logging

    from retrieval.analysis import analyse

    try:
        import bm25s as package
    except ImportError:
        return None
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    index = package.BM25(method="lucene", k1=0.9, b=0.4)
    taken = seconds(lambda: index.index(tokens, show_progress=False))
    return (
        taken,
        lambda query: index.retrieve([analyse(query)], k=CUTOFF, show_progress=False),
        lambda query: index.get_scores(analyse(query)),
    )


def rank_bm25(tokens: Sequence[Sequence[str]]) -> Peer:
    """rank-bm25 as a user would call it."""
    import numpy as np
    from rank_bm25 import BM25Okapi

    from retrieval.analysis import analyse

    began = perf_counter()
    index = BM25Okapi(tokens, k1=0.9, b=0.4)
    return (
        perf_counter() - began,
        lambda query: np.argsort(index.get_scores(analyse(query)))[::-1][:CUTOFF],  # its get_top_n, without the texts
        lambda query: index.get_scores(analyse(query)),
    )


def _apart(arm: "Bm25Arm", everyone: "Visible", peer: Peer | None, asked: Sequence[str]) -> float | None:
    """The largest difference between our scores and the peer's, over queries in which every token counts once."""
    import numpy as np

    from retrieval.analysis import weigh

    if peer is None:
        return None
    plain = [query for query in asked if set(weigh(query, lambda _: True).values()) == {1.0}][:SLOW]
    rows = np.arange(everyone.mask.size)
    return max(float(np.abs(arm.score(query, rows, everyone) - peer[2](query)).max()) for query in plain)


# ---------------------------------------------------------------------------------------------- time


def seconds(work: Callable[[], Any]) -> float:
    """Seconds that `work` takes."""
    began = perf_counter()
    work()
    return perf_counter() - began


def p50_ms(ask: Ask, asked: Sequence[str], ask_before: bool = True) -> float:
    """The median time of a query in milliseconds; each was asked once before, or never."""
    for query in asked if ask_before else ():
        ask(query)
    return 1000 * median(seconds(lambda query=query: ask(query)) for query in asked)  # type: ignore[misc]
