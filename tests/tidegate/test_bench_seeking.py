"""`tidegate bench seeking`: what it asks, and what it says of both ways of looking."""

import json
from pathlib import Path

import pytest

from tidegate.cli import main
from tidegate.console import Code

SMALL = ("embedding.backend=hashing", "rerank.backend=none", "sample.documents=100", "sample.questions=80")


def test_both_ways_are_measured_on_questions_that_need_several_passages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = [word for key in (*SMALL, f"data_dir={tmp_path}") for word in ("--set", key)]
    code = main(["bench", "seeking", "--json", "--questions", "8", *sets])
    told = {line["name"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert code in (Code.DONE, Code.NOT_MEASURED)  # of so few questions no run may have stopped as covered
    assert told["questions"]["value"] == 8
    assert 1 <= told["steps"]["peers"]["rounds"] <= 2
    assert 1 <= told["steps"]["value"] <= 4
    assert told["full_chain"]["value"] >= told["full_chain"]["peers"]["rounds"] - 1 / 8
