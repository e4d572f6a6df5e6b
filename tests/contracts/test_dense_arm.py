"""What every dense arm promises, run on each of them."""

import numpy as np
import pytest

from retrieval.arms import DenseArm, Visible
from retrieval.dense import ExactArm
from retrieval.faiss_arm import FaissArm

ARMS = [ExactArm, FaissArm]
AXES = np.eye(4, dtype=np.float32)


def unit_rows(n: int, seed: int, dimensions: int = 16) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def all_of(n: int) -> Visible:
    return Visible(np.ones(n, np.bool_))


@pytest.fixture(params=ARMS, ids=lambda arm: arm.name)
def arm_kind(request: pytest.FixtureRequest) -> type:
    return request.param


def test_the_highest_cosine_comes_first(arm_kind: type) -> None:
    vectors = np.stack([AXES[0], AXES[1], (AXES[0] + AXES[1]) / np.sqrt(np.float32(2))])
    found = arm_kind(vectors).search(AXES[0], 3, all_of(3))
    # cosines with the first axis: 1, 0, 1 / sqrt(2)
    assert found.rows.tolist() == [0, 2, 1]
    assert found.scores == pytest.approx([1, 0.70710678, 0])


def test_a_hidden_row_is_never_found_however_near_it_is(arm_kind: type) -> None:
    vectors = unit_rows(300, 1)
    arm: DenseArm = arm_kind(vectors)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        visible = Visible(rng.random(300) < rng.choice([0.02, 0.2, 0.9]))
        found = arm.search(vectors[int(rng.integers(300))], 50, visible)
        assert visible.mask[found.rows].all()
        assert len(found.rows) == min(50, visible.rows.size)


def test_hidden_rows_change_no_score_and_no_order(arm_kind: type) -> None:
    vectors = unit_rows(200, 2)
    visible = Visible(np.arange(200) % 2 == 0)
    alone = arm_kind(np.ascontiguousarray(vectors[::2])).search(vectors[7], 30, all_of(100))
    among = arm_kind(vectors).search(vectors[7], 30, visible)
    assert (among.rows == 2 * alone.rows).all()
    assert (among.scores == alone.scores).all()  # to the last bit


def test_ties_go_to_the_lower_row_also_at_the_cut(arm_kind: type) -> None:
    vectors = np.repeat(unit_rows(1, 3), 500, axis=0)
    hidden_first = Visible(np.arange(500) >= 10)
    assert arm_kind(vectors).search(vectors[0], 7, all_of(500)).rows.tolist() == list(range(7))
    assert arm_kind(vectors).search(vectors[0], 7, hidden_first).rows.tolist() == list(range(10, 17))


def test_asking_for_nothing_or_seeing_nothing_gives_an_empty_ranking(arm_kind: type) -> None:
    arm = arm_kind(unit_rows(5, 4))
    query = unit_rows(1, 5)[0]
    assert arm.search(query, 0, all_of(5)).rows.size == 0
    assert arm.search(query, 3, Visible(np.zeros(5, np.bool_))).rows.size == 0
    assert arm_kind(np.empty((0, 16), np.float32)).search(query, 3, all_of(0)).rows.size == 0


def test_asking_for_more_than_there_is_gives_what_there_is(arm_kind: type) -> None:
    found = arm_kind(unit_rows(5, 6)).search(unit_rows(1, 7)[0], 1_000, all_of(5))
    assert sorted(found.rows.tolist()) == [0, 1, 2, 3, 4]


def test_scores_of_chosen_rows_are_those_of_the_search(arm_kind: type) -> None:
    arm = arm_kind(unit_rows(120, 8))
    query = unit_rows(1, 9)[0]
    found = arm.search(query, 20, all_of(120))
    again = arm.scores(query, found.rows)
    assert again.dtype == np.float32
    assert (again == found.scores).all()
