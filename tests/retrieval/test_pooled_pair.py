"""The model that is trained against the one that is served: the same scores from the same folder."""

from pathlib import Path

import numpy as np
import pytest
import torch

from domain.errors import ConfigError
from retrieval.cross_encoder import CrossEncoder
from retrieval.model_folder import minilm_folder
from retrieval.pooled_pair import PooledPair
from retrieval.runtimes import Choice
from tests.retrieval.tiny_pairs import tiny_model

TEXTS = ("The tide gate opens at six in the morning.", "Bananas are yellow. " * 40, "", "\ud800 half a character")


@pytest.fixture(scope="module")
def model() -> PooledPair:
    """The bundled encoder with a head that says something."""
    torch.set_num_threads(1)
    torch.manual_seed(3)
    model = PooledPair.starting_from(None, 64, first_layer=5)
    for name in ("head.product", "head.cls", "head.bias"):
        model.trained[name].copy_(torch.randn(model.trained[name].shape) / 10)
    return model


@pytest.fixture(scope="module")
def folder(model: PooledPair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    model.save(folder, reading_share=0.3)
    return folder


def test_what_is_served_scores_as_what_was_trained(model: PooledPair, folder: Path) -> None:
    served = CrossEncoder(folder, Choice("torch", "float32"))
    question, *passages = model.cut(["When does the tide gate open?", *TEXTS])
    trained = model.logits([(question, passage) for passage in passages])
    joined = [served.join(served.cut("When does the tide gate open?"), served.cut(text)) for text in TEXTS]
    # bfloat16 against float32, over scores from -1 to 9
    np.testing.assert_allclose(trained, served.logits(joined), atol=0.06)


def test_a_score_does_not_depend_on_its_batch(model: PooledPair) -> None:
    question, *passages = model.cut(["When does the tide gate open?", *TEXTS])
    crowd = model.logits([(question, passage) for passage in passages])
    alone = [model.logits([(question, passage)])[0] for passage in passages]
    np.testing.assert_allclose(crowd, alone, atol=0.03)


def test_a_stored_model_is_trained_further_from_where_it_was(model: PooledPair, folder: Path) -> None:
    again = PooledPair.starting_from(folder, 64, first_layer=5)
    for name, tensor in model.trained.items():
        assert torch.equal(again.trained[name], tensor.bfloat16().float()), name


def test_only_a_model_of_this_kind_can_be_trained_further() -> None:
    with pytest.raises(ConfigError, match="can be trained further"):
        PooledPair.starting_from(minilm_folder(), 64)


def test_a_stored_folder_can_be_read_by_others_than_its_owner_and_is_the_same_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tiny_model(seed=1).save(tmp_path / name, reading_share=0.25)
    one, other = (tmp_path / name / "model.safetensors" for name in ("a", "b"))
    assert one.read_bytes() == other.read_bytes()
    assert one.stat().st_mode == (tmp_path / "a" / "config.json").stat().st_mode
