"""What every pair scorer promises, run on each of them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pytest

from domain.ports import PairScorer
from retrieval.bedrock import BedrockPairScorer
from retrieval.cross_encoder import CrossEncoder
from retrieval.pair_engine import PairEngine
from retrieval.reranking import FeatureReranker, read_weights, reorder
from tests.bedrock_stub import BedrockStub
from tests.fakes import chunk, hits
from tests.retrieval.tiny_models import bert


def feature_reranker(folder: Path) -> PairScorer:
    return FeatureReranker(read_weights())


def cross_encoder(folder: Path) -> PairScorer:
    return CrossEncoder(bert(folder, "BertForSequenceClassification"), max_tokens=64, batch_tokens=128)


def pair_engine(folder: Path) -> PairScorer:
    model = CrossEncoder(bert(folder, "BertForSequenceClassification"), max_tokens=64, batch_tokens=128)
    return PairEngine([model], batch_tokens=128, remembered=0)


@contextmanager
def bedrock(folder: Path) -> Iterator[PairScorer]:
    with BedrockStub() as stub, stub.client(service="bedrock-agent-runtime") as client:
        yield BedrockPairScorer(client, "arn:aws:bedrock:eu-central-1::foundation-model/cohere.rerank-v3-5:0")


SCORERS = [feature_reranker, cross_encoder, pair_engine, bedrock]
FOUND = hits(
    chunk("a#0", "the kiln is hot"),
    chunk("b#0", ""),
    chunk("c#0", "glaze " * 400),
    chunk("d#0", "窑 \ud800 \x00"),
    chunk("e#0", "the kiln is hot"),
)


@pytest.fixture(scope="module", params=SCORERS, ids=lambda make: make.__name__)
def scorer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairScorer]:
    made = request.param(tmp_path_factory.mktemp("model"))
    with made if isinstance(made, AbstractContextManager) else nullcontext(made) as scorer:
        yield scorer


@pytest.mark.parametrize("query", ["how hot is the kiln", "", "窑", "\ud800", "hot " * 300])
def test_every_hit_gets_one_finite_score(scorer: PairScorer, query: str) -> None:
    scores = scorer.score(query, FOUND)
    assert len(scores) == len(FOUND)
    assert np.isfinite(scores).all()
    assert all(type(score) is float for score in scores)


def test_no_hits_give_no_scores(scorer: PairScorer) -> None:
    assert list(scorer.score("kiln", ())) == []


def test_the_same_list_gives_the_same_scores_again(scorer: PairScorer) -> None:
    assert list(scorer.score("hot kiln", FOUND)) == list(scorer.score("hot kiln", FOUND))


def test_the_order_of_the_hits_given_does_not_matter(scorer: PairScorer) -> None:
    forwards = scorer.score("hot kiln", FOUND)
    backwards = list(scorer.score("hot kiln", FOUND[::-1]))[::-1]
    assert forwards == pytest.approx(backwards, abs=1e-4)


def test_scores_do_not_depend_on_the_company_unless_listwise(scorer: PairScorer) -> None:
    if scorer.listwise:
        return
    assert scorer.score("hot kiln", FOUND) == pytest.approx(
        [scorer.score("hot kiln", [hit])[0] for hit in FOUND], abs=1e-4
    )


def test_the_scores_make_a_permutation(scorer: PairScorer) -> None:
    found = reorder(FOUND, scorer.score("hot kiln", FOUND), scorer.tag)
    assert {hit.chunk.id for hit in found} == {hit.chunk.id for hit in FOUND}
    assert scorer.tag
