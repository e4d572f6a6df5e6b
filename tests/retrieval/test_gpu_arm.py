import numpy as np
import pytest
import torch

from domain.errors import ConfigError, StageFailed
from retrieval.arms import Visible
from retrieval.dense import ExactArm
from retrieval.gpu_arm import GpuArm

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def near_ties(n: int, seed: int) -> np.ndarray:
    """Few directions, many copies: most cuts fall into a tie."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(max(2, n // 40), 24)).astype(np.float32)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions[rng.integers(len(directions), size=n)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("share", [1.0, 0.5, 0.03])
def test_it_equals_the_exact_arm_to_the_last_bit(device: str, share: float) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    vectors = near_ties(600, 1)
    gpu, exact = GpuArm(vectors, device), ExactArm(vectors)
    for seed in range(15):
        rng = np.random.default_rng(seed)
        visible = Visible(rng.random(600) < share)
        n = int(rng.integers(1, 60))
        found, wanted = (arm.search(vectors[seed], n, visible) for arm in (gpu, exact))
        assert (found.rows == wanted.rows).all()
        assert (found.scores == wanted.scores).all()


@pytest.mark.gpu
@needs_gpu
def test_on_a_real_device_no_hidden_row_comes_back_from_100_000() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.standard_normal((100_000, 384), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    gpu, exact = GpuArm(vectors), ExactArm(vectors)
    for share in (1.0, 0.1, 0.01, 0.001):
        visible = Visible(rng.random(100_000) < share)
        found, wanted = (arm.search(vectors[3], 100, visible) for arm in (gpu, exact))
        assert visible.mask[found.rows].all()
        assert found.rows.tolist() == wanted.rows.tolist()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_gpu_that_is_not_there_is_an_error_and_never_the_cpu() -> None:
    with pytest.raises(ConfigError, match="no CUDA device"):
        GpuArm(np.eye(3, dtype=np.float32))


def test_a_product_too_coarse_to_order_by_is_an_error() -> None:
    vectors = near_ties(200, 3)
    arm = GpuArm(vectors, "cpu")
    arm.vectors = vectors * np.float32(1.001)  # as if the device had rounded every product by a thousandth
    with pytest.raises(StageFailed, match="exact enough"):
        arm.search(vectors[0], 3, Visible(np.ones(200, np.bool_)))
