"""What every dense arm promises, run on each of them: the approximate ones with so little effort that they must err."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from domain.errors import StageFailed
from retrieval.arms import DenseArm, Ranking, Visible
from retrieval.codes_arm import CodesArm
from retrieval.dense import ExactArm, cosines
from retrieval.dense_choice import DENSE
from retrieval.faiss_arm import FaissArm
from retrieval.gpu_arm import GpuArm
from retrieval.hnsw_arm import HnswArm
from retrieval.ivf_arm import IvfArm

Make = Callable[[np.ndarray], DenseArm]
EXACT: dict[str, Make] = {"exact": ExactArm, "faiss": FaissArm, "gpu": partial(GpuArm, device="cpu")}
APPROXIMATE: dict[str, Make] = {
    "codes": partial(CodesArm, choice=8),
    "ivf": partial(IvfArm, nprobe=1),
    "hnsw": partial(HnswArm, ef_search=4),
}
ARMS = EXACT | APPROXIMATE
AXES = np.eye(4, dtype=np.float32)


def unit_rows(n: int, seed: int, dimensions: int = 16) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def all_of(n: int) -> Visible:
    return Visible(np.ones(n, np.bool_))


@pytest.fixture(params=ARMS)
def make(request: pytest.FixtureRequest) -> Make:
    return ARMS[request.param]


@pytest.fixture(params=EXACT)
def make_exact(request: pytest.FixtureRequest) -> Make:
    return EXACT[request.param]


@pytest.fixture(scope="module", params=ARMS)
def among_copies(request: pytest.FixtureRequest) -> DenseArm:
    """An arm over 600 rows in twelve clusters, every third row a copy of the one before, one row zero."""
    centres, rng = unit_rows(12, 20), np.random.default_rng(21)
    rows = np.repeat(centres, 50, axis=0) + 0.2 * rng.normal(size=(600, 16)).astype(np.float32)
    rows[2::3] = rows[1::3]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[77] = 0  # what an encoder may make of a text without a word
    return ARMS[request.param](rows)


def readers(n: int) -> dict[str, np.ndarray]:
    """Masks of readers who see everything, nothing, one row, a share at random, or a part of the library only."""
    rng, rows = np.random.default_rng(22), np.arange(n)
    shares = {f"{share:.1%}": rng.random(n) < share for share in (0.9, 0.5, 0.12, 0.09, 0.01)}
    clusters = {"the first cluster": rows < 50, "the last quarter": rows >= 3 * n // 4, "all but a cluster": rows >= 50}
    return {"all": rows >= 0, "nothing": rows < 0, "the last row": rows == n - 1} | shares | clusters


def test_every_kind_that_can_be_chosen_is_under_contract() -> None:
    assert set(ARMS) == set(DENSE) - {"auto"}


@pytest.mark.parametrize("reader", readers(600))
def test_whoever_asks_gets_as_many_visible_rows_as_there_are_and_no_other(among_copies: DenseArm, reader: str) -> None:
    mask = readers(600)[reader]
    visible, queries = Visible(mask), unit_rows(3, 23)
    for n in (1, 7, 60, 599, 700):
        for query in (*queries, among_copies.vectors[-1], among_copies.vectors[10]):  # type: ignore[attr-defined]
            found = among_copies.search(query, n, visible)
            assert len(found.rows) == len(found.scores) == min(n, mask.sum())
            assert mask[found.rows].all()
            assert len(set(found.rows.tolist())) == len(found.rows)


@pytest.mark.parametrize("reader", readers(600))
def test_every_row_that_is_found_has_its_exact_score_and_stands_in_order(among_copies: DenseArm, reader: str) -> None:
    visible, vectors = Visible(readers(600)[reader]), among_copies.vectors  # type: ignore[attr-defined]
    for query in unit_rows(5, 24):
        found = among_copies.search(query, 20, visible)
        assert (found.scores == cosines(vectors, query, found.rows)).all()  # to the last bit
        assert np.lexsort((found.rows, -found.scores)).tolist() == list(range(len(found.rows)))


@pytest.mark.parametrize("share", [0.002, 0.01, 0.09])
def test_a_reader_who_sees_less_than_a_tenth_gets_what_an_exact_search_gives(share: float) -> None:
    vectors = unit_rows(1000, 25)
    arms = [make(vectors) for name, make in ARMS.items() if name != "ivf"]  # which counts rows and not shares
    for seed in range(10):
        visible = Visible(np.random.default_rng(seed).random(1000) < share)
        query = unit_rows(1, 30 + seed)[0]
        wanted = ExactArm(vectors).search(query, 10, visible)
        for arm in arms:
            assert same(arm.search(query, 10, visible), wanted), arm.name


def same(one: Ranking, other: Ranking) -> bool:
    return one.rows.tolist() == other.rows.tolist() and one.scores.tolist() == other.scores.tolist()


def test_the_highest_cosine_comes_first(make: Make) -> None:
    vectors = np.stack([AXES[0], AXES[1], (AXES[0] + AXES[1]) / np.sqrt(np.float32(2))])
    found = make(vectors).search(AXES[0], 3, all_of(3))
    # cosines with the first axis: 1, 0, 1 / sqrt(2)
    assert found.rows.tolist() == [0, 2, 1]
    assert found.scores == pytest.approx([1, 0.70710678, 0])


def test_a_hidden_row_is_never_found_however_near_it_is(make: Make) -> None:
    vectors = unit_rows(300, 1)
    arm = make(vectors)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        visible = Visible(rng.random(300) < rng.choice([0.02, 0.2, 0.9]))
        found = arm.search(vectors[int(rng.integers(300))], 50, visible)
        assert visible.mask[found.rows].all()
        assert len(found.rows) == min(50, visible.rows.size)


def test_hidden_rows_change_no_score_and_no_order(make_exact: Make) -> None:
    vectors = unit_rows(200, 2)
    visible = Visible(np.arange(200) % 2 == 0)
    alone = make_exact(np.ascontiguousarray(vectors[::2])).search(vectors[7], 30, all_of(100))
    among = make_exact(vectors).search(vectors[7], 30, visible)
    assert (among.rows == 2 * alone.rows).all()
    assert (among.scores == alone.scores).all()  # to the last bit


def test_ties_go_to_the_lower_row_also_at_the_cut(make_exact: Make) -> None:
    vectors = np.repeat(unit_rows(1, 3), 500, axis=0)
    hidden_first = Visible(np.arange(500) >= 10)
    assert make_exact(vectors).search(vectors[0], 7, all_of(500)).rows.tolist() == list(range(7))
    assert make_exact(vectors).search(vectors[0], 7, hidden_first).rows.tolist() == list(range(10, 17))


def test_asking_for_nothing_or_seeing_nothing_gives_an_empty_ranking(make: Make) -> None:
    arm = make(unit_rows(5, 4))
    query = unit_rows(1, 5)[0]
    assert arm.search(query, 0, all_of(5)).rows.size == 0
    assert arm.search(query, 3, Visible(np.zeros(5, np.bool_))).rows.size == 0
    assert make(np.empty((0, 16), np.float32)).search(query, 3, all_of(0)).rows.size == 0


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.05])
def test_a_query_that_is_no_vector_is_an_error_and_not_an_empty_library(make: Make, share: float, wrong: float) -> None:
    query, visible = unit_rows(1, 5)[0], Visible(np.random.default_rng(6).random(500) < share)
    query[3] = wrong
    arm = make(unit_rows(500, 4))
    with pytest.raises(StageFailed, match="not finite"):
        arm.search(query, 5, visible)
    with pytest.raises(StageFailed, match="not finite"):
        arm.scores(query, visible.rows)


def test_asking_for_more_than_there_is_gives_what_there_is(make: Make) -> None:
    found = make(unit_rows(5, 6)).search(unit_rows(1, 7)[0], 1_000, all_of(5))
    assert sorted(found.rows.tolist()) == [0, 1, 2, 3, 4]


def test_scores_of_chosen_rows_are_those_of_the_search(make: Make) -> None:
    arm = make(unit_rows(120, 8))
    query = unit_rows(1, 9)[0]
    found = arm.search(query, 20, all_of(120))
    again = arm.scores(query, found.rows)
    assert again.dtype == np.float32
    assert (again == found.scores).all()
