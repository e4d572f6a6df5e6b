"""Readers who see little are searched exactly, whatever else lies in an approximate index."""

from pathlib import Path

import numpy as np
import pytest

from retrieval.arms import Ranking, Visible
from retrieval.dense import ExactArm, Vector, Vectors
from retrieval.dense_choice import Opening, open_dense
from retrieval.exact_for_few import ExactForFew, exact_for_few

KINDS = ["codes", "ivf", "hnsw"]
DIMENSIONS = 16


def unit(rng: np.random.Generator, rows: int) -> Vectors:
    made = rng.standard_normal((rows, DIMENSIONS)).astype(np.float32)
    unit_rows: Vectors = made / np.linalg.norm(made, axis=1, keepdims=True)
    return unit_rows


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_rows_change_not_one_bit_of_what_a_reader_of_few_finds(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(3)
    mine, queries = unit(rng, 300), unit(rng, 20)
    wanted = [ExactArm(mine).search(query, 10, Visible(np.ones(300, np.bool_))) for query in queries]
    for hidden in (0, 700, 4000):
        everything = np.concatenate([mine, unit(rng, hidden)])
        mask = np.arange(len(everything)) < 300
        arm = exact_for_few(open_dense(kind, Opening(everything, tmp_path, 4, 16)), everything, 300 * DIMENSIONS * 4)
        for query, exact in zip(queries, wanted, strict=True):
            found = arm.search(query, 10, Visible(mask))
            assert found.rows.tolist() == exact.rows.tolist()
            assert found.scores.tolist() == exact.scores.tolist()


def test_the_limit_is_what_the_reader_sees_and_nothing_else(tmp_path: Path) -> None:
    class Refusing(ExactArm):
        name = "codes"

        def search(self, vector: Vector, n: int, visible: Visible) -> Ranking:
            raise AssertionError("asked")

    vectors = unit(np.random.default_rng(1), 50)
    arm = exact_for_few(Refusing(vectors), vectors, 20 * DIMENSIONS * 4)
    assert arm.search(vectors[0], 3, Visible(np.arange(50) < 20)).rows[0] == 0
    with pytest.raises(AssertionError, match="asked"):
        arm.search(vectors[0], 3, Visible(np.arange(50) < 21))


@pytest.mark.parametrize("kind", ["exact", "faiss"])
def test_an_arm_that_is_exact_stays_as_it_is(tmp_path: Path, kind: str) -> None:
    vectors = unit(np.random.default_rng(1), 50)
    assert not isinstance(exact_for_few(open_dense(kind, Opening(vectors, tmp_path)), vectors, 1 << 20), ExactForFew)


def test_no_limit_at_all_leaves_everything_to_the_arm(tmp_path: Path) -> None:
    vectors = unit(np.random.default_rng(1), 50)
    assert not isinstance(exact_for_few(open_dense("codes", Opening(vectors, tmp_path)), vectors, 0), ExactForFew)
