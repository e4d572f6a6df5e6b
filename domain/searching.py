"""A search without an answer: retrieve, rerank, cut. For the service and the command line alike.

Nothing degrades here, unlike in answering.py: what was asked for and failed is a failure.
"""

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from domain.ports import Stages
from domain.types import Mode, Query, Retrieval, Scope


async def search(
    query: Query,
    scope: Scope,
    version: str,
    k: int,
    mode: Mode,
    stages: Stages,
    rerank_depth: int,
    clock: Callable[[], float] = perf_counter,
) -> tuple[Retrieval, dict[str, float]]:
    """The `k` best hits, and the milliseconds of each stage that ran.

    With a reranker `rerank_depth` hits are retrieved, if that is more than `k`; `clock` gives seconds.
    """
    stage_ms: dict[str, float] = {}
    started = clock()
    n = max(k, rerank_depth) if stages.reranker else k
    found = await stages.retriever.retrieve(query, scope, version, n, mode)
    stage_ms["retrieve"] = round((clock() - started) * 1000, 3)
    hits, notes = found.hits, found.notes
    if stages.reranker and hits:
        started = clock()
        ranked = await stages.reranker.rerank(query, hits)
        hits, notes = ranked.hits, (*notes, *ranked.notes)
        stage_ms["rerank"] = round((clock() - started) * 1000, 3)
    return replace(found, hits=hits[:k], notes=notes), stage_ms
