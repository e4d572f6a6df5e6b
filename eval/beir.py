"""Retrieval quality on a public collection: BEIR queries through `/v1/search`, measured with ir-measures.

A hit is a chunk and a judgement is about a document, so a document takes the rank of its best chunk. The order in
which the service gives its hits is the ranking: it has broken its ties already, by chunk id, and no tool breaks them
again. nDCG has linear gain (a grade of 3 is worth 3) and its ideal ranking holds every judged document, found or not;
for recall a grade of 1 or more is relevant. A query without a relevant document is not scorable: it is counted, and
not in any mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.errors import CorpusError, StageFailed
from domain.types import Scope
from eval.client import Client, Failure
from eval.harness import Progress, each

DEPTH = 100  # documents of a ranking that are looked at: the deepest cutoff

Qrels = Mapping[str, Mapping[str, int]]  # query id -> document id -> grade


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Means over `n` queries, and the judged queries that are in no mean: without relevant document, without text."""

    means: dict[str, float]
    n: int
    unscorable: tuple[str, ...]
    textless: tuple[str, ...]


async def measure(
    client: Client,
    queries: Mapping[str, str],
    qrels: Qrels,
    scope: Scope,
    *,
    rerank: bool,
    k: int,
    workers: int = 4,
    progress: Progress = lambda done, total: None,
) -> Retrieved:
    """`ndcg@10`, `recall@10` and `recall@100` over the scorable queries of `qrels` that `queries` has a text for.

    `k` is the number of chunks asked for, which must leave room for several chunks of one document. Raises
    StageFailed as soon as a query fails, and CorpusError when no query can be scored.
    """
    scorable = _scorable(qrels)
    asked = [query for query in scorable if query in queries]
    if not asked:
        raise CorpusError(
            f"Nothing can be scored: of {len(qrels)} judged queries {len(scorable)} have a relevant document, and none "
            "of those has a text. Choose the queries that belong to the judgements with --queries FILE."
        )

    async def documents(query: str) -> list[str]:
        found = await client.search(queries[query], k, scope, rerank=rerank)
        if isinstance(found, Failure):
            raise StageFailed(f"Query {query} failed with {found.code}: {found.message}", "retriever")
        return [hit["doc_id"] for hit in found["hits"]]

    rankings = dict(zip(asked, await each(asked, documents, workers, progress), strict=True))
    return Retrieved(
        means=score(rankings, {query: qrels[query] for query in asked}),
        n=len(asked),
        unscorable=tuple(query for query in qrels if query not in set(scorable)),
        textless=tuple(query for query in scorable if query not in queries),
    )


def score(rankings: Mapping[str, Sequence[str]], qrels: Qrels) -> dict[str, float]:
    """The three means over the scorable queries of `qrels`, of document ids best first; rounded to 4 digits.

    A document counts where it first comes; a query that `rankings` forgot scores zero. Raises CorpusError when no
    query is scorable, because no number would be true.
    """
    import ir_measures
    from ir_measures import R, nDCG

    judged = {query: dict(qrels[query]) for query in _scorable(qrels)}
    if not judged:
        raise CorpusError(f"Nothing can be scored: none of {len(qrels)} judged queries has a relevant document.")
    run = {query: falling(rankings.get(query, ())) for query in judged}
    wanted: dict[str, Any] = {"ndcg@10": nDCG @ 10, "recall@10": R @ 10, "recall@100": R @ 100}  # Any: ir-measures
    found = ir_measures.calc_aggregate(list(wanted.values()), judged, run)
    return {name: round(float(found[measure]), 4) for name, measure in wanted.items()}


def _scorable(qrels: Qrels) -> list[str]:
    return [query for query, grades in qrels.items() if any(grade > 0 for grade in grades.values())]


def falling(ranking: Sequence[str]) -> dict[str, float]:
    """Strictly falling scores of the first DEPTH documents: whatever a tool does with ties, it sees this order."""
    order = list(dict.fromkeys(ranking))[:DEPTH]
    return {doc_id: float(len(order) - position) for position, doc_id in enumerate(order)}
