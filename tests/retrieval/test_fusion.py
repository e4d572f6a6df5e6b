"""Fusion: each row once, the published formulas, ties by row."""

import numpy as np
import pytest

from retrieval.arms import Ranking
from retrieval.fusion import FUSIONS, Fusion, convex, gather, rrf, weighted

A, B, C, D = 0, 1, 2, 3


def ranking(*scored: tuple[int, float]) -> Ranking:
    return Ranking(np.array([row for row, _ in scored], np.int64), np.array([s for _, s in scored], np.float32))


def scores(fused: Ranking) -> dict[int, float]:
    return dict(zip(fused.rows.tolist(), fused.scores.tolist(), strict=True))


NOTHING = ranking()
LEXICAL = ranking((A, 8.0), (B, 4.0))
DENSE = ranking((A, 0.9), (C, 0.5))


def test_candidates_are_each_row_once_with_what_each_arm_said():
    both = gather(LEXICAL, DENSE)
    assert both.rows.tolist() == [A, B, C]
    assert both.bm25.tolist() == pytest.approx([8, 4, np.nan], nan_ok=True)
    assert both.cosine.tolist() == pytest.approx([0.9, np.nan, 0.5], nan_ok=True)
    assert both.lexical_rank.tolist() == [1, 2, 0]
    assert both.dense_rank.tolist() == [1, 0, 2]


def test_filling_adds_what_was_unknown_and_leaves_what_was_known_and_the_ranks():
    both = gather(LEXICAL, DENSE)
    filled = both.filled(bm25=np.float32([7, 7, 1]), cosine=np.float32([0.1, 0.2, 0.1]))
    assert filled.bm25.tolist() == [8, 4, 1]
    assert filled.cosine.tolist() == pytest.approx([0.9, 0.2, 0.5])
    assert filled.lexical_rank.tolist() == [1, 2, 0]


def test_reciprocal_ranks_are_those_of_the_paper():
    # A is first in both arms: 2 / 61. B and C are second in one arm: 1 / 62, the lower row first.
    fused = rrf(gather(LEXICAL, DENSE), 10)
    assert fused.rows.tolist() == [A, B, C]
    assert fused.scores.tolist() == pytest.approx([2 / 61, 1 / 62, 1 / 62], abs=1e-8)
    assert fused.scores[0] == pytest.approx(0.032787, abs=1e-6)
    assert fused.scores[1] == pytest.approx(0.016129, abs=1e-6)


def test_filled_scores_change_no_reciprocal_rank():
    both = gather(LEXICAL, DENSE)
    filled = both.filled(np.float32([8, 4, 99]), np.float32([0.9, 0.99, 0.5]))
    assert scores(rrf(filled, 10)) == scores(rrf(both, 10))


def test_the_convex_combination_is_that_of_the_formula():
    # A: .4 * 8 / 8 + .6 * .9 = .94;  B: .4 * 4 / 8 + 0 = .2;  C: 0 + .6 * .5 = .3
    fused = convex(gather(LEXICAL, DENSE), 10)
    assert fused.rows.tolist() == [A, C, B]
    assert scores(fused) == pytest.approx({A: 0.94, C: 0.3, B: 0.2})


def test_a_filled_score_counts_like_a_returned_one():
    both = gather(LEXICAL, DENSE).filled(np.float32([8, 4, 2]), np.float32([0.9, 0.4, 0.5]))
    # B: .4 * 4 / 8 + .6 * .4 = .44;  C: .4 * 2 / 8 + .6 * .5 = .40
    assert scores(convex(both, 10)) == pytest.approx({A: 0.94, B: 0.44, C: 0.4})


@pytest.mark.parametrize(("share", "order"), [(0.0, [A, B, C]), (1.0, [A, C, B])])
def test_the_dense_share_goes_from_one_arm_to_the_other(share: float, order: list[int]):
    assert convex(gather(LEXICAL, DENSE), 10, dense_share=share).rows.tolist() == order


def test_the_weighted_sum_normalises_each_arm_to_its_own_range():
    lexical, dense = ranking((A, 8.0), (B, 6.0), (C, 4.0)), ranking((C, 0.9), (B, 0.8), (A, 0.5))
    # lexical A 1, B .5, C 0; dense C 1, B .75, A 0; B: .4 * .5 + .6 * .75 = .65
    assert scores(weighted(gather(lexical, dense), 10)) == pytest.approx({B: 0.65, C: 0.6, A: 0.4})


def test_equal_scores_are_no_division_by_zero():
    fused = weighted(gather(ranking((A, 3.0), (B, 3.0)), NOTHING), 10)
    assert scores(fused) == pytest.approx({A: 0.4, B: 0.4})


@pytest.mark.parametrize("fuse", FUSIONS.values(), ids=FUSIONS)
def test_an_empty_arm_leaves_the_order_of_the_other(fuse: Fusion):
    lexical = ranking((D, 9.0), (B, 4.0), (A, 2.0))
    assert fuse(gather(lexical, NOTHING), 10).rows.tolist() == [D, B, A]
    assert fuse(gather(NOTHING, ranking((D, 0.9), (B, 0.4))), 10).rows.tolist() == [D, B]
    assert fuse(gather(NOTHING, NOTHING), 10).rows.tolist() == []


@pytest.mark.parametrize("fuse", FUSIONS.values(), ids=FUSIONS)
def test_cosines_below_zero_make_no_nonsense(fuse: Fusion):
    fused = fuse(gather(NOTHING, ranking((B, -0.1), (A, -0.5))), 10)
    assert fused.rows.tolist() == [B, A]
    assert np.isfinite(fused.scores).all()


@pytest.mark.parametrize("fuse", FUSIONS.values(), ids=FUSIONS)
@pytest.mark.parametrize("seed", range(20))
def test_every_row_comes_once_and_there_are_as_many_as_asked_and_found(fuse: Fusion, seed: int):
    rng = np.random.default_rng(seed)
    arms = []
    for _ in range(2):
        rows = rng.permutation(40)[: rng.integers(0, 20)]
        values = np.sort(rng.choice([0.1, 0.2, 0.3, 0.5, 0.8], rows.size))[::-1]  # many ties
        order = np.lexsort((rows, -values))
        arms.append(Ranking(rows[order], values[order].astype(np.float32)))
    distinct = set(arms[0].rows.tolist()) | set(arms[1].rows.tolist())
    n = int(rng.integers(0, 45))
    fused = fuse(gather(*arms), n)
    assert len(set(fused.rows.tolist())) == fused.rows.size == min(n, len(distinct))
    assert set(fused.rows.tolist()) <= distinct
    pairs = list(zip((-fused.scores).tolist(), fused.rows.tolist(), strict=True))
    assert pairs == sorted(pairs)  # best first, ties by row
