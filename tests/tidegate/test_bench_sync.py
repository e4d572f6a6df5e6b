"""`tidegate bench sync`: the files it changes, and that every figure is there."""

import json
from pathlib import Path
from random import Random

import pytest

from tidegate.bench_sync import change, write_files
from tidegate.cli import main


def test_two_of_a_hundred_files_change_and_the_same_ones_for_a_seed(tmp_path: Path) -> None:
    one, other = (write_files(tmp_path / name, 200) for name in ("one", "other"))
    before = {p.relative_to(one): p.read_text("utf-8") for p in one.rglob("*.md")}
    assert change(one, Random(3)) == change(other, Random(3)) == {"edited": 2.0, "deleted": 1.0, "moved": 1.0}
    after, there = ({p.relative_to(f): p.read_text("utf-8") for p in f.rglob("*.md")} for f in (one, other))
    assert after == there
    assert len(before) - len(after) == 1
    assert len(before.keys() - after.keys()) == 2  # the deleted one, and the moved one under its old name
    assert sum(after[name] != before[name] for name in before.keys() & after.keys()) == 2


@pytest.mark.slow
def test_every_figure_of_syncing_is_told_and_both_ways_come_to_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["bench", "sync", "--documents", "200", "--json", "--set", f"data_dir={tmp_path}"])
    figures = {line["name"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    named = ["time_ratio", "cpu_ratio", "embedded_ratio", "identical_files", "identical_hits", "read_your_write_s"]
    assert list(figures) == named
    assert (figures["identical_files"]["met"], figures["identical_hits"]["met"]) == (True, True)
    assert figures["read_your_write_s"]["value"] > 0
