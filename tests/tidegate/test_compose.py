"""The composition root: settings become working things, and what cannot work is refused before the first question."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.errors import CannotCache, ConfigError
from domain.types import Scope
from eval.client import Client, Failure
from generation.extractive import ExtractiveGenerator
from generation.rewriting import AsTyped
from generation.ungrounded import UngroundedGenerator
from serving.api import create_app
from tests.bedrock_stub import BedrockStub, Reply
from tests.retrieval.tiny_models import bert
from tests.stubs.openai import OpenAIStub
from tests.tidegate.tiny import served, settings
from tidegate import compose, compose_graph
from tidegate.compose import evaluation_service, make_library
from tidegate.effective import digest

HAIKU = "anthropic.claude-haiku-4-5-20251001-v1:0"  # caches from 4,096 tokens on
SONNET = "anthropic.claude-3-7-sonnet-20250219-v1:0"
PRICE = "{model: claude-3-7-sonnet, input_usd: 3, output_usd: 15, cache_read_usd: 0.3, cache_write_usd: 3.75}"
READER = Scope("harbour", frozenset({"public"}))


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Made-up credentials, as the cloud client finds them in the environment."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "made-up-id",
        "AWS_SECRET_ACCESS_KEY": "made-up-secret",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    return


def bedrock(url: str, **others: str) -> dict[str, str]:
    return {"generation__backend": "bedrock", "generation__model_id": SONNET, "generation__endpoint_url": url, **others}


def test_the_backends_of_the_settings_are_the_ones_that_are_made(tmp_path: Path) -> None:
    assert isinstance(compose.make_generator(settings(tmp_path)), ExtractiveGenerator)
    ungrounded = settings(tmp_path, generation__backend="ungrounded")
    assert isinstance(compose.make_generator(ungrounded), UngroundedGenerator)
    assert isinstance(compose.make_rewriter(settings(tmp_path, rewriting__backend="none")), AsTyped)
    assert compose_graph.graph_plan(settings(tmp_path)).make_reranker is None
    assert compose_graph.graph_plan(settings(tmp_path, rerank__backend="features")).make_reranker is not None


def test_a_library_is_cut_only_where_more_than_one_shard_is_asked_for(tmp_path: Path) -> None:
    assert compose_graph.graph_plan(settings(tmp_path)).make_shards == ()
    cut = settings(tmp_path, retrieval__shards="3", retrieval__dense="faiss")
    assert len(compose_graph.graph_plan(cut).make_shards) == 3


@pytest.mark.parametrize(("key", "value"), [("dense", "hnsw"), ("dense", "auto"), ("lexical", "rank_bm25")])
def test_shards_are_refused_where_they_could_answer_differently(tmp_path: Path, key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"retrieval.{key}"):
        settings(tmp_path, **{"retrieval__shards": "2", "retrieval__dense": "faiss", f"retrieval__{key}": value})


def test_the_number_of_shards_does_not_change_what_is_served(tmp_path: Path) -> None:
    one = settings(tmp_path, retrieval__dense="faiss")
    assert digest(one) == digest(settings(tmp_path, retrieval__dense="faiss", retrieval__shards="2"))


def test_equal_settings_make_encoders_of_equal_tag(tmp_path: Path) -> None:
    tags = {compose.make_embedder(settings(tmp_path)).tag for _ in range(2)}
    assert tags == {"hashing-256-1"}
    other = settings(tmp_path, embedding__dimensions="128", embedding__query_cache="0")
    assert compose.make_embedder(other).tag == "hashing-128-1"


@pytest.mark.usefixtures("credentials")
def test_a_model_that_would_silently_not_cache_is_refused_at_start(tmp_path: Path) -> None:
    for model_id in (HAIKU, "vendor.unheard-of-v1:0"):
        chosen = bedrock("http://127.0.0.1:9", generation__model_id=model_id)
        with pytest.raises(CannotCache, match="allow_uncached: true"):
            compose.check_startable(settings(tmp_path, **chosen))
        compose.check_startable(settings(tmp_path, **chosen, generation__allow_uncached="true"))


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize("model_id", ["eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "eu.amazon.nova-pro-v1:0"])
def test_our_prefix_is_long_enough_for_models_that_cache_from_a_thousand_tokens_on(
    tmp_path: Path, model_id: str
) -> None:
    compose.check_startable(settings(tmp_path, **bedrock("http://127.0.0.1:9", generation__model_id=model_id)))


@pytest.mark.usefixtures("credentials")
async def test_a_hosted_model_answers_over_http_with_its_prefix_marked_for_the_cache(tmp_path: Path) -> None:
    data_dir, version = served(tmp_path)
    # As many pieces as a model would send, with the marker broken across two of them.
    with BedrockStub([Reply(("It closes at six ", "metres [S", "1]."))]) as stub:
        chosen = settings(data_dir, **bedrock(stub.url, costs__prices=f"[{PRICE}]"))
        library = make_library(chosen)
        await library.refresh()
        async with Client.in_process(create_app(evaluation_service(chosen, library)), version) as client:
            told = await client.ask("At what tide does the sea gate close?", READER)
        library.close()
    assert not isinstance(told, Failure)
    assert told["answer"] == "It closes at six metres [S1]."
    assert [citation["doc_id"] for citation in told["citations"]] == ["gate.md"]
    assert (told["grounding"], told["status"]) == ("grounded", "complete")
    assert told["cost_usd"] == pytest.approx((10 * 3 + 5 * 15) / 1e6)
    system = stub.requests[0]["system"]
    assert [list(block) for block in system[:2]] == [["text"], ["cachePoint"]]


@pytest.mark.usefixtures("credentials")
async def test_a_hosted_model_that_is_throttled_is_a_failure_that_says_so(tmp_path: Path) -> None:
    data_dir, version = served(tmp_path)
    with BedrockStub([Reply(refuse=(429, "ThrottlingException"))]) as stub:
        chosen = settings(data_dir, **bedrock(stub.url, generation__allow_uncached="true", generation__attempts="1"))
        library = make_library(chosen)
        await library.refresh()
        async with Client.in_process(create_app(evaluation_service(chosen, library)), version) as client:
            told = await client.ask("At what tide does the sea gate close?", READER)
        library.close()
    assert isinstance(told, Failure)
    assert told.code == "throttled"


def test_no_region_anywhere_is_told_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    chosen = settings(
        tmp_path, generation__backend="bedrock", generation__model_id=SONNET, generation__allow_uncached="true"
    )
    with pytest.raises(ConfigError, match=r"generation\.region"):
        compose.make_generator(chosen)


def test_missing_credentials_are_told_at_start_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    allowed = bedrock("http://127.0.0.1:9", generation__allow_uncached="true", generation__region="eu-west-1")
    with pytest.raises(ConfigError, match=r"credentials.*AWS_PROFILE"):
        compose.check_startable(settings(tmp_path, **allowed))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "made-up-id")
    with pytest.raises(ConfigError, match="PartialCredentialsError") as caught:
        compose.check_startable(settings(tmp_path, **allowed))
    assert "made-up" not in str(caught.value)


async def test_a_server_of_chat_completions_answers_with_the_key_of_its_file(tmp_path: Path) -> None:
    data_dir, version = served(tmp_path)
    key = tmp_path / "key"
    key.write_text("sk-made-up\n", "utf-8")
    with OpenAIStub([Reply(("It closes at six ", "metres [S", "1]."))]) as stub:
        pairs = {
            "backend": "openai_compatible", "model_id": "qwen3:8b", "endpoint_url": f"{stub.url}/v1",
            "key_file": str(key), "cache_minimum": "16",
        }  # fmt: skip
        chosen = settings(data_dir, **{f"generation__{name}": value for name, value in pairs.items()})
        compose.check_startable(chosen)
        library = make_library(chosen)
        await library.refresh()
        async with Client.in_process(create_app(evaluation_service(chosen, library)), version) as client:
            told = await client.ask("At what tide does the sea gate close?", READER)
        library.close()
    assert not isinstance(told, Failure)
    assert (told["answer"], told["grounding"]) == ("It closes at six metres [S1].", "grounded")
    assert stub.keys == ["Bearer sk-made-up"]


@pytest.mark.parametrize("content", [None, "", "two words"])
def test_a_key_file_without_a_key_is_refused_and_its_content_not_shown(tmp_path: Path, content: str | None) -> None:
    key = tmp_path / "key"
    if content is not None:
        key.write_text(content, "utf-8")
    pairs = {"backend": "openai_compatible", "model_id": "m", "endpoint_url": "http://127.0.0.1:9/v1",
             "key_file": str(key), "allow_uncached": "true"}  # fmt: skip
    with pytest.raises(ConfigError, match="key_file") as caught:
        compose.make_generator(settings(tmp_path, **{f"generation__{name}": value for name, value in pairs.items()}))
    assert "two words" not in str(caught.value)


def test_forbidden_terms_come_from_their_file_and_are_shown_nowhere(tmp_path: Path) -> None:
    terms = tmp_path / "terms.txt"
    terms.write_text("zanzibrand\n\n  red tide \n", "utf-8")
    chosen = settings(tmp_path, answering__forbidden_terms_file=str(terms))
    naming = compose.make_naming(chosen)
    assert naming.contains("the Red  Tide rises")
    assert "zanzibrand" not in repr(naming) + repr(chosen)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00broken"])
def test_a_terms_file_that_cannot_be_read_is_refused_at_start(tmp_path: Path, content: bytes | None) -> None:
    terms = tmp_path / "terms.txt"
    if content is not None:
        terms.write_bytes(content)
    with pytest.raises(ConfigError, match="forbidden_terms_file"):
        compose.check_startable(settings(tmp_path, answering__forbidden_terms_file=str(terms)))


def test_a_version_keeps_tokens_for_the_reranker_that_reads_and_not_for_a_folder_left_over(tmp_path: Path) -> None:
    left_over = str(bert(tmp_path / "model", "BertForSequenceClassification"))

    def tokenizer(**rerank: str) -> str:
        try:
            made = compose.make_tokenizer(settings(tmp_path, **rerank))
        except ConfigError as error:  # an installation may come without a cross-encoder
            return str(error)
        return made.stamp if made else "none"

    assert tokenizer(rerank__backend="embedded", rerank__folder=left_over) == tokenizer(rerank__backend="embedded")
