"""What every embedder promises, run on each of them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pytest

from domain.ports import Embedder
from retrieval.bedrock import BedrockEmbedder
from retrieval.embedding import CachedQueries, HashingEmbedder
from retrieval.neural import SentenceEncoder
from tests.bedrock_stub import BedrockStub
from tests.retrieval.tiny_models import bert


def hashing(folder: Path) -> Embedder:
    return HashingEmbedder(64)


def cached(folder: Path) -> Embedder:
    return CachedQueries(HashingEmbedder(64), 2)


def sentence_encoder(folder: Path) -> Embedder:
    return SentenceEncoder(bert(folder, "BertModel"), max_tokens=32)


@contextmanager
def titan(folder: Path) -> Iterator[Embedder]:
    with BedrockStub() as stub, stub.client() as client, ThreadPoolExecutor(2) as pool:
        yield BedrockEmbedder(client, "amazon.titan-embed-text-v2:0", 256, pool)


@contextmanager
def cohere(folder: Path) -> Iterator[Embedder]:
    with BedrockStub() as stub, stub.client() as client, ThreadPoolExecutor(2) as pool:
        yield BedrockEmbedder(client, "cohere.embed-multilingual-v3", 1024, pool)


EMBEDDERS = [hashing, cached, sentence_encoder, titan, cohere]
TEXTS = ["the kiln is hot", "", "   ", "a\x00b", "\ud800", "ℌ窑", "hot " * 500, "the kiln is hot"]


@pytest.fixture(scope="module", params=EMBEDDERS, ids=lambda make: make.__name__)
def embedder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
    made = request.param(tmp_path_factory.mktemp("model"))
    with made if isinstance(made, AbstractContextManager) else nullcontext(made) as embedder:
        yield embedder


def test_every_text_gets_a_finite_row_of_length_one(embedder: Embedder) -> None:
    for rows in (embedder.embed_documents(TEXTS), embedder.embed_queries(TEXTS)):
        assert rows.shape == (len(TEXTS), embedder.dimensions)
        assert rows.dtype == np.float32
        assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed_documents([]).shape == (0, embedder.dimensions)
    assert embedder.embed_queries([]).shape == (0, embedder.dimensions)


def test_the_same_texts_give_the_same_bits_again(embedder: Embedder) -> None:
    assert (embedder.embed_documents(TEXTS) == embedder.embed_documents(TEXTS)).all()


def test_order_is_kept_and_company_does_not_matter(embedder: Embedder) -> None:
    backwards = embedder.embed_documents(TEXTS[::-1])[::-1]
    assert embedder.embed_documents(TEXTS) == pytest.approx(backwards, abs=1e-5)


def test_the_tag_names_what_made_the_vectors(embedder: Embedder) -> None:
    assert embedder.tag
    assert embedder.tag == embedder.tag.strip()
