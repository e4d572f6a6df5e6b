"""`tidegate bench build`: the library it makes, and that every figure is there."""

import json
from pathlib import Path

import pytest

from domain.errors import BadRequest
from tidegate.bench_build import shared_out, status_mb
from tidegate.bench_library import write_library
from tidegate.bench_lines import told
from tidegate.cli import main
from tidegate.console import Code


def records(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_longer_library_begins_with_the_shorter(tmp_path: Path) -> None:
    short = write_library(tmp_path / "short", 3).read_text("utf-8")
    assert write_library(tmp_path / "long", 5).read_text("utf-8").startswith(short)


def test_every_so_many_documents_change_and_only_in_their_titles(tmp_path: Path) -> None:
    before, after = records(write_library(tmp_path / "a", 7)), records(write_library(tmp_path / "b", 7, 3))
    assert [i for i, (b, a) in enumerate(zip(before, after, strict=True)) if a != b] == [0, 3, 6]
    assert after[3] == before[3] | {"title": before[3]["title"] + " (revised)"}


def test_a_library_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="documents = 0"):
        write_library(tmp_path / "none", 0)


def test_memory_that_nobody_tells_is_none() -> None:
    assert status_mb("VmNothing") is None


def test_another_version_on_ray_is_a_missed_aim(capsys: pytest.CaptureFixture[str]) -> None:
    assert told([shared_out(2.0, 4.0, "v1", "v1")], as_json=True) == Code.DONE
    assert told([shared_out(2.0, 4.0, "v2", "v1")], as_json=True) == Code.REFUSED
    assert "gave v2, the one in one process v1" in capsys.readouterr().err


@pytest.mark.slow
def test_every_figure_of_building_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--documents", "100", "--encoder", "hashing", "--no-ray", "--json"]
    assert main(["bench", "build", *options, "--set", f"data_dir={tmp_path}"]) == 0
    figures = {line["name"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(figures) == ["chunks_per_s", "peak_mb", "rebuild_share"]
    assert figures["rebuild_share"]["met"] is None  # the hashing encoder has no aim
