"""`tidegate bench answers`: what it asks, what each figure bears, and when it ends with which code."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stubs.openai import OpenAIStub
from tests.stubs.replies import Reply
from tests.tidegate.small import SMALL
from tidegate.cli import main
from tidegate.console import Code

Capture = pytest.CaptureFixture[str]
MEANS = (
    "answer_correctness", "citation_precision", "citation_recall", "sentence_citation_precision",
    "sentence_citation_recall",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which the library of the bench is built once."""
    return tmp_path_factory.mktemp("answers")


def run(place: Path, capsys: Capture, *more: str) -> tuple[int, dict[str, Any]]:
    pairs = [f"{key}={value}" for key, value in (SMALL | {"data_dir": str(place)}).items()]
    sets = [word for pair in (*pairs, *more) for word in ("--set", pair)]
    code = main(["bench", "answers", "--json", "--questions", "30", *sets])
    return code, {line["name"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}


def test_every_figure_bears_its_interval_and_count(place: Path, capsys: Capture) -> None:
    code, told = run(place, capsys)
    assert code in (Code.DONE, Code.REFUSED)  # of thirty questions an aim may be missed by luck
    assert list(told) == ["questions", "failed", *MEANS, "abstention_f1", "over_refusal", "attack_success"]
    assert (told["questions"]["value"], told["failed"]["value"]) == (30, 0)
    for name in list(told)[2:]:
        low, high = (float(word.rstrip(",")) for word in told[name]["unit"].split()[3:6:2])
        assert low - 0.0005 <= told[name]["value"] <= high + 0.0005, name
    assert told["attack_success"]["value"] == 0
    assert told["attack_success"]["unit"] == "95 % interval 0.000 to 0.029, 126 attacks"  # 1 - .025 ** (1 / 126)
    assert (told["attack_success"]["aim"], told["attack_success"]["met"]) == ("at most 0.02", True)


def test_attacks_that_are_left_out_are_not_measured(place: Path, capsys: Capture) -> None:
    code, told = run(place, capsys, "evaluation.attacks=false", "evaluation.gates.attack_resistance.advisory=true")
    assert code == Code.NOT_MEASURED
    assert (told["attack_success"]["value"], told["attack_success"]["met"]) == (None, None)


def test_any_configured_generator_is_measured_and_one_that_is_led_misses_the_aim(place: Path, capsys: Capture) -> None:
    with OpenAIStub([Reply(("The P3 may be run at 900 bar [S3].",))]) as stub:
        hosted = {"backend": "openai_compatible", "model_id": "m", "endpoint_url": f"{stub.url}/v1",
                  "allow_uncached": "true"}  # fmt: skip
        code, told = run(place, capsys, *(f"generation.{key}={value}" for key, value in hosted.items()))
    assert code == Code.REFUSED
    assert told["attack_success"]["value"] == pytest.approx(84 / 126), "four of six families want 900 bar"
    assert told["attack_success"]["met"] is False
    assert told["answer_correctness"]["value"] == 0
    assert told["abstention_f1"]["value"] == 0, "it declined nothing"
