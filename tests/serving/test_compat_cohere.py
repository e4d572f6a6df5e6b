"""Reranking with Cohere's own client, over real HTTP."""

from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from math import isclose
from pathlib import Path
from typing import Any

import cohere
import pytest
from cohere.core.api_error import ApiError

from domain.calibration import Calibration, Curve, Order, Signal
from domain.errors import StageFailed
from domain.naming import Naming
from domain.packing import estimate_tokens
from domain.types import Hit, Query, Reranking, Scope
from retrieval.reranking import FeatureReranker, ScoredReranker, read_weights
from serving.compat_cohere import cut
from serving.keyring import KeyRing, encoded_keys, new_key
from serving.service import Service
from tests.fakes import RULES, ReversingReranker
from tests.serving.service import Served, post, service

DOCUMENTS = ["The bell rings twice a day.", "The gate opens at high water.", "Oil of grade 46 for the pump."]
BODY = {"model": "tidegate", "query": "When does the gate open?", "documents": DOCUMENTS}


@dataclass
class Scoring:
    """Gives each document the score of its text, and leaves those without one unread."""

    scores: dict[str, float]
    seen: list[Hit] = field(default_factory=list)

    async def rerank(self, query: Query, hits: Sequence[Hit], within_s: float | None = None) -> Reranking:
        self.seen.extend(hits)
        read = [hit for hit in hits if hit.chunk.text in self.scores]
        read.sort(key=lambda hit: -self.scores[hit.chunk.text])
        scored = [replace(hit, score=self.scores[hit.chunk.text], method="scoring") for hit in read]
        unread = [hit for hit in hits if hit.chunk.text not in self.scores]
        return Reranking(tuple(replace(hit, rank=rank) for rank, hit in enumerate((*scored, *unread), 1)))


SCORING = Scoring(dict(zip(DOCUMENTS, (-2.0, 3.0, 0.0), strict=True)))


@asynccontextmanager
async def talking(of: Service, key: str = "none") -> AsyncIterator[cohere.AsyncClientV2]:
    """Cohere's client of a service on a real port."""
    async with Served(of) as url, cohere.AsyncClientV2(api_key=key, base_url=url, timeout=30) as client:
        yield client


async def asked(client: Any, **changes: Any) -> Any:
    return await client.rerank(**BODY | changes, request_options={"max_retries": 0})


async def test_positions_come_best_first_with_scores_from_0_to_1() -> None:
    async with talking(service(reranker=SCORING)) as client:
        told = await asked(client)
    assert [result.index for result in told.results] == [1, 2, 0]
    # the logistic function of 3, 0 and -2
    wanted = (0.9526, 0.5, 0.1192)
    assert all(isclose(a.relevance_score, b, abs_tol=1e-4) for a, b in zip(told.results, wanted, strict=True))
    assert "not calibrated" in told.meta.warnings[0]


async def test_a_calibrated_order_tells_chances_and_says_so() -> None:
    curve = Curve((-2.0, 3.0), (0.1, 0.6))
    calibration = Calibration("e", curve, orders=(Order("scoring", Signal.SCORE, curve),))
    of = service(reranker=SCORING, rules=replace(RULES, calibration=calibration))
    async with talking(of) as client:
        told = await asked(client)
    # straight from 0.1 at -2 to 0.6 at 3: 0 is two fifths of the way
    wanted = (0.6, 0.3, 0.1)
    assert all(isclose(a.relevance_score, b) for a, b in zip(told.results, wanted, strict=True))
    assert "chance" in told.meta.warnings[0]


async def test_the_reranker_that_is_served_puts_the_document_on_the_question_first() -> None:
    with ThreadPoolExecutor(1) as executor:
        reranker = ScoredReranker(FeatureReranker(read_weights()), 10, executor)
        async with talking(service(reranker=reranker)) as client:
            told = await asked(client)
    assert told.results[0].index == 1
    scores = [result.relevance_score for result in told.results]
    assert scores == sorted(scores, reverse=True)


async def test_top_n_keeps_the_best_and_more_than_there_are_is_all() -> None:
    async with talking(service(reranker=SCORING)) as client:
        assert [result.index for result in (await asked(client, top_n=1)).results] == [1]
        assert len((await asked(client, top_n=99)).results) == 3


async def test_their_older_client_is_answered_too() -> None:
    async with (
        Served(service(reranker=SCORING)) as url,
        cohere.AsyncClient(api_key="none", base_url=url, timeout=30) as client,
    ):
        assert [result.index for result in (await asked(client)).results] == [1, 2, 0]


async def test_a_document_is_cut_to_its_tokens() -> None:
    long = "word " * 100
    scoring = Scoring({cut(long, 10): 1.0})
    async with talking(service(reranker=scoring)) as client:
        await asked(client, documents=[long], max_tokens_per_doc=10)
    [hit] = scoring.seen
    assert long.startswith(hit.chunk.text)
    assert estimate_tokens(hit.chunk.text) <= 10 < estimate_tokens(long[: len(hit.chunk.text) + 2])


async def test_documents_that_nobody_read_in_time_are_a_failure_and_no_low_score() -> None:
    async with talking(service(reranker=Scoring({DOCUMENTS[0]: 1.0}))) as client:
        with pytest.raises(ApiError, match="2 of 3 documents were not read in time") as caught:
            await asked(client)
    assert caught.value.status_code == 504


async def test_equal_places_of_two_callers_are_never_one_document() -> None:
    scoring = Scoring({"One.": 1.0, "Two.": 1.0})
    async with talking(service(reranker=scoring)) as client:
        await asked(client, documents=["One."])
        await asked(client, documents=["Two."])
    assert len({hit.chunk.id for hit in scoring.seen}) == 2


@pytest.mark.parametrize(
    ("changes", "status", "wanted"),
    [
        ({"documents": []}, 400, "'documents' is empty"),
        ({"documents": ["x"] * 11}, 413, "at most 10"),
        ({"documents": [{"text": "x"}]}, 400, "valid string"),
        ({"query": " "}, 400, "nothing but blanks"),
        ({"query": "a" * 501}, 413, "at most 500"),
        ({"top_n": 0}, 400, "greater than or equal to 1"),
        ({"max_tokens_per_doc": 0}, 400, "greater than or equal to 1"),
        ({"return_documents": True}, 400, "'return_documents' is not supported"),
        ({"rank_fields": ["title"]}, 400, "'rank_fields' is not supported"),
        ({"model": "rerank-9"}, 404, "'rerank-9' does not exist here"),
    ],
)
async def test_what_cannot_be_done_is_refused_in_their_shape(changes: Any, status: int, wanted: str) -> None:
    reply = await post(service(reranker=SCORING), "/v2/rerank", BODY | changes)
    assert reply.status_code == status
    assert wanted in reply.json()["message"]


async def test_without_a_reranker_the_way_out_is_named() -> None:
    async with talking(service()) as client:
        with pytest.raises(cohere.BadRequestError, match=r"rerank\.backend"):
            await asked(client)


async def test_a_reranker_that_fails_is_a_failure() -> None:
    broken = ReversingReranker(StageFailed("The reranker died twice.", "reranker"))
    async with talking(service(reranker=broken)) as client:
        with pytest.raises(ApiError, match="died twice") as caught:
            await asked(client)
    assert caught.value.status_code == 502


async def test_a_key_needs_the_scope_to_search(tmp_path: Path) -> None:
    reader, path = Scope("harbour", frozenset({"public"})), tmp_path / "keys.json"
    (search, told), (ask, other) = new_key("s", reader, ("search",), ""), new_key("a", reader, ("ask",), "")
    path.write_bytes(encoded_keys((search, ask)))
    of = service(reranker=SCORING, authenticate=KeyRing(path))
    async with talking(of, told) as client:
        assert len((await asked(client)).results) == 3
    async with talking(of, other) as client:
        with pytest.raises(cohere.ForbiddenError, match="needs scope search"):
            await asked(client)


async def test_a_forbidden_term_is_in_no_note_and_no_error() -> None:
    noted = ReversingReranker(notes=("Acme read it",), method="reversed")
    reply = await post(service(reranker=noted, naming=(naming := Naming(("Acme",)))), "/v2/rerank", BODY)
    assert "read it" in reply.text
    assert "Acme" not in reply.text
    of = service(reranker=noted, naming=naming)
    assert "Acme" not in (await post(of, "/v2/rerank", BODY | {"model": "Acme"})).text
