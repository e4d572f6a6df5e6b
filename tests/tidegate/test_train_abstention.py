"""`tidegate train-abstention` without a model, and which weights are in force under which settings."""

import json
from pathlib import Path

import pytest

from domain.errors import ConfigError
from tests.tidegate.small import SMALL
from tidegate.cli import main
from tidegate.compose import make_rules
from tidegate.compose_covering import encoder_name, make_covering
from tidegate.console import Code
from tidegate.loading import load
from tidegate.settings import Settings

Capture = pytest.CaptureFixture[str]


def settings(**changes: str) -> Settings:
    return load(None, {}, {key.replace("__", "."): value for key, value in changes.items()}).settings


def test_the_shipped_weights_are_in_force_with_the_bundled_encoder_alone() -> None:
    bundled, hashing = make_covering(settings()), make_covering(settings(embedding__backend="hashing"))
    assert bundled is not None
    assert bundled.encoder == "minilm"
    assert hashing is None
    assert make_rules(settings()).covering == bundled


def test_the_generator_decides_where_settings_say_so_or_nothing_can_be_measured() -> None:
    assert make_covering(settings(abstaining__mode="generator")) is None
    assert make_covering(settings(retrieval__knowledge_base="ABCDEFGHIJ")) is None


def test_a_bar_in_the_settings_replaces_that_of_the_weights() -> None:
    covering = make_covering(settings(abstaining__bar="0.25"))
    assert covering is not None
    assert covering.bar == 0.25


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "minilm"),
        ({"embedding__backend": "hashing", "embedding__dimensions": "64"}, "hashing-64"),
        ({"embedding__backend": "folder", "embedding__folder": "/models/bge"}, "folder-bge"),
    ],
)
def test_an_encoder_has_one_name_under_equal_settings(changes: dict[str, str], name: str) -> None:
    assert encoder_name(settings(**changes)) == name


@pytest.mark.slow
def test_weights_are_learned_written_and_in_force_once_they_are_named(tmp_path: Path, capsys: Capture) -> None:
    out, small = tmp_path / "covering.json", SMALL | {"data_dir": str(tmp_path / "data"), "sample.questions": "120"}
    sets = [word for key, value in small.items() for word in ("--set", f"{key}={value}")]
    assert main(["train-abstention", "--out", str(out), "--libraries", "1", "--json", *sets]) == Code.DONE
    told = json.loads(capsys.readouterr().out)
    assert told["learned_on"] == "120 questions of libraries 101"
    assert told["dev"]["over_refusal"] <= 0.05  # the bar was set on them
    named = load(None, {}, small | {"abstaining.weights": str(out)}).settings
    covering = make_covering(named)
    assert covering is not None
    assert (covering.encoder, covering.bar) == ("hashing-256", told["bar"])
    elsewhere = load(None, {}, {"abstaining.weights": str(out)}).settings
    with pytest.raises(ConfigError, match=r"'hashing-256'.*search with 'minilm'"):
        make_covering(elsewhere)


def test_a_sample_that_would_be_learned_from_is_refused(tmp_path: Path, capsys: Capture) -> None:
    code = main(["train-abstention", "--out", str(tmp_path / "w.json"), "--set", "sample.seed=102"])
    assert code == Code.USAGE
    assert "sample.seed 102" in capsys.readouterr().err
