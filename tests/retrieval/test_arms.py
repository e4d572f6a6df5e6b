"""The one rule for ties, against sorting everything."""

import numpy as np
import pytest

from retrieval.arms import Ranking, best, best_above_zero


def by_hand(rows: np.ndarray, scores: np.ndarray, n: int) -> list[tuple[int, float]]:
    """Best first, ties by row."""
    return sorted(zip(rows.tolist(), scores.tolist(), strict=True), key=lambda each: (-each[1], each[0]))[:n]


def pairs(ranking: Ranking) -> list[tuple[int, float]]:
    return list(zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True))


def ragged(seed: int, size: int) -> np.ndarray:
    """Scores of which many are equal, as those of short texts are, and most of them 0."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(size) < 0.3, rng.choice([0.25, 0.5, *rng.random(size // 20 + 1)], size), 0.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1, 100, 127, 128, 5000])
@pytest.mark.parametrize("n", [1, 7, 40, 6000])
def test_the_best_are_the_first_of_all_sorted(seed: int, size: int, n: int):
    scores = ragged(seed, size).astype(np.float32)
    rows = np.random.default_rng(seed).permutation(size)  # in any order
    assert pairs(best(rows, scores, n)) == by_hand(rows, scores, n)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1, 128, 1000, 5000])
@pytest.mark.parametrize("n", [0, 1, 7, 38, 6000])
def test_the_best_of_all_rows_are_those_above_zero(seed: int, size: int, n: int):
    scores = ragged(seed, size)
    rows = np.flatnonzero(scores)
    assert pairs(best_above_zero(scores, n)) == by_hand(rows, scores[rows].astype(np.float32), n)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [1, 7, 100])
def test_a_guess_at_the_best_changes_nothing(seed: int, n: int):
    scores = ragged(seed, 5000)
    promising = np.random.default_rng(seed).choice(5000, 200, replace=False)
    assert pairs(best_above_zero(scores, n, promising)) == pairs(best_above_zero(scores, n))


def test_scores_that_only_float64_tells_apart_are_ties():
    scores = np.zeros(1000)
    scores[[3, 500, 900]] = 0.5, 0.5 + 1e-12, 0.5 + 2e-12
    assert best_above_zero(scores, 2).rows.tolist() == [3, 500]


def test_where_all_are_equal_the_lowest_rows_come_first():
    assert best_above_zero(np.ones(1000), 3).rows.tolist() == [0, 1, 2]
    assert best(np.arange(1000)[::-1], np.ones(1000, np.float32), 3).rows.tolist() == [0, 1, 2]
