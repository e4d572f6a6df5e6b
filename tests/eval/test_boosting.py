"""Boosted trees: what they must learn, that they repeat exactly, and one tree worked out by hand."""

import numpy as np
import pytest

from eval.boosting import RIDGE, SHRUNK, boost


def test_a_single_split_moves_each_side_by_its_shrunk_newton_step() -> None:
    rows = np.repeat([[0.0], [1.0]], 20, axis=0)
    labels = np.repeat([0.0, 1.0], 20)
    boosted = boost(rows, labels, np.ones(40), rounds=1, depth=1)
    (tree,) = boosted.trees
    # start 0; each side has 20 examples of slope .5 and curvature .25: 10 / (5 + RIDGE), shrunk
    step = SHRUNK * 10 / (5 + RIDGE)
    assert boosted.start == 0.0
    assert (tree.asks, tree.bars) == ((0,), (0.5,))
    assert list(tree.leaves) == pytest.approx([-step, step], abs=1e-5)


def test_what_only_two_columns_together_say_is_learned() -> None:
    rng = np.random.default_rng(3)
    rows = rng.random((800, 4))
    labels = ((rows[:, 1] > 0.4) & (rows[:, 3] > 0.4)).astype(float)
    odds = boost(rows, labels, np.ones(800), rounds=60, depth=3).log_odds(rows)
    assert np.mean((odds > 0) == (labels == 1)) > 0.97


def test_columns_of_noise_teach_little_about_new_rows() -> None:
    rng = np.random.default_rng(4)
    rows, fresh, labels = rng.random((400, 3)), rng.random((400, 3)), (rng.random(400) > 0.5).astype(float)
    odds = boost(rows, labels, np.ones(400), rounds=20, depth=2).log_odds(fresh)
    assert abs(float(np.mean(odds))) < 0.3


def test_equal_input_gives_equal_trees() -> None:
    rng = np.random.default_rng(5)
    rows, labels = rng.random((200, 3)), (rng.random(200) > 0.3).astype(float)
    assert boost(rows, labels, np.ones(200), 5, 3) == boost(rows, labels, np.ones(200), 5, 3)


def test_a_constant_column_is_never_asked_for() -> None:
    rows = np.column_stack([np.full(100, 2.0), np.arange(100.0)])
    boosted = boost(rows, (np.arange(100) > 50).astype(float), np.ones(100), 3, 2)
    assert all(ask == 1 for tree in boosted.trees for ask, bar in zip(tree.asks, tree.bars, strict=True) if bar < 1e8)


def test_examples_of_one_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="both kinds"):
        boost(np.zeros((3, 1)), np.ones(3), np.ones(3), 1, 1)
