"""What a bench says, and how it ends."""

import json

import pytest

from tidegate.bench_lines import Figure, told
from tidegate.console import Code


def test_each_figure_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    told([Figure("pairs", 80.0, "pairs/s", {"st": 16.0}, {"st": 5.0}, ">= 5x", True), Figure("ms", 1.5, "ms")], True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["name"], line["value"], line["ratio"]) for line in lines] == [
        ("pairs", 80.0, {"st": 5.0}),
        ("ms", 1.5, {}),
    ]


@pytest.mark.parametrize(
    ("figures", "code"),
    [
        ([Figure("a", 1.0, "ms", aim="<= 2", met=True)], Code.DONE),
        ([Figure("a", 3.0, "ms", aim="<= 2", met=False)], Code.REFUSED),
        ([Figure("a", 0.0, "ms")], Code.DONE),
        ([Figure("a", None, "ms")], Code.NOT_MEASURED),
    ],
)
def test_a_missed_aim_a_missing_figure_and_a_zero_end_differently(figures: list[Figure], code: Code) -> None:
    assert told(figures, False) is code


def test_what_was_not_measured_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    told([Figure("gpu", None, "pairs/s")], False)
    assert "not measured" in capsys.readouterr().out
