"""What the dense bench measures; how fast anything is, only the bench itself says."""

from pathlib import Path

import numpy as np
import pytest

from domain.errors import BadRequest
from tidegate.bench_dense import SHARES, Measured, figures, like_minilm, made, sampled
from tidegate.bench_dense_peers import peers, search

GOOD = Measured(
    {"100%": 0.995, "1%": 1.0}, {"100%": 0.5, "1%": 0.1}, {"100%": 1.0, "1%": 0.2}, {"100%": 0.5, "1%": 0.1}, 6.0, 1.5
)
POOR = Measured(
    {"100%": 0.995, "1%": 0.3}, {"100%": 1.0, "1%": 0.1}, {"100%": 4.0, "1%": 0.2}, {"100%": 1.0, "1%": 0.1}, 160.0, 3.0
)


def test_the_aim_is_missed_where_one_reader_finds_too_little() -> None:
    met = {figure.name: figure.met for figure in figures("hnsw", POOR, {"plain": GOOD}, aimed=True)}
    assert met["hnsw_recall@10_100%"] is True
    assert met["hnsw_recall@10_1%"] is False
    assert all(figure.met is None for figure in figures("hnsw", POOR, {"plain": GOOD}, aimed=False))


def test_a_ratio_above_one_says_that_we_are_faster() -> None:
    ours = {figure.name: figure for figure in figures("codes", GOOD, {"plain": POOR}, aimed=True)}
    assert ours["codes_p50_ms_100%"].ratio == {"plain": 2.0}
    assert ours["codes_memory_mb"].peers == {"plain": 160.0}


def test_vectors_are_unit_rows_and_the_same_every_time() -> None:
    vectors, queries = made("minilm", 300, 32, 20)
    assert (vectors.shape, queries.shape) == ((300, 32), (20, 32))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(300), abs=1e-5)
    assert (like_minilm(320, 32, seed=7) == np.concatenate([vectors, queries])).all()


def test_vectors_of_ones_own_are_held_out_as_queries(tmp_path: Path) -> None:
    np.save(tmp_path / "own.npy", np.eye(120, dtype=np.float32))
    vectors, queries = made(str(tmp_path / "own.npy"), 1000, 384, 10)
    assert (len(vectors), len(queries)) == (110, 10)
    assert (vectors @ queries.T == 0).all()


def test_a_file_that_holds_no_vectors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.npy").write_text("no vectors")
    for path in (tmp_path / "own.npy", tmp_path / "missing.npy"):
        with pytest.raises(BadRequest, match="cannot be read"):
            made(str(path), 1000, 384, 10)
    np.save(tmp_path / "few.npy", np.eye(50, dtype=np.float32))
    with pytest.raises(BadRequest, match="at least 100 rows"):
        made(str(tmp_path / "few.npy"), 1000, 384, 10)


def test_peers_are_asked_under_the_same_filter() -> None:
    sample = sampled(*made("gaussian", 1200, 16, 10), 10)
    assert set(sample.readers) == set(SHARES)
    for name, build in peers(sample.vectors).items():
        index = build()
        for visible in sample.readers.values():
            found = search(name, index, visible.mask)(sample.queries[0], 10)
            assert visible.mask[found].all()
        if name == "faiss Flat":
            assert found.tolist() == sample.truth["0.1%"][0].tolist()
