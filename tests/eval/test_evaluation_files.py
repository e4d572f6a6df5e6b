"""An evaluation as files: nothing is lost on the way there and back, and what is damaged is named."""

import json
from pathlib import Path

import pytest

from domain.errors import StorageError
from eval.evaluation_files import lay_out, read, save
from tests.eval.evaluations import evaluation


def test_an_evaluation_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    saved = evaluation("v2", "v1")
    save(saved, tmp_path)
    assert read(tmp_path) == saved
    assert read(tmp_path).id == saved.id


def test_the_table_of_questions_tells_not_eligible_and_failed_from_zero(tmp_path: Path) -> None:
    lay_out(evaluation(), tmp_path)
    table = json.loads((tmp_path / "questions.json").read_text("utf-8"))
    assert table["columns"] == ["question", "query", "answer", "failure", "latency_ms", "type", "recall@6"]
    assert table["data"] == [
        ["q1", "Why?", "So.", "", 12.5, "comparison", 1.0],
        ["q2", "Who?", "He.", "timeout", None, "null", None],
    ]


def test_there_is_a_plot_for_everything_that_was_measured_and_for_nothing_else(tmp_path: Path) -> None:
    lay_out(evaluation("v2", "v1"), tmp_path)
    names = {path.stem for path in (tmp_path / "plots").iterdir()}
    assert names == {"metrics", "slices-recall-at-6", "differences", "recall-at-k", "latency"}
    bare = tmp_path / "bare"
    bare.mkdir()
    lay_out(evaluation(metrics={}, rows=(), curves={}), bare)
    assert list((bare / "plots").iterdir()) == []


def test_the_verdicts_say_the_worst_that_binds(tmp_path: Path) -> None:
    lay_out(evaluation(), tmp_path)
    told = json.loads((tmp_path / "verdicts.json").read_text("utf-8"))
    assert told["outcome"] == "PASS"
    assert [(v["gate"], v["outcome"], v["advisory"]) for v in told["verdicts"]] == [
        ("recall@6 floor", "PASS", False), ("cost", "FAIL", True)
    ]  # fmt: skip


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"binding": {}}', "null"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    (tmp_path / "evaluation.json").write_text(damage)
    with pytest.raises(StorageError, match=r"evaluation\.json cannot be read \(it is damaged\)"):
        read(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        read(tmp_path)
