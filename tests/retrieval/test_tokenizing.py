import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer as Original

from domain.errors import ConfigError
from retrieval.tokenizing import Tokenizer, rooms
from tests.retrieval.tiny_models import bert, roberta, write_tokenizer

LONG = "glaze fires at degrees " * 30
TEXTS = ["the kiln is hot", "", LONG, "blue kilns", "窑 \x00"]


@pytest.fixture(scope="module", params=[lambda path: bert(path, "BertModel"), roberta], ids=["bert", "roberta"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return request.param(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("question", TEXTS)
@pytest.mark.parametrize("passage", TEXTS)
def test_joined_ids_are_those_of_the_tokenizer_itself(folder: Path, question: str, passage: str) -> None:
    ours, original = Tokenizer(folder, 32), Original.from_file(str(folder / "tokenizer.json"))
    original.enable_truncation(32, strategy="longest_first")
    pair, wanted = ours.join(ours.cut(question), ours.cut(passage)), original.encode(question, passage)
    assert pair.ids.tolist() == wanted.ids
    assert pair.types.tolist() == wanted.type_ids
    assert pair.truncated == (sum(side == 1 for side in wanted.sequence_ids) < len(ours.cut(passage)))


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_alone_is_as_the_tokenizer_itself_has_it(folder: Path, text: str) -> None:
    ours, original = Tokenizer(folder, 32), Original.from_file(str(folder / "tokenizer.json"))
    original.enable_truncation(32)
    assert ours.alone(ours.cut(text)).tolist() == original.encode(text).ids


def test_no_text_fails_lone_surrogates_included(folder: Path) -> None:
    assert Tokenizer(folder, 32).cut("\ud800").dtype == np.int32


def test_the_longer_side_loses_its_end_first() -> None:
    assert rooms(3, 4, 10) == (3, 4)
    assert rooms(3, 20, 10) == (3, 7)
    assert rooms(20, 3, 10) == (7, 3)
    assert rooms(20, 20, 11) == (5, 6)
    for seed in range(200):
        first, second, room = np.random.default_rng(seed).integers(0, 40, 3).tolist()
        kept = rooms(first, second, room)
        assert sum(kept) == min(room, first + second)
        assert kept[0] <= first
        assert kept[1] <= second


def test_equal_stamps_mean_equal_cuts_whatever_else_the_file_says(tmp_path: Path) -> None:
    one, other = bert(tmp_path / "one", "BertModel"), bert(tmp_path / "other", "BertModel")
    write_tokenizer(other, pair="[CLS] $A [SEP] [SEP] $B [SEP]")  # joins otherwise, cuts alike
    described = json.loads((other / "tokenizer.json").read_text())
    assert Tokenizer(one, 32).stamp == Tokenizer(other, 32).stamp
    described["normalizer"] = None
    (other / "tokenizer.json").write_text(json.dumps(described))
    assert Tokenizer(one, 32).stamp != Tokenizer(other, 32).stamp


def test_a_tokenizer_that_cannot_join_is_refused(tmp_path: Path) -> None:
    folder = bert(tmp_path, "BertModel")
    write_tokenizer(folder, pair="[CLS] $A [SEP]:1 $B [SEP]:1")
    Tokenizer(folder, 32)
    described = json.loads((folder / "tokenizer.json").read_text())
    described["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Removed", "invert": False}
    (folder / "tokenizer.json").write_text(json.dumps(described))
    with pytest.raises(ConfigError, match="told apart"):
        Tokenizer(folder, 32)
