"""What the approximate arms add to the contract: more effort never finds less, and equal vectors give equal files."""

from pathlib import Path

import numpy as np
import pytest

from domain.errors import StorageError
from retrieval import hnsw_arm, ivf_arm
from retrieval.arms import Visible
from retrieval.codes_arm import CodesArm
from retrieval.dense import ExactArm
from retrieval.hnsw_arm import HnswArm
from retrieval.ivf_arm import IvfArm, Lists


def unit_rows(n: int, seed: int, dimensions: int = 16) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


VECTORS, QUERIES = unit_rows(1500, 1), unit_rows(40, 2)
READERS = {
    "all": Visible(np.ones(1500, np.bool_)),
    "a third": Visible(np.random.default_rng(3).random(1500) < 0.33),
    "all but a quarter": Visible(VECTORS[:, 0] > np.quantile(VECTORS[:, 0], 0.25)),  # a graph is walked for them too
    "the last third": Visible(VECTORS[:, 0] > np.quantile(VECTORS[:, 0], 0.67)),  # all on one side
}


@pytest.fixture(scope="module")
def lists() -> Lists:
    return ivf_arm.grouped(VECTORS)


@pytest.fixture(scope="module")
def graph() -> hnsw_arm.Graph:
    return hnsw_arm.linked(VECTORS)


def found_of_each(arm: object, visible: Visible) -> list[int]:
    """For each query, how many of the ten nearest are found."""
    exact = ExactArm(VECTORS)
    return [
        int(np.isin(exact.search(q, 10, visible).rows, arm.search(q, 10, visible).rows).sum())  # type: ignore[attr-defined]
        for q in QUERIES
    ]


@pytest.mark.parametrize("reader", READERS)
def test_recall_never_falls_with_nprobe(lists: Lists, reader: str) -> None:
    found = [found_of_each(IvfArm(VECTORS, lists, n), READERS[reader]) for n in (1, 2, 4, 8, 16, 64, 155)]
    assert (np.diff(found, axis=0) >= 0).all()  # for every single query
    assert sum(found[0]) < sum(found[-1]) == 10 * len(QUERIES)  # all lists are an exact search


@pytest.mark.parametrize("reader", READERS)
def test_recall_never_falls_with_ef_search(graph: hnsw_arm.Graph, reader: str) -> None:
    found = [sum(found_of_each(HnswArm(VECTORS, graph, ef), READERS[reader])) for ef in (1, 27, 40, 64, 128, 256, 400)]
    assert (np.diff(found) >= 0).all()
    assert found[-1] > 0.99 * 10 * len(QUERIES)


@pytest.mark.parametrize("reader", READERS)
def test_the_default_effort_finds_nine_of_ten(lists: Lists, graph: hnsw_arm.Graph, reader: str) -> None:
    for arm in (IvfArm(VECTORS, lists), HnswArm(VECTORS, graph)):
        assert sum(found_of_each(arm, READERS[reader])) >= 0.9 * 10 * len(QUERIES)


def test_recall_never_falls_with_the_choice_among_codes() -> None:
    found = [found_of_each(CodesArm(VECTORS, choice), READERS["all"]) for choice in (80, 160, 320, 640)]
    assert (np.diff(found, axis=0) >= 0).all()


def test_lists_hold_every_row_once_and_ascending(lists: Lists) -> None:
    assert sorted(lists.rows.tolist()) == list(range(1500))
    for start, end in zip(lists.starts, lists.starts[1:], strict=False):
        assert (np.diff(lists.rows[start:end]) > 0).all()


@pytest.mark.parametrize("size", [600, 1000, 1499, 1500, 4000])
def test_groups_are_learnt_from_rows_of_the_whole_library(size: int) -> None:
    rows = np.arange(1500, dtype=np.float32)[:, None]
    chosen = ivf_arm._sample(rows, size)[:, 0]
    assert len(chosen) == min(size, 1500)
    assert np.diff([*chosen, 1500.0]).max() <= -(-1500 // size)  # no gap is wider than it must be, nor at the end


def test_equal_vectors_give_equal_bytes(tmp_path: Path, lists: Lists, graph: hnsw_arm.Graph) -> None:
    lists.save(tmp_path / "first")
    ivf_arm.grouped(VECTORS.copy()).save(tmp_path / "again")
    hnsw_arm.save(graph, tmp_path / "first" / "graph")
    hnsw_arm.save(hnsw_arm.linked(VECTORS.copy()), tmp_path / "again" / "graph")
    names = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert names == ["centroids.npy", "graph", "rows.npy", "starts.npy"]
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_what_was_saved_searches_as_what_was_made(tmp_path: Path, lists: Lists, graph: hnsw_arm.Graph) -> None:
    lists.save(tmp_path / "lists")
    hnsw_arm.save(graph, tmp_path / "graph")
    made = (IvfArm(VECTORS, lists, 4), HnswArm(VECTORS, graph, 8))
    loaded = (
        IvfArm(VECTORS, Lists.load(tmp_path / "lists", VECTORS.shape), 4),
        HnswArm(VECTORS, hnsw_arm.load(tmp_path / "graph", VECTORS.shape), 8),
    )
    for visible in READERS.values():
        for one, other in zip(made, loaded, strict=True):
            assert all((one.search(q, 5, visible).rows == other.search(q, 5, visible).rows).all() for q in QUERIES)


def test_files_of_other_vectors_are_refused(tmp_path: Path, lists: Lists, graph: hnsw_arm.Graph) -> None:
    lists.save(tmp_path / "lists")
    hnsw_arm.save(graph, tmp_path / "graph")
    for shape in ((1499, 16), (1500, 17)):
        with pytest.raises(StorageError, match="lists"):
            Lists.load(tmp_path / "lists", shape)
        with pytest.raises(StorageError, match="graph"):
            hnsw_arm.load(tmp_path / "graph", shape)


def test_damaged_files_are_named(tmp_path: Path, graph: hnsw_arm.Graph) -> None:
    hnsw_arm.save(graph, tmp_path / "graph")
    whole = (tmp_path / "graph").read_bytes()
    for damaged in (whole[: len(whole) // 2], b"no graph at all", b""):
        (tmp_path / "graph").write_bytes(damaged)
        with pytest.raises(StorageError, match="graph"):
            hnsw_arm.load(tmp_path / "graph", VECTORS.shape)
    (tmp_path / "lists").mkdir()
    with pytest.raises(StorageError, match="lists"):
        Lists.load(tmp_path / "lists", VECTORS.shape)


def test_building_leaves_the_threads_as_it_found_them() -> None:
    import faiss

    faiss.omp_set_num_threads(2)
    ivf_arm.grouped(VECTORS[:100])
    hnsw_arm.linked(VECTORS[:100])
    assert faiss.omp_get_max_threads() == 2
    faiss.omp_set_num_threads(1)
