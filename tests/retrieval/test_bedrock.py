"""Bedrock behind the ports of retrieval, through the real boto3, against a Bedrock on loopback."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from domain.errors import StageFailed, Throttled, UpstreamDenied
from domain.types import Query, Scope
from retrieval.bedrock import BedrockEmbedder, BedrockPairScorer, KnowledgeBaseRetriever
from retrieval.reranking import ScoredReranker
from tests.bedrock_stub import BedrockStub, Passage, Reply
from tests.fakes import chunk, hits

TITAN, COHERE, COHERE4 = "amazon.titan-embed-text-v2:0", "cohere.embed-multilingual-v3", "cohere.embed-v4:0"
ARN = "arn:aws:bedrock:eu-central-1::foundation-model/cohere.rerank-v3-5:0"
TEXTS = ["the kiln is hot", "", "   ", "a\x00b", "\ud800", "ℌ窑", "hot " * 500, "the kiln is hot"]
STAFF = Scope("harbour", frozenset({"staff", "crew"}))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.mark.parametrize(("model", "dimensions"), [(TITAN, 256), (COHERE, 1024), (COHERE4, 512)])
def test_every_text_gets_a_unit_row_in_its_place_and_alike_texts_are_near(
    pool: ThreadPoolExecutor, model: str, dimensions: int
) -> None:
    with BedrockStub() as stub, stub.client() as client:
        embedder = BedrockEmbedder(client, model, dimensions, pool)
        rows = embedder.embed_documents(TEXTS)
        assert (rows.shape, rows.dtype) == ((len(TEXTS), dimensions), np.float32)
        assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)
        assert (rows[0] == rows[7]).all()
        assert rows[0] @ rows[6] > rows[0] @ rows[5]
        assert embedder.embed_queries([]).shape == (0, dimensions)
    assert embedder.tag == f"bedrock-{model}-{dimensions}"


def test_cohere_is_asked_in_batches_and_told_which_side_a_text_is_on(pool: ThreadPoolExecutor) -> None:
    with BedrockStub() as stub, stub.client() as client:
        embedder = BedrockEmbedder(client, COHERE, 1024, pool)
        assert embedder.embed_documents([f"text {i}" for i in range(200)]).shape == (200, 1024)
        embedder.embed_queries(["text"])
        sides = [request["input_type"] for request in stub.requests]
    assert sides == ["search_document"] * 3 + ["search_query"]  # 96 + 96 + 8, and one


def test_a_model_of_other_dimensions_is_named_with_the_way_out(pool: ThreadPoolExecutor) -> None:
    wrong = pytest.raises(StageFailed, match=r"length 1024, 512 .*embedding\.dimensions")
    with BedrockStub() as stub, stub.client() as client, wrong:
        BedrockEmbedder(client, COHERE, 512, pool).embed_documents(["text"])


async def test_reranking_by_bedrock_is_a_permutation_by_its_scores(pool: ThreadPoolExecutor) -> None:
    found = hits(chunk("a#0", "glaze"), chunk("b#0", "the kiln is hot"), chunk("c#0", "a kiln"))
    with BedrockStub() as stub, stub.client(service="bedrock-agent-runtime") as client:
        reranker = ScoredReranker(BedrockPairScorer(client, ARN), 10, pool)
        ranked = await reranker.rerank(Query("the kiln is hot"), found)
        assert [hit.chunk.id for hit in ranked.hits] == ["b#0", "c#0", "a#0"]
        assert {hit.method for hit in ranked.hits} == {"bedrock-cohere.rerank-v3-5:0"}


def test_a_passage_longer_than_the_vendor_takes_is_cut_and_not_refused() -> None:
    found = hits(chunk("a#0", "the kiln is hot " * 4000), chunk("b#0", "glaze"))  # 64,000 characters
    with BedrockStub() as stub, stub.client(service="bedrock-agent-runtime") as client:
        first, second = BedrockPairScorer(client, ARN).score("kiln " * 8000, found)
    assert first > second


@pytest.mark.parametrize(
    ("refuse", "error"),
    [
        ((429, "ThrottlingException"), Throttled),
        ((503, "ServiceUnavailableException"), StageFailed),
        ((403, "AccessDeniedException"), UpstreamDenied),
    ],
)
def test_a_refusal_says_who_must_act_and_shows_no_account(
    pool: ThreadPoolExecutor, refuse: tuple[int, str], error: type[StageFailed]
) -> None:
    with BedrockStub([Reply(refuse=refuse)]) as stub, stub.client() as client, pytest.raises(error) as caught:
        BedrockEmbedder(client, TITAN, 256, pool).embed_queries(["text"])
    assert type(caught.value) is error
    assert "123456789012" not in str(caught.value)


def told(doc_id: str, *groups: str, tenant: str = "harbour") -> dict[str, object]:
    return {"doc_id": doc_id, "tenant": tenant, "groups": list(groups)}


PASSAGES = [
    Passage("The pump overheats at noon.", told("a", "staff")),
    Passage("The pump sticks in winter.", told("b", "crew", "others")),
    Passage("The pump was paid in May.", told("c", "finance")),
    Passage("A pump of another tenant.", told("d", "staff", tenant="quarry")),
    Passage("A pump that says nothing of who may read it.", {}),
]


async def test_a_knowledge_base_gives_a_reader_what_he_may_see_best_first(pool: ThreadPoolExecutor) -> None:
    with BedrockStub(passages=PASSAGES) as stub, stub.client(service="bedrock-agent-runtime") as client:
        retriever = KnowledgeBaseRetriever(client, "ABCDEFGHIJ", pool)
        found = await retriever.retrieve(Query("pump in winter"), STAFF, "v1", 10)
        assert [hit.chunk.source.doc_id for hit in found.hits] == ["b", "a"]
        assert [hit.rank for hit in found.hits] == [1, 2]
        assert (await retriever.retrieve(Query("pump"), replace(STAFF, groups=frozenset()), "v1", 10)).hits == ()
        ids = [hit.chunk.id for hit in reversed(found.hits)]
        again = await retriever.chunks([*ids, "gone#0", "c#0"], STAFF, "v1")
        assert [chunk.id for chunk in again] == ids


async def test_what_a_filter_lets_through_is_checked_again(pool: ThreadPoolExecutor) -> None:
    class Leaky:
        def retrieve(self, **_: object) -> dict[str, object]:
            results = [{"content": {"text": p.text}, "metadata": p.metadata, "score": 0.5} for p in PASSAGES]
            return {"retrievalResults": results}

    found = await KnowledgeBaseRetriever(Leaky(), "ABCDEFGHIJ", pool).retrieve(Query("pump"), STAFF, "v1", 10)
    assert {hit.chunk.source.doc_id for hit in found.hits} == {"a", "b"}
