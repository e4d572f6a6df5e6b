"""Retrieval quality on a public collection: BEIR queries through `/v1/search`, measured with ir-measures.

A hit is a chunk and a judgement is about a document, so a document takes the rank of its best chunk. Queries without
a relevant document are not scorable and are left out of the means by ir-measures' own rule; `n` says how many counted.
"""

from collections.abc import Callable, Mapping
from typing import Any

from domain.errors import StageFailed
from domain.types import Scope
from eval.client import Client, Failure
from eval.harness import each

DEPTH = 100


async def measure(
    client: Client,
    queries: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    scope: Scope,
    *,
    rerank: bool,
    k: int,
    workers: int = 4,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, float | int]:
    """`ndcg@10`, `recall@10`, `recall@100` and `n` over the judged queries; a query that fails raises StageFailed.

    `k` is the number of chunks asked for, which must leave room for several chunks of one document.
    """
    judged = [query for query in queries if any(grade > 0 for grade in qrels.get(query, {}).values())]

    async def documents(query: str) -> dict[str, float]:
        found = await client.search(queries[query], k, scope, rerank=rerank)
        if isinstance(found, Failure):
            raise StageFailed(f"Query {query} failed with {found.code}: {found.message}", "retriever")
        order = list(dict.fromkeys(hit["doc_id"] for hit in found["hits"]))[:DEPTH]
        # Ranks as scores, strictly falling: whatever a tool does with ties, it sees the order people see.
        return {doc_id: float(len(order) - position) for position, doc_id in enumerate(order)}

    run = dict(zip(judged, await each(judged, documents, workers, progress), strict=True))
    return score(run, {query: dict(qrels[query]) for query in judged})


def score(run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]) -> dict[str, float | int]:
    """The three measures over a run; a judged query that the run forgot scores zero."""
    import ir_measures
    from ir_measures import R, nDCG

    wanted: dict[str, Any] = {"ndcg@10": nDCG @ 10, "recall@10": R @ 10, "recall@100": R @ 100}
    values = ir_measures.calc_aggregate(list(wanted.values()), qrels, run)
    return {**{name: round(float(values[measure]), 4) for name, measure in wanted.items()}, "n": len(qrels)}
