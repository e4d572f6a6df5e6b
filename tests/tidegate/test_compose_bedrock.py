"""Settings to Bedrock behind the ports of retrieval: made, checked at the start, and never told as free."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from domain.costs import Prices
from domain.errors import ConfigError, IncompatibleIndex, Throttled
from domain.types import Query, Scope
from tests.bedrock_stub import BedrockStub, Passage, Reply
from tests.fakes import chunk, hits
from tests.stubs.replies import Script
from tests.tidegate.tiny import served, settings
from tidegate import compose
from tidegate.compose_bedrock import prices_of, rewriter_prices_of
from tidegate.compose_generation import paces
from tidegate.serve import check_opens
from tidegate.settings import Settings

TITAN = {"embedding__backend": "bedrock", "embedding__model_id": "amazon.titan-embed-text-v2:0"}
RERANK = {"rerank__backend": "bedrock", "rerank__model_id": "cohere.rerank-v3-5:0"}
BASE = {"retrieval__knowledge_base": "ABCDEFGHIJ"}
PRICED = {"costs__prices": "[{model: extractive, input_usd: 0, output_usd: 0, cache_read_usd: 0, cache_write_usd: 0}]"}
READER = Scope("harbour", frozenset({"public"}))


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[BedrockStub]:
    """A Bedrock on loopback, made-up credentials, and both addresses of the service."""
    told = {"doc_id": "gate", "tenant": "harbour", "groups": ["public"]}
    paces.cache_clear()  # what one test was refused slows no other
    with BedrockStub(passages=[Passage("The sea gate closes at six metres.", told)]) as stub:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "made-up-id",
            "AWS_SECRET_ACCESS_KEY": "made-up-secret",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": stub.url,
            "AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME": stub.url,
        }.items():
            monkeypatch.setenv(name, value)
        yield stub


def test_the_encoder_of_the_settings_is_bedrocks_and_its_tag_names_the_model(tmp_path: Path, stub: BedrockStub) -> None:
    embedder = compose.make_embedder(settings(tmp_path, **TITAN))
    assert embedder.tag == "bedrock-amazon.titan-embed-text-v2:0-256"
    rows = embedder.embed_queries(["the sea gate"])
    assert (rows.shape, rows.dtype) == ((1, 256), np.float32)
    assert [request["dimensions"] for request in stub.requests] == [256]


def test_a_call_that_is_throttled_is_repeated_as_often_as_the_settings_say(tmp_path: Path, stub: BedrockStub) -> None:
    stub.script = Script([Reply(refuse=(429, "ThrottlingException")), Reply()])
    twice = settings(tmp_path, **TITAN, generation__attempts="2")
    assert compose.make_embedder(twice).embed_queries(["the sea gate"]).shape == (1, 256)
    assert len(stub.requests) == 2


@pytest.mark.parametrize("chosen", [TITAN, RERANK, BASE], ids=["embedding", "rerank", "knowledge base"])
async def test_all_who_ask_one_model_in_a_process_share_its_pace(
    tmp_path: Path, stub: BedrockStub, chosen: dict[str, str]
) -> None:
    stub.script = Script([Reply(refuse=(429, "ThrottlingException"), retry_after="900")])
    hurried = settings(served(tmp_path)[0], **chosen, generation__attempts="1", generation__deadline_s="5")
    with pytest.raises(Throttled):
        await _ask(hurried)
    for _ in range(2):  # made anew, as for another replica of the process, or for a build beside it
        with pytest.raises(Throttled, match=r"may be made in (900|89\d) s"):
            await _ask(hurried)
    assert len(stub.requests) == 1, "nobody asked before the time was over"


async def _ask(of: Settings) -> None:
    """One call of what Bedrock does with these settings, by something that was just made."""
    if of.embedding.backend == "bedrock":
        compose.make_embedder(of).embed_queries(["the sea gate"])
    elif of.rerank.backend == "bedrock":
        await compose.make_reranker(of).rerank(Query("sea gate"), hits(chunk("a#0", "blue glaze")))
    else:
        library = compose.make_library(of)
        await library.refresh()
        await library.retrieve(Query("when does the sea gate close"), READER, "any", 5)


def test_a_version_of_another_encoder_is_refused_before_it_is_served(tmp_path: Path, stub: BedrockStub) -> None:
    data_dir, version = served(tmp_path)
    with pytest.raises(IncompatibleIndex, match="titan"):
        check_opens(settings(data_dir, **TITAN), version)
    # A knowledge base is searched in its place, whatever the version was built with.
    check_opens(settings(data_dir, **TITAN, **BASE), version)
    assert stub.requests == []


async def test_the_reranker_of_the_settings_is_bedrocks_by_its_arn_in_our_region(
    tmp_path: Path, stub: BedrockStub
) -> None:
    reranker = compose.make_reranker(settings(tmp_path, **RERANK))
    found = hits(chunk("a#0", "blue glaze"), chunk("b#0", "the sea gate closes"))
    given = await reranker.rerank(Query("when does the sea gate close"), found)
    assert [hit.chunk.id for hit in given.hits] == ["b#0", "a#0"]
    model = stub.requests[0]["rerankingConfiguration"]["bedrockRerankingConfiguration"]["modelConfiguration"]
    assert model == {"modelArn": "arn:aws:bedrock:eu-west-1::foundation-model/cohere.rerank-v3-5:0"}


async def test_the_library_of_the_settings_is_the_knowledge_base(tmp_path: Path, stub: BedrockStub) -> None:
    data_dir, version = served(tmp_path)
    library = compose.make_library(settings(data_dir, **BASE))
    await library.refresh()
    found = await library.retrieve(Query("when does the sea gate close"), READER, version, 5)
    assert [hit.chunk.source.doc_id for hit in found.hits] == ["gate"]
    assert library.ready
    library.close()


@pytest.mark.parametrize("chosen", [TITAN, RERANK, BASE], ids=["embedding", "rerank", "knowledge base"])
def test_what_asks_bedrock_is_refused_at_start_without_region_or_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: dict[str, str]
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(ConfigError, match=r"generation\.region"):
        compose.check_startable(settings(tmp_path, **chosen))
    with pytest.raises(ConfigError, match=r"credentials.*AWS_PROFILE"):
        compose.check_startable(settings(tmp_path, **chosen, generation__region="eu-west-1"))


def test_a_hosted_rewriter_has_its_own_price_and_rules_have_none(tmp_path: Path) -> None:
    price = "[{model: nova-lite, input_usd: 0.06, output_usd: 0.24, cache_read_usd: 0.015, cache_write_usd: 0}]"
    hosted = {"rewriting__backend": "bedrock", "rewriting__model_id": "amazon.nova-lite-v1:0"}
    assert rewriter_prices_of(settings(tmp_path, **hosted, costs__prices=price)) == Prices(0.06, 0.24, 0.015, 0.0)
    assert rewriter_prices_of(settings(tmp_path, **hosted)) is None
    assert rewriter_prices_of(settings(tmp_path, costs__prices=price)) is None


@pytest.mark.usefixtures("stub")
@pytest.mark.parametrize("chosen", [TITAN, RERANK, BASE], ids=["embedding", "rerank", "knowledge base"])
def test_an_answer_that_asked_bedrock_on_its_way_is_not_told_as_free(tmp_path: Path, chosen: dict[str, str]) -> None:
    assert prices_of(settings(tmp_path, **PRICED)) is not None
    assert prices_of(settings(tmp_path, **PRICED, **chosen)) is None
    assert compose.make_rules(settings(tmp_path, **PRICED, **chosen)).prices is None
