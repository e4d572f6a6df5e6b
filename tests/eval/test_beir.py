"""Means over a collection: the numbers on paper, ties, grades, and queries that cannot be scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from random import Random
from typing import Any

import pytest

from domain.errors import CorpusError, StageFailed
from eval.beir import Retrieved, measure, score
from eval.client import Failure
from tests.fakes import PUBLIC


@dataclass
class FakeClient:
    """Finds, for each query text, chunks of the documents listed for it."""

    rankings: Mapping[str, Sequence[str]]
    failing: str = ""
    asked: list[tuple[str, int, bool]] = field(default_factory=list)

    async def search(self, query: str, k: int, scope: Any, *, rerank: bool) -> Any:
        self.asked.append((query, k, rerank))
        if query == self.failing:
            return Failure("stage_failed", "the index is gone")
        return {"hits": [{"doc_id": doc_id} for doc_id in self.rankings.get(query, ())][:k], "index_version": "v1"}


async def measured(
    rankings: Mapping[str, Sequence[str]], qrels: Mapping[str, Mapping[str, int]], **more: Any
) -> Retrieved:
    """Queries are their own texts."""
    client = more.pop("client", None) or FakeClient(rankings)
    queries = more.pop("queries", {query: query for query in qrels})
    return await measure(client, queries, qrels, PUBLIC, rerank=more.pop("rerank", False), k=300, **more)


# ---------------------------------------------------------------------------------------------- numbers on paper


def test_the_ideal_ranking_has_every_judged_document_and_a_query_without_result_counts() -> None:
    qrels = {"qa": {"d1": 1, "d2": 1}, "qb": {"d5": 1, "d6": 1}}
    # qa: two relevant, one at rank 1: 1 / (1 + 1/log2(3)) = 0.6131 and recall 1/2. qb: 0 and 0.
    assert score({"qa": ["d1"]}, {"qa": qrels["qa"]}) == {"ndcg@10": 0.6131, "recall@10": 0.5, "recall@100": 0.5}
    halved = {"ndcg@10": 0.3066, "recall@10": 0.25, "recall@100": 0.25}
    assert score({"qa": ["d1"], "qb": []}, qrels) == halved
    assert score({"qa": ["d1"]}, qrels) == halved, "a query that the run forgot is in the mean as well"


def test_the_order_given_is_the_ranking_whatever_the_ids_are() -> None:
    # Relevant is the third: 1/log2(4) = 0.5. Tools that break ties by falling id would say 1 for d1, d2, d3.
    for first, second, third in (("d1", "d2", "d3"), ("d3", "d2", "d1"), ("z", "a", "m")):
        assert score({"q1": [first, second, third]}, {"q1": {third: 1}})["ndcg@10"] == 0.5


def test_the_gain_of_a_grade_is_linear() -> None:
    # Grade 1 at rank 1, grade 3 at rank 2: (1 + 3/log2(3)) / (3 + 1/log2(3)) = 2.8928 / 3.6309 = 0.7967;
    # a gain of 2^grade - 1 would give 0.7098.
    assert score({"g1": ["d2", "d1"]}, {"g1": {"d1": 3, "d2": 1}})["ndcg@10"] == 0.7967


def test_a_grade_of_one_is_relevant_and_nothing_below_is() -> None:
    found = score({"q": ["d1", "d2"]}, {"q": {"d1": 0, "d2": 1, "d3": -1}})
    assert found["recall@10"] == 1
    assert found["ndcg@10"] == round(1 / log2(3), 4)


def test_order_of_the_judgements_and_queries_changes_nothing() -> None:
    random = Random(2)
    documents = [f"d{i}" for i in range(20)]
    qrels = {f"q{i}": {d: random.randint(0, 2) for d in random.sample(documents, 6)} for i in range(6)}
    rankings = {query: random.sample(documents, 15) for query in qrels}
    first = score(rankings, qrels)
    for _ in range(5):
        shuffled = random.sample(sorted(qrels), len(qrels))
        again = {q: dict(random.sample(sorted(qrels[q].items()), len(qrels[q]))) for q in shuffled}
        assert score({q: rankings[q] for q in shuffled}, again) == first


def test_a_document_counts_once_where_it_first_comes() -> None:
    assert score({"q": ["d1", "d1", "d1", "d2"]}, {"q": {"d1": 1, "d2": 1}})["ndcg@10"] == 1


def test_documents_beyond_the_hundredth_are_not_looked_at() -> None:
    ranking = [f"x{i}" for i in range(100)]
    assert score({"q": [*ranking[:99], "d1"]}, {"q": {"d1": 1}})["recall@100"] == 1
    assert score({"q": [*ranking, "d1"]}, {"q": {"d1": 1}})["recall@100"] == 0


# ---------------------------------------------------------------------------------------------- not scorable


UNEVEN = {"q1": {"d1": 0, "d2": 1, "d3": 0}, "q2": {}, "q3": {"d2": 1, "d3": 1}, "q4": {"d1": 0}}


async def test_queries_without_a_relevant_document_are_counted_and_in_no_mean() -> None:
    rankings = dict.fromkeys(UNEVEN, ("d2", "d3", "d1"))
    found = await measured(rankings, UNEVEN)
    assert found == Retrieved(
        means={"ndcg@10": 1.0, "recall@10": 1.0, "recall@100": 1.0}, n=2, unscorable=("q2", "q4"), textless=()
    )
    assert score(rankings, UNEVEN) == found.means


async def test_when_no_query_can_be_scored_there_is_no_number() -> None:
    nothing: dict[str, dict[str, int]] = {"q2": {}, "q4": {"d1": 0}}
    with pytest.raises(CorpusError, match="of 2 judged queries 0 have a relevant document"):
        await measured({}, nothing)
    with pytest.raises(CorpusError, match="none of 2 judged queries has a relevant document"):
        score({"q2": ["d1"]}, nothing)


async def test_judged_queries_without_a_text_are_counted_and_not_asked() -> None:
    client = FakeClient({"one": ["d2"]})
    found = await measured({}, UNEVEN, client=client, queries={"q1": "one", "other": "of another split"})
    assert (found.n, found.textless, found.means["recall@10"]) == (1, ("q3",), 1.0)
    assert [query for query, _, _ in client.asked] == ["one"]
    with pytest.raises(CorpusError, match="--queries FILE"):
        await measured({}, UNEVEN, queries={"other": "of another split"})


# ---------------------------------------------------------------------------------------------- searching


async def test_a_document_takes_the_rank_of_its_best_chunk() -> None:
    # Hits of d9, d1, d9, d2: documents d9, d1, d2; relevant d2 at rank 3: 0.5.
    found = await measured({"q": ["d9", "d1", "d9", "d2"]}, {"q": {"d2": 1}})
    assert found.means["ndcg@10"] == 0.5


async def test_the_search_is_asked_as_wanted_and_progress_counts_what_is_asked() -> None:
    client, told = FakeClient({}), list[tuple[int, int]]()
    await measured({}, UNEVEN, client=client, rerank=True, progress=lambda done, of: told.append((done, of)))
    assert client.asked == [("q1", 300, True), ("q3", 300, True)]
    assert told == [(1, 2), (2, 2)]


async def test_a_query_that_fails_fails_the_measurement() -> None:
    client = FakeClient({"q1": ["d2"]}, failing="q3")
    with pytest.raises(StageFailed, match="Query q3 failed with stage_failed: the index is gone"):
        await measured({}, UNEVEN, client=client)


async def test_nothing_found_is_zero_and_no_failure() -> None:
    found = await measured({}, {"q1": {"d2": 1}})
    assert (found.means, found.n) == ({"ndcg@10": 0.0, "recall@10": 0.0, "recall@100": 0.0}, 1)
