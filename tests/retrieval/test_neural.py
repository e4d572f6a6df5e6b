import json
from pathlib import Path

import numpy as np
import pytest

from domain.errors import ConfigError
from retrieval.neural import MINILM, SentenceEncoder, minilm_folder
from retrieval.runtimes import Choice
from retrieval.transformers_runtime import TransformersModel
from retrieval.word_vectors import word_vectors
from tests.retrieval.tiny_models import bert

TEXTS = ["the kiln is hot", "", "glaze fires at 900 degrees " * 40, "blue", "窑 \ud800 \x00"]
FULL = Choice("openvino", "float32")


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert(tmp_path_factory.mktemp("encoder"), "BertModel")


def pooling_config(folder: Path, **modes: bool) -> None:
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{k}": v for k, v in modes.items()}))


@pytest.mark.slow  # transformers takes seconds to import
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_are_those_of_transformers(tmp_path: Path, pooling: str) -> None:
    folder = bert(tmp_path, "BertModel", seed=1)
    pooling_config(folder, mean_tokens=pooling == "mean", cls_token=pooling == "cls")
    encoder, plain = (SentenceEncoder(folder, FULL, max_tokens=32) for _ in range(2))
    plain._runtime = TransformersModel(folder, pooling, "cpu", "float32", 1, plain=True)
    assert encoder.embed_documents(TEXTS) == pytest.approx(plain.embed_documents(TEXTS), abs=1e-5)


@pytest.mark.slow
def test_the_bundled_encoder_is_that_of_sentence_transformers() -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    peer = sentence_transformers.SentenceTransformer(str(minilm_folder()), device="cpu")
    texts = ["How hot does the oven get?", "The kiln is heated to 900 degrees. " * 30, ""]
    vectors = SentenceEncoder(minilm_folder()).embed_documents(texts)
    assert (vectors * peer.encode(texts, normalize_embeddings=True)).sum(1).min() > 0.9995


def test_a_vector_does_not_depend_on_its_batch(encoder_folder: Path) -> None:
    encoder = SentenceEncoder(encoder_folder, max_tokens=64, batch_tokens=256)
    together = encoder.embed_documents(TEXTS)
    assert (together == np.concatenate([encoder.embed_documents([text]) for text in TEXTS])).all()


def test_a_text_that_comes_twice_is_computed_once(encoder_folder: Path) -> None:
    encoder = SentenceEncoder(encoder_folder, max_tokens=64)
    seen: list[int] = []
    runtime = encoder._runtime

    class Counting:
        name, pads, room = runtime.name, runtime.pads, runtime.room

        def __call__(self, batch):  # type: ignore[no-untyped-def]
            seen.append(len(batch.lengths))
            return runtime(batch)

    encoder._runtime = Counting()
    vectors = encoder.embed_documents(["hot", "cold", "hot", "hot"])
    assert sum(seen) == 2
    assert (vectors[[0, 0]] == vectors[[2, 3]]).all()


def test_the_tag_is_the_same_in_every_runtime_and_the_runtime_says_which(encoder_folder: Path) -> None:
    one, other = (SentenceEncoder(encoder_folder, Choice(name, "float32"), max_tokens=32) for name in ("onnx", "torch"))
    assert one.tag == other.tag
    assert (one.runtime, other.runtime) == ("onnx-float32", "torch-float32")


def test_the_tag_pins_weights_pooling_and_length(encoder_folder: Path, tmp_path: Path) -> None:
    other = bert(tmp_path / "other", "BertModel", seed=2)
    tags = [
        SentenceEncoder(encoder_folder, max_tokens=32, name="tiny").tag,
        SentenceEncoder(encoder_folder, max_tokens=64, name="tiny").tag,
        SentenceEncoder(other, max_tokens=32, name="tiny").tag,
    ]
    pooling_config(other, cls_token=True)
    tags.append(SentenceEncoder(other, max_tokens=32, name="tiny").tag)
    assert len(set(tags)) == 4
    assert SentenceEncoder(encoder_folder, max_tokens=32, name="tiny").tag == tags[0]


def test_prompts_of_the_model_stand_before_queries_and_documents(tmp_path: Path) -> None:
    folder = bert(tmp_path, "BertModel")
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "what is "}}))
    encoder = SentenceEncoder(folder, max_tokens=32)
    assert encoder.embed_queries(["hot"]) == pytest.approx(encoder.embed_documents(["what is hot"]), abs=1e-6)


def test_unusable_folders_are_refused_by_name_with_the_way_out(tmp_path: Path, encoder_folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"no-such.*Hugging Face layout"):
        SentenceEncoder(tmp_path / "no-such")
    with pytest.raises(ConfigError, match=r"max_tokens is 128.*8 to 64"):
        SentenceEncoder(encoder_folder, max_tokens=128)
    dense = bert(tmp_path / "dense", "BertModel")
    (dense / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Dense"}]))
    with pytest.raises(ConfigError, match="Dense"):
        SentenceEncoder(dense, max_tokens=32)


def test_words_without_known_pieces_have_a_zero_vector_and_others_unit_ones(encoder_folder: Path) -> None:
    vectors = word_vectors(encoder_folder)(["kiln", "kilns", "zzz"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 0])
    assert 0 < vectors[0] @ vectors[1] < 1  # "kilns" is "kiln" and "##s"


@pytest.mark.slow
def test_the_bundled_encoder_finds_a_paraphrase() -> None:
    encoder = SentenceEncoder(minilm_folder(), name=MINILM)
    assert encoder.dimensions == 384
    question, answer, other = encoder.embed_documents(
        [
            "How hot does the oven get?",
            "The maximum temperature of the kiln is 900 degrees.",
            "The budget was approved.",
        ]
    )
    assert question @ answer > question @ other + 0.2


def test_tokens_are_counted_as_they_are_read(encoder_folder: Path) -> None:
    short, whole = SentenceEncoder(encoder_folder, max_tokens=8), SentenceEncoder(encoder_folder, max_tokens=32)
    text = "the pump is hot " * 3
    assert short.count_tokens([text, text]) == 16  # two texts, each cut at 8
    assert whole.count_tokens([text]) == len(whole.tokenizer.cut(text)) + 2  # the special ones at both ends
    assert whole.count_tokens([]) == 0
