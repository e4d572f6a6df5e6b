"""The lexical arm on disk: the same bytes, the same answers, and damage that is named."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from domain.errors import StorageError
from retrieval.arms import Visible
from retrieval.lexical import Bm25Arm

TEXTS = ["pump seal pump", "", "valve", "seal of the rotor", "pump valve"]


def test_an_arm_reads_back_as_it_was_saved(tmp_path: Path):
    texts = [*TEXTS, "AR-7 泵 冷却液 zürich"]
    arm, visible = Bm25Arm.build(texts), Visible(np.ones(len(texts), np.bool_))
    arm.save(tmp_path)
    again = Bm25Arm.load(tmp_path)
    for query in ("pump seal", "AR-7", "冷却", "Zürich"):
        before, after = arm.search(query, 50, visible), again.search(query, 50, visible)
        assert after.rows.tolist() == before.rows.tolist()
        assert after.scores.tobytes() == before.scores.tobytes()
        assert before.rows.size


def test_equal_texts_give_equal_bytes(tmp_path: Path):
    for name in ("one", "two"):
        Bm25Arm.build(TEXTS).save(tmp_path / name)
    files = {"counts.npy", "lengths.npy", "rows.npy", "starts.npy", "vocabulary.json"}
    assert {file.name for file in (tmp_path / "one").iterdir()} == files
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def _emptied(file: Path) -> None:
    file.write_bytes(b"")


def _overwritten(file: Path) -> None:
    file.write_bytes(b"\xff\xfe not what it was")


@pytest.mark.parametrize("name", ["counts.npy", "lengths.npy", "rows.npy", "starts.npy", "vocabulary.json"])
@pytest.mark.parametrize("damage", [_cut, _emptied, _overwritten, Path.unlink])
def test_a_damaged_file_is_named(name: str, damage: Callable[[Path], None], tmp_path: Path):
    Bm25Arm.build(["pump valve", "valve"]).save(tmp_path)
    damage(tmp_path / name)
    with pytest.raises(StorageError, match=name):
        Bm25Arm.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("starts.npy", np.array([0, 1], np.int64)),  # fewer terms than the vocabulary
        ("starts.npy", np.array([0, 3, 2], np.int64)),
        ("rows.npy", np.array([0, 0, 2], np.int32)),  # there are two rows, 0 and 1
        ("rows.npy", np.array([0, -1, 1], np.int32)),
        ("rows.npy", np.array([0, 0, 1], np.float32)),
        ("counts.npy", np.array([1, 0, 1], np.int32)),
        ("counts.npy", np.array([1, 1], np.int32)),
        ("lengths.npy", np.array([2, 7], np.int32)),
    ],
)
def test_files_that_do_not_belong_together_are_refused(name: str, values: np.ndarray, tmp_path: Path):
    Bm25Arm.build(["pump valve", "valve"]).save(tmp_path)
    np.save(tmp_path / name, values)
    with pytest.raises(StorageError, match=name):
        Bm25Arm.load(tmp_path)


@pytest.mark.parametrize("vocabulary", [{"pump": 0}, ["pump", 1]])
def test_a_vocabulary_that_is_no_list_of_terms_is_refused(vocabulary: object, tmp_path: Path):
    Bm25Arm.build(["pump valve", "valve"]).save(tmp_path)
    (tmp_path / "vocabulary.json").write_text(json.dumps(vocabulary))
    with pytest.raises(StorageError, match=r"vocabulary\.json"):
        Bm25Arm.load(tmp_path)
