"""`tidegate load`: what it refuses before a request is made, and how it ends."""

import asyncio
import json
from pathlib import Path

import pytest

from load.samples import read
from tests.serving.service import Served, service
from tidegate.cli import main
from tidegate.console import Code


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--url", "http://10.1.2.3:8000"], "10.1.2.3:8000 is another machine"),
        (["--url", "127.0.0.1:8000"], "is no address"),
        (["--url", "http://127.0.0.1:9", "--slo", "p95=1", "--slo", "error_share=much"], "'p95=1' is none"),
        (["--url", "http://127.0.0.1:9", "--duration", "soon"], "--duration 'soon' is none"),
        (["--url", "http://127.0.0.1:9", "--mix", "chat"], "--mix 'chat' is none"),
        (["--url", "http://127.0.0.1:9", "--questions", "gone.jsonl"], "gone.jsonl is no file"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["load", "--report", str(tmp_path), *arguments]) == Code.USAGE
    assert why in capsys.readouterr().err


def test_all_wrong_thresholds_are_told_at_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["load", "--url", "http://127.0.0.1:9", "--slo", "p95=1", "--slo", "error_share=much"])
    told = capsys.readouterr().err
    assert "'p95=1'" in told
    assert "'error_share=much'" in told


def test_without_an_address_it_wants_a_server_of_this_data_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["load", "--report", str(tmp_path), "--set", f"data_dir={tmp_path}"]) == Code.REFUSED
    assert "tidegate up" in capsys.readouterr().err


@pytest.mark.slow
async def test_thresholds_that_hold_end_in_0_and_one_that_is_missed_in_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ["load", "--json", "--users", "2", "--think", "0.05", "--duration", "2s", "--report", str(tmp_path)]
    held = ["--slo", "error_share=0", "--slo", "citations_share=1", "--slo", "stream.p95_first_ms=60000"]
    async with Served(service()) as url:
        code = await asyncio.to_thread(main, [*asked, "--url", url, "--mix", "stream", *held])
        told = json.loads(capsys.readouterr().out)
        missed = await asyncio.to_thread(main, [*asked, "--url", url, "--mix", "answer", "--slo", "p50_complete_ms=0"])
    assert (code, missed) == (Code.DONE, Code.REFUSED)
    assert told["outcome"] == "held"
    assert [row["outcome"] for row in told["thresholds"]] == ["held"] * 4
    assert Path(told["report"]).read_text().startswith("<!doctype html>")
    assert {sample.kind for sample in read(tmp_path / "samples.jsonl")} == {"answer"}, "of the second run alone"


@pytest.mark.slow
async def test_what_could_not_be_measured_ends_in_4(tmp_path: Path) -> None:
    asked = [
        "load",
        "--users",
        "2",
        "--think",
        "0.05",
        "--duration",
        "2s",
        "--mix",
        "search",
        "--report",
        str(tmp_path),
    ]
    async with Served(service()) as url:
        code = await asyncio.to_thread(main, [*asked, "--url", url, "--mix", "search", "--slo", "p95_first_ms=100"])
    assert code == Code.NOT_MEASURED
