"""Settings to a reranker that reads: which model, with which say, and what is refused before the first question."""

import json
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from domain.errors import ConfigError
from domain.types import Query
from retrieval import opening
from retrieval.cross_encoder import CrossEncoder
from retrieval.mixing import ReadingReranker
from retrieval.runtimes import Choice
from tests.fakes import chunk, hits
from tests.retrieval.tiny_models import bert
from tests.tidegate.tiny import settings
from tidegate.compose import make_reranker, make_tokenizer

FOUND = hits(chunk("a#0", "the kiln is hot"), chunk("b#0", "blue glaze"), chunk("c#0", "cold"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert(tmp_path_factory.mktemp("reranker"), "BertForSequenceClassification", seed=GOOD_SEED)


GOOD_SEED = 0  # a random model ranks the known questions rightly with one seed and wrongly with another
ONNX = {"rerank__backend": "cross_encoder", "rerank__runtime": "onnx"}  # float32 on every machine


def reading(folder: Path, **others: str) -> ReadingReranker:
    chosen = settings(folder, **(ONNX | others), rerank__folder=str(folder))
    reranker = make_reranker(chosen)
    assert isinstance(reranker, ReadingReranker)
    return reranker


async def test_a_foreign_cross_encoder_orders_by_its_logits(folder: Path) -> None:
    reranker = reading(folder)
    given = await reranker.rerank(Query("how hot is the kiln"), FOUND)
    logits = reranker.engine.score("how hot is the kiln", given.hits)
    assert [hit.score for hit in given.hits] == pytest.approx(logits)
    assert logits == sorted(logits, reverse=True)
    reranker.engine.close()


async def test_the_share_of_the_settings_is_stronger_than_the_models(folder: Path) -> None:
    reranker = reading(folder, rerank__share="0.25", rerank__threads="2")
    assert reranker.tag.startswith("0.25*reranker")
    assert "+features-" in reranker.tag
    given = await reranker.rerank(Query("how hot is the kiln"), FOUND)
    assert {hit.method for hit in given.hits} == {reranker.tag}
    reranker.engine.close()


def test_a_model_that_does_not_rank_is_refused_by_its_folder(tmp_path: Path) -> None:
    bad = bert(tmp_path, "BertForSequenceClassification", seed=GOOD_SEED)
    weights = load_file(bad / "model.safetensors")
    turned = {key: -value if key.startswith("classifier.") else value for key, value in weights.items()}
    save_file(turned, bad / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match=f"{tmp_path} does not rank"):
        reading(bad)


def test_the_shipped_model_that_is_not_there_is_told_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "SHIPPED", tmp_path / "nothing")
    with pytest.raises(ConfigError, match=r"nothing: set it to 'features', or train one"):
        make_reranker(settings(tmp_path, rerank__backend="embedded"))


def test_an_evaluation_reads_everything_however_long_it_takes(folder: Path) -> None:
    chosen = settings(folder, **ONNX, rerank__folder=str(folder), rerank__within_ms="1")
    hurried, unhurried = make_reranker(chosen), make_reranker(chosen, hurried=False)
    assert isinstance(hurried, ReadingReranker)
    assert isinstance(unhurried, ReadingReranker)
    assert hurried.engine.within_s == 0.001
    assert unhurried.engine.within_s is None


def test_weights_that_a_tiny_config_contradicts_are_refused(tmp_path: Path) -> None:
    model = bert(tmp_path, "BertForSequenceClassification", seed=GOOD_SEED)
    config = json.loads((model / "config.json").read_text()) | {"reading_share": 3}
    (model / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="reading_share 3"):
        reading(model)


def test_passages_are_cut_for_the_model_that_reads_and_for_nobody_else(folder: Path) -> None:
    reads = settings(folder, **ONNX, rerank__folder=str(folder))
    kept = make_tokenizer(reads)
    assert kept is not None
    assert kept.stamp == CrossEncoder(folder, Choice("onnx")).stamp
    assert make_tokenizer(settings(folder)) is None
