from pathlib import Path

import numpy as np
import pytest

from domain.errors import ConfigError
from retrieval.cross_encoder import CrossEncoder
from retrieval.model_folder import minilm_folder
from retrieval.openvino_runtime import bfloat16_cpu
from retrieval.runtimes import Choice
from retrieval.transformers_runtime import TransformersModel
from tests.fakes import chunk, hits
from tests.retrieval.tiny_models import WORDS, bert, pooled_pair

FULL = Choice("openvino", "float32")
QUESTION = "how hot is the kiln"
PASSAGES = hits(
    chunk("d#0", "the kiln is hot", title="kiln"),
    chunk("d#1", "blue glaze " * 200, title="glaze"),
    chunk("d#2", "", title="cold"),
    chunk("d#3", "fires at degrees", title="the"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert(tmp_path_factory.mktemp("scorer"), "BertForSequenceClassification")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pooled_pair(tmp_path_factory.mktemp("trained"))


@pytest.mark.slow  # transformers takes seconds to import
def test_scores_are_the_logits_of_transformers(folder: Path) -> None:
    plain = CrossEncoder(folder, FULL, max_tokens=64)
    plain._runtime = TransformersModel(folder, "classifier", "cpu", "float32", 1, plain=True)
    ours = CrossEncoder(folder, FULL, max_tokens=64).score(QUESTION, PASSAGES)
    assert ours == pytest.approx(plain.score(QUESTION, PASSAGES), abs=1e-4)


def test_a_pair_score_does_not_depend_on_its_batch(folder: Path) -> None:
    scorer = CrossEncoder(folder, max_tokens=64, batch_tokens=128)
    assert scorer.score("how hot", PASSAGES) == [scorer.score("how hot", [hit])[0] for hit in PASSAGES]


@pytest.mark.parametrize("question", ["", "how hot is the kiln " * 100, "\ud800"])
def test_empty_and_overlong_texts_never_fail(folder: Path, question: str) -> None:
    scores = CrossEncoder(folder, max_tokens=64).score(question, PASSAGES)
    assert np.isfinite(scores).all()
    assert len(scores) == len(PASSAGES)


def test_a_passage_that_lost_its_end_says_so(folder: Path) -> None:
    model = CrossEncoder(folder, max_tokens=16)
    question = model.cut("how hot")
    assert model.join(question, model.cut("blue glaze " * 20)).truncated
    assert not model.join(question, model.cut("blue glaze")).truncated


@pytest.mark.skipif(not bfloat16_cpu(), reason="this CPU does not multiply bfloat16")
def test_bf16_keeps_the_order_of_fp32(folder: Path) -> None:
    rng = np.random.default_rng(0)
    many = hits(*(chunk(f"d#{i}", " ".join(rng.choice(WORDS[4:14], 12))) for i in range(40)))
    full, half = (
        np.array(CrossEncoder(folder, Choice("openvino", dtype), max_tokens=64).score(QUESTION, many))
        for dtype in ("float32", "bfloat16")
    )
    ranks = np.argsort(np.argsort(full)), np.argsort(np.argsort(half))
    assert np.corrcoef(*ranks)[0, 1] > 0.98  # Spearman


def by_the_formula(folder: Path, question: str, passage: str) -> float:
    """The score of a pooled pair with torch, from hidden states by transformers: slow, plain, and in one place."""
    import torch
    import transformers
    from safetensors.torch import load_file

    trained = load_file(folder / "model.safetensors")
    model = transformers.AutoModel.from_pretrained(minilm_folder(), attn_implementation="eager").eval()
    model.load_state_dict(model.state_dict() | {k: v for k, v in trained.items() if k.startswith("encoder.")})
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm_folder())
    given = tokenizer(question, passage, truncation=True, max_length=160, return_tensors="pt")
    with torch.inference_mode():
        states = model(**given).last_hidden_state[0]
    sides = np.array([-1 if side is None else side for side in given.sequence_ids(0)])
    q, p = (torch.nn.functional.normalize(states[sides == side].mean(0), dim=0) for side in (0, 1))
    score = 10 * trained["head.scale"] * (q @ p) + 10 * (q * p) @ trained["head.product"]
    return float(score + states[0] @ trained["head.cls"] + trained["head.bias"])


@pytest.mark.slow
def test_a_pooled_pair_scores_by_its_formula(trained: Path) -> None:
    model = CrossEncoder(trained, FULL)
    assert model.max_tokens == 160
    for passage in ("The oven reaches 900 degrees.", "A budget was approved. " * 60):
        ours = model.logits([model.join(model.cut("How hot does it get?"), model.cut(passage))])[0]
        assert ours == pytest.approx(by_the_formula(trained, "How hot does it get?", passage), abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_runtimes_agree_about_a_pooled_pair_empty_texts_included(trained: Path, runtime: str) -> None:
    one, other = CrossEncoder(trained, FULL), CrossEncoder(trained, Choice(runtime, "float32"))
    texts = ["", "how hot", "the kiln reaches 900 degrees in an hour"]
    pairs = [one.join(one.cut(question), one.cut(passage)) for question in texts for passage in texts]
    assert np.isfinite(one.logits(pairs)).all()
    assert other.logits(pairs) == pytest.approx(one.logits(pairs), abs=2e-4)


def test_a_pooled_pair_on_another_base_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"was trained on 'all-minilm-l6-v2' \(0000.*train it anew"):
        CrossEncoder(pooled_pair(tmp_path, trained_layers=(), base_sha256="0" * 64))


def test_folders_that_do_not_rank_are_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"3 labels.*exactly one"):
        CrossEncoder(bert(tmp_path / "three", "BertForSequenceClassification", labels=3), max_tokens=64)
    with pytest.raises(ConfigError, match=r"lack 2 of .* such as 'classifier.weight'"):
        CrossEncoder(bert(tmp_path / "encoder", "BertModel"), max_tokens=64)
    pickled = bert(tmp_path / "pickled", "BertForSequenceClassification")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"no \*\.safetensors"):
        CrossEncoder(pickled, max_tokens=64)
