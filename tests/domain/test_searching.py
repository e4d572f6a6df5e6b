"""A search without an answer: the best of what was reranked, and failures that stay failures."""

from dataclasses import replace

import pytest

from domain.errors import StageFailed
from domain.ports import Stages
from domain.searching import search
from domain.types import Mode, Query, Retrieval
from tests.fakes import PUBLIC, Clock, FakeRetriever, FakeRewriter, ReversingReranker, ScriptedGenerator, chunk, hits

A, B, C = (chunk(f"{name}#0", name) for name in "abc")
STAGES = Stages(FakeRewriter(), FakeRetriever(hits(A, B, C)), ReversingReranker(), ScriptedGenerator())


async def found(k: int, stages: Stages) -> tuple[Retrieval, dict[str, float]]:
    return await search(Query("gate"), PUBLIC, "v1", k, Mode.HYBRID, stages, rerank_depth=3, clock=Clock())


async def test_the_best_after_reranking_may_lie_below_the_k_that_was_asked_for() -> None:
    retrieval, stage_ms = await found(1, STAGES)
    assert [hit.chunk.id for hit in retrieval.hits] == ["c#0"]  # three are retrieved, reversed, and cut at one
    assert stage_ms == {"retrieve": 1.0, "rerank": 1.0}  # the clock moves a millisecond at every look


async def test_without_a_reranker_the_fused_order_is_cut_at_k() -> None:
    retrieval, stage_ms = await found(2, replace(STAGES, reranker=None))
    assert [hit.chunk.id for hit in retrieval.hits] == ["a#0", "b#0"]
    assert list(stage_ms) == ["retrieve"]


async def test_a_reranker_that_fails_fails_the_search() -> None:
    with pytest.raises(StageFailed):
        await found(2, replace(STAGES, reranker=ReversingReranker(error=StageFailed("It is gone.", "rerank"))))


async def test_what_the_reranker_says_of_its_work_stands_beside_what_the_retriever_says() -> None:
    retriever = FakeRetriever(hits(A, B, C), notes=("v1 is not open yet",))
    reranker = ReversingReranker(notes=("1 of 3 hits was not read within 5 ms",))
    retrieval, _ = await found(2, replace(STAGES, retriever=retriever, reranker=reranker))
    assert retrieval.notes == ("v1 is not open yet", "1 of 3 hits was not read within 5 ms")
