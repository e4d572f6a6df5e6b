"""What every reranker promises, run on each of them."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from domain.ports import Reranker
from domain.types import Query, Reranking
from retrieval.mixing import ReadingReranker
from retrieval.pair_engine import PairEngine
from retrieval.reranking import FeatureReranker, ScoredReranker, read_weights
from serving.noop import NoOpReranker
from tests.fakes import FakePairModel, ReversingReranker, chunk, hits

FOUND = hits(
    *(chunk(f"d{i}#0", text) for i, text in enumerate(["the kiln is hot", "", "glaze " * 100, "窑", "a kiln"]))
)
KINDS = ["features", "reading", "mixed", "no-op", "reversing"]


@pytest.fixture(params=KINDS)
async def reranker(request: pytest.FixtureRequest) -> AsyncIterator[Reranker]:
    engine = PairEngine([FakePairModel()], batch_tokens=64)
    features = FeatureReranker(read_weights())
    with ThreadPoolExecutor(1) as pool:
        yield {
            "features": ScoredReranker(features, 4, pool),
            "reading": ReadingReranker(engine, 4, pool),
            "mixed": ReadingReranker(engine, 4, pool, share=0.3, script="latin", prior=features),
            "no-op": NoOpReranker(),
            "reversing": ReversingReranker(),
        }[str(request.param)]
    engine.close()


@pytest.mark.parametrize("question", ["how hot is the kiln", "", "窑有多热", "\ud800"])
async def test_a_reranking_is_a_permutation_with_ranks_from_one(reranker: Reranker, question: str) -> None:
    given = await reranker.rerank(Query(question), FOUND)
    assert sorted(hit.chunk.id for hit in given.hits) == [hit.chunk.id for hit in FOUND]
    assert [hit.rank for hit in given.hits] == [1, 2, 3, 4, 5]


async def test_scores_of_one_method_fall(reranker: Reranker) -> None:
    given = await reranker.rerank(Query("hot kiln"), FOUND)
    assert all(a.score >= b.score for a, b in pairwise(given.hits) if a.method == b.method)


async def test_no_hits_stay_none(reranker: Reranker) -> None:
    assert await reranker.rerank(Query("hot kiln"), ()) == Reranking(())


async def test_the_same_question_gives_the_same_order_again(reranker: Reranker) -> None:
    first = await reranker.rerank(Query("hot kiln"), FOUND)
    assert await reranker.rerank(Query("hot kiln"), FOUND) == first


async def test_without_any_time_no_hit_is_lost(reranker: Reranker) -> None:
    given = await reranker.rerank(Query("hot kiln"), FOUND, within_s=0.0)
    assert sorted(hit.chunk.id for hit in given.hits) == [hit.chunk.id for hit in FOUND]
