import numpy as np
import pytest

from domain.errors import StageFailed
from retrieval.arms import Visible
from retrieval.dense import ExactArm, cosines, proposed


def test_a_row_scores_the_same_bits_whatever_stands_around_it() -> None:
    rows = np.random.default_rng(0).normal(size=(64, 384)).astype(np.float32)
    doubled = np.concatenate([rows, rows[::-1]])
    scores = cosines(doubled, rows[3], None)
    assert (scores[:64] == scores[64:][::-1]).all()
    assert (cosines(doubled, rows[3], np.array([5, 90])) == scores[[5, 90]]).all()


def test_a_memory_mapped_file_is_searched_where_it_lies(tmp_path) -> None:  # type: ignore[no-untyped-def]
    np.save(tmp_path / "vectors.npy", np.eye(3, dtype=np.float32))
    arm = ExactArm(np.load(tmp_path / "vectors.npy", mmap_mode="r"))
    assert arm.search(np.eye(3, dtype=np.float32)[2], 1, Visible(np.ones(3, np.bool_))).rows.tolist() == [2]


def test_an_index_that_ignores_its_filter_is_refused_and_shows_nothing() -> None:
    # 30 rows, of which the last is the nearest and hidden; the index proposes it all the same, as a GPU index does.
    rows = np.eye(40, dtype=np.float32)[:30]
    visible = Visible(np.arange(30) < 29)

    def unfiltered(count: int) -> tuple[np.ndarray, np.ndarray]:
        scores = cosines(rows, rows[29], None) - np.arange(30, dtype=np.float32) / 1000
        best_first = np.argsort(-scores)[:count]
        return best_first, scores[best_first]

    with pytest.raises(StageFailed, match="hidden from this reader"):
        proposed(rows, rows[29], 3, visible, unfiltered)
