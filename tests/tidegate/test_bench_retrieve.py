"""`tidegate bench retrieve`: which sizes, which vectors, which figures."""

import json
from pathlib import Path

import numpy as np
import pytest

from domain.errors import BadRequest
from retrieval.dense_choice import GRAPH
from tests.tidegate.tiny import settings
from tidegate.bench_retrieve import Searched, _build, figures, sizes
from tidegate.bench_vectors import WordSums
from tidegate.cli import main


def test_sizes_are_ascending_and_each_is_measured_once() -> None:
    assert sizes("50000, 5000,50000") == [5000, 50000]


@pytest.mark.parametrize("text", ["", "5000,", "5k", "99", "-500", "20000001", "²"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="--chunks"):
        sizes(text)


def test_made_up_vectors_have_unit_length_and_follow_the_words() -> None:
    near, text, far = WordSums().embed_documents(["the pump runs hot", "the pump runs", "valves stick in winter"])
    assert np.allclose([np.linalg.norm(v) for v in (near, text, far)], 1)
    assert near @ text > 0.7 > 0.3 > far @ text


def test_growth_is_the_power_of_the_size() -> None:
    small, large = Searched(100, 1.0, 2.0, 10.0, 1.0, 1.0), Searched(10_000, 10.0, 20.0, None, None, 1.0)
    found = {figure.name: figure.value for figure in figures([small, large])}
    assert found["growth"] == pytest.approx(0.5)  # a hundred times the size, ten times the time
    assert (found["p50_ms_100"], found["p95_ms_10000"], found["resident_mb_10000"]) == (1.0, 20.0, None)


def test_a_library_has_the_files_of_the_dense_arm_that_searches_it(tmp_path: Path) -> None:
    version = _build(settings(tmp_path, retrieval__dense="hnsw"), tmp_path / "library", 100)
    assert (tmp_path / "library" / "registry" / "versions" / version / GRAPH).is_file()


@pytest.mark.slow
def test_two_sizes_are_built_searched_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "growth.png"
    assert main(["bench", "retrieve", "--chunks", "100,200", "--queries", "10", "--plot", str(plot), "--json"]) == 0
    names = [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()]
    assert names[0] == "p50_ms_100"
    assert names[-1] == "growth"
    assert plot.read_bytes().startswith(b"\x89PNG")
