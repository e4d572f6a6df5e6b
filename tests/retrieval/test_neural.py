import json
from pathlib import Path

import numpy as np
import pytest

from domain.errors import ConfigError
from retrieval.neural import MINILM, CrossEncoder, SentenceEncoder, batches, minilm_folder
from retrieval.word_vectors import word_vectors
from tests.fakes import chunk, hits
from tests.retrieval.tiny_models import WORDS, bert

TEXTS = ["the kiln is hot", "", "glaze fires at 900 degrees " * 40, "blue", "窑 \ud800 \x00"]


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert(tmp_path_factory.mktemp("encoder"), "BertModel")


@pytest.fixture(scope="module")
def scorer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert(tmp_path_factory.mktemp("scorer"), "BertForSequenceClassification")


def reference(folder: Path, texts: list[str], pooling: str, max_tokens: int) -> np.ndarray:
    """transformers' own BERT, one text at a time."""
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    rows = []
    with torch.inference_mode():
        for text in texts:
            ids = tokenizer(text, truncation=True, max_length=max_tokens, return_tensors="pt")["input_ids"]
            states = model(input_ids=ids).last_hidden_state[0]
            pooled = states.mean(0) if pooling == "mean" else states[0]
            rows.append(torch.nn.functional.normalize(pooled, dim=0).numpy())
    return np.stack(rows)


def pooling_config(folder: Path, **modes: bool) -> None:
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{k}": v for k, v in modes.items()}))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_are_those_of_transformers(tmp_path: Path, pooling: str) -> None:
    folder = bert(tmp_path, "BertModel", seed=1)
    pooling_config(folder, mean_tokens=pooling == "mean", cls_token=pooling == "cls")
    texts = TEXTS[:4]
    vectors = SentenceEncoder(folder, max_tokens=32).embed_documents(texts)
    assert vectors == pytest.approx(reference(folder, texts, pooling, 32), abs=1e-5)


def test_the_packed_forward_equals_the_plain_one(encoder_folder: Path) -> None:
    packed = SentenceEncoder(encoder_folder, max_tokens=32)
    plain = SentenceEncoder(encoder_folder, max_tokens=32, dtype="float64")  # only float32 is packed
    assert packed.embed_documents(TEXTS) == pytest.approx(plain.embed_documents(TEXTS), abs=1e-5)


def test_a_vector_does_not_depend_on_its_batch(encoder_folder: Path) -> None:
    encoder = SentenceEncoder(encoder_folder, max_tokens=64, batch_tokens=256)
    together = encoder.embed_documents(TEXTS)
    alone = np.concatenate([encoder.embed_documents([text]) for text in TEXTS])
    assert together == pytest.approx(alone, abs=1e-5)


def test_batches_keep_every_position_once_and_within_the_budget() -> None:
    for seed in range(30):
        lengths = np.random.default_rng(seed).integers(1, 300, size=70).tolist()
        groups = list(batches(lengths, 512))
        assert sorted(i for group in groups for i in group) == list(range(70))
        assert all(len(group) == 1 or len(group) * max(lengths[i] for i in group) <= 512 for group in groups)


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
    with pytest.raises(ConfigError, match="exactly one"):
        CrossEncoder(bert(tmp_path / "three", "BertForSequenceClassification", labels=3), max_tokens=64)
    pickled = bert(tmp_path / "pickled", "BertForSequenceClassification")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"no \*\.safetensors"):
        CrossEncoder(pickled, max_tokens=64)
    dense = bert(tmp_path / "dense", "BertModel")
    (dense / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Dense"}]))
    with pytest.raises(ConfigError, match="Dense"):
        SentenceEncoder(dense, max_tokens=32)


def test_an_encoder_is_refused_as_a_cross_encoder_because_its_head_would_be_random(tmp_path: Path) -> None:
    folder = bert(tmp_path, "BertModel")
    config = json.loads((folder / "config.json").read_text()) | {"id2label": {"0": "LABEL_0"}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="classifier"):
        CrossEncoder(folder, max_tokens=64)


PASSAGES = hits(
    chunk("d#0", "the kiln is hot", title="kiln"),
    chunk("d#1", "blue glaze " * 200, title="glaze"),
    chunk("d#2", "", title="cold"),
    chunk("d#3", "fires at degrees", title="the"),
)


def test_cross_encoder_scores_are_the_logits_of_transformers(scorer_folder: Path) -> None:
    import torch
    import transformers

    model = transformers.AutoModelForSequenceClassification.from_pretrained(scorer_folder).eval()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(scorer_folder / "tokenizer.json"))
    scores = CrossEncoder(scorer_folder, max_tokens=64).score("how hot is the kiln", PASSAGES)
    with torch.inference_mode():
        pair = tokenizer(
            "how hot is the kiln", "kiln\nthe kiln is hot", return_tensors="pt", return_token_type_ids=True
        )
        logit = model(**pair).logits.item()
    assert scores[0] == pytest.approx(logit, abs=1e-4)


def test_a_pair_score_does_not_depend_on_its_batch(scorer_folder: Path) -> None:
    scorer = CrossEncoder(scorer_folder, max_tokens=64, batch_tokens=128)
    together = scorer.score("how hot", PASSAGES)
    assert together == pytest.approx([scorer.score("how hot", [hit])[0] for hit in PASSAGES], abs=1e-4)


def test_overlong_questions_and_passages_are_cut_and_never_fail(scorer_folder: Path) -> None:
    scores = CrossEncoder(scorer_folder, max_tokens=64).score("how hot is the kiln " * 100, PASSAGES)
    assert len(scores) == len(PASSAGES)
    assert np.isfinite(scores).all()


def test_bf16_keeps_the_order_of_fp32(scorer_folder: Path) -> None:
    words = WORDS[4:14]
    rng = np.random.default_rng(0)
    many = hits(*(chunk(f"d#{i}", " ".join(rng.choice(words, 12))) for i in range(40)))
    full, half = (
        np.array(CrossEncoder(scorer_folder, dtype=dtype, max_tokens=64).score("how hot is the kiln", many))
        for dtype in ("float32", "bfloat16")
    )
    ranks = np.argsort(np.argsort(full)), np.argsort(np.argsort(half))
    assert np.corrcoef(*ranks)[0, 1] > 0.98  # Spearman


def test_words_without_known_pieces_have_a_zero_vector_and_others_unit_ones(encoder_folder: Path) -> None:
    vectors = word_vectors(encoder_folder)(["kiln", "kilns", "zzz"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 0])
    assert 0 < vectors[0] @ vectors[1] < 1  # "kilns" is "kiln" and "##s"


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
