from pathlib import Path

import numpy as np
import pytest

from domain.errors import ConfigError
from retrieval.arms import Visible
from retrieval.dense import ExactArm
from retrieval.faiss_arm import FaissArm


def near_ties(n: int, seed: int) -> np.ndarray:
    """Few directions, many copies: most cuts fall into a tie."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(max(2, n // 40), 24)).astype(np.float32)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions[rng.integers(len(directions), size=n)]


@pytest.mark.parametrize("share", [1.0, 0.6, 0.12, 0.03])
def test_it_equals_the_exact_arm_to_the_last_bit(share: float) -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        vectors = near_ties(800, seed)
        visible = Visible(rng.random(800) < share)
        n = int(rng.integers(1, 60))
        faiss, exact = (kind(vectors).search(vectors[0], n, visible) for kind in (FaissArm, ExactArm))
        assert (faiss.rows == exact.rows).all()
        assert (faiss.scores == exact.scores).all()


def test_a_memory_mapped_file_is_searched_where_it_lies(tmp_path: Path) -> None:
    vectors = near_ties(400, 1)
    np.save(tmp_path / "vectors.npy", vectors)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    everything = Visible(np.ones(400, np.bool_))
    assert (FaissArm(mapped).search(vectors[9], 5, everything).rows == ExactArm(vectors).search(
        vectors[9], 5, everything).rows).all()  # fmt: skip


def test_vectors_that_faiss_would_misread_are_refused() -> None:
    for vectors in (np.eye(3), np.eye(4, dtype=np.float32)[:, ::2], np.ones(3, np.float32)):
        with pytest.raises(ConfigError, match="row-major float32"):
            FaissArm(vectors)  # type: ignore[arg-type]


def test_a_query_of_another_length_is_an_error_and_not_a_read_past_the_end() -> None:
    arm = FaissArm(near_ties(400, 2))
    with pytest.raises(ValueError, match="24 dimensions"):
        arm.search(np.ones(23, np.float32), 3, Visible(np.ones(400, np.bool_)))
