"""The lexical arm on disk: the same bytes, the same answers, and damage that is named."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from domain.errors import StorageError
from retrieval.arms import Visible
from retrieval.lexical import Bm25Arm

TEXTS = ["pump seal pump", "", "valve", "seal of the rotor", "pump valve"]
FILES = ["counts.npy", "lengths.npy", "rows.npy", "starts.npy", "term_ends.npy", "terms.npy"]


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
        Bm25Arm.build(iter(TEXTS)).save(tmp_path / name)
    assert sorted(file.name for file in (tmp_path / "one").iterdir()) == FILES
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_an_opened_arm_reads_from_the_disk_and_not_from_memory(tmp_path: Path):
    Bm25Arm.build(TEXTS).save(tmp_path)
    segment = Bm25Arm.load(tmp_path).segment
    for values in (segment.terms.text, segment.terms.ends, segment.starts, segment.rows, segment.counts):
        assert isinstance(values.base, np.memmap)


@pytest.mark.parametrize(("times", "kind"), [(255, np.uint8), (256, np.uint16), (70_000, np.int32)])
def test_counts_take_no_more_bytes_than_the_largest_needs(times: int, kind: type, tmp_path: Path):
    Bm25Arm.build(["pump " * times]).save(tmp_path)
    counts = Bm25Arm.load(tmp_path).segment.counts
    assert (counts.dtype, counts.tolist()) == (kind, [times])


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def _emptied(file: Path) -> None:
    file.write_bytes(b"")


def _overwritten(file: Path) -> None:
    file.write_bytes(b"\xff\xfe not what it was")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", [_cut, _emptied, _overwritten, Path.unlink])
def test_a_damaged_file_is_named(name: str, damage: Callable[[Path], None], tmp_path: Path):
    Bm25Arm.build(["pump valve", "valve"]).save(tmp_path)
    damage(tmp_path / name)
    with pytest.raises(StorageError, match=name):
        Bm25Arm.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("term_ends.npy", np.array([0, 4, 8], np.int64)),  # pump and valv: pump ends at 4, valv at 8 of 9
        ("starts.npy", np.array([0, 1], np.int64)),  # fewer terms than there are
        ("starts.npy", np.array([1, 2, 3], np.int64)),
        ("rows.npy", np.array([0, 0], np.int32)),
        ("rows.npy", np.array([0, 0, 1], np.float32)),
        ("rows.npy", np.array([[0, 0, 1]], np.int32)),
        ("counts.npy", np.array([1, 1], np.uint8)),
    ],
)
def test_files_that_do_not_belong_together_are_refused(name: str, values: np.ndarray, tmp_path: Path):
    Bm25Arm.build(["pump valves", "valve"]).save(tmp_path)
    if name == "term_ends.npy":
        np.save(tmp_path / "terms.npy", np.frombuffer(b"pumpvalve", np.uint8))
    np.save(tmp_path / name, values)
    with pytest.raises(StorageError, match=name):
        Bm25Arm.load(tmp_path)


@pytest.mark.parametrize("row", [-1, 2])
def test_a_row_that_does_not_exist_is_never_read_as_another(row: int, tmp_path: Path):
    Bm25Arm.build(["pump valve", "valve"]).save(tmp_path)
    np.save(tmp_path / "rows.npy", np.array([row, 0, 1], np.int32))
    with pytest.raises(StorageError, match=r"names rows .* but holds 2"):
        Bm25Arm.load(tmp_path).search("pump", 1, Visible(np.ones(2, np.bool_)))
