"""A model is what its folder holds: the digest of the settings moves with it, and an old decision no longer speaks."""

import os
from pathlib import Path

import pytest

from domain.releases import Binding
from tests.tidegate.tiny import settings
from tidegate.effective import digest
from tidegate.measuring import binding
from tidegate.model_content import model_content


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text("{}")
    (folder / "1_Pooling" / "config.json").write_text("{}")
    (folder / "README.md").write_text("a card")
    return folder


def bound(tmp_path: Path, model: Path) -> Binding:
    chosen = settings(tmp_path, rerank__backend="cross_encoder", rerank__folder=str(model))
    return binding(chosen, "v0123456789ab", ())


@pytest.mark.parametrize("changed", ["model.safetensors", "config.json", "1_Pooling/config.json"])
def test_a_decision_about_other_weights_is_about_something_else(tmp_path: Path, model: Path, changed: str) -> None:
    before = bound(tmp_path, model)
    assert bound(tmp_path, model) == before
    (model / changed).write_bytes(b"{ }")
    assert bound(tmp_path, model) != before


def test_weights_of_the_same_size_and_time_are_told_apart_once_replaced(tmp_path: Path, model: Path) -> None:
    file, before = model / "model.safetensors", bound(tmp_path, model)
    there, other = file.stat(), model / "other.part"
    other.write_bytes(b"weighty")
    os.utime(other, ns=(there.st_atime_ns, there.st_mtime_ns))
    other.replace(file)
    assert bound(tmp_path, model) != before


def test_a_card_changes_no_answer(tmp_path: Path, model: Path) -> None:
    before = bound(tmp_path, model)
    (model / "README.md").write_text("another card")
    (model / ".training").mkdir()
    (model / ".training" / "lists.json").write_text("[]")
    assert bound(tmp_path, model) == before


def test_a_folder_that_is_not_there_is_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert model_content(tmp_path / "nowhere") == "missing" != model_content(tmp_path / "empty")


def test_an_encoder_folder_counts_as_well(tmp_path: Path, model: Path) -> None:
    chosen = settings(tmp_path, embedding__backend="folder", embedding__folder=str(model))
    before = digest(chosen)
    (model / "model.safetensors").write_bytes(b"others")
    assert digest(chosen) != before
