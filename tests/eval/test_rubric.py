"""A rubric is a file: read strictly, named by its content."""

from pathlib import Path

import pytest

from domain.errors import ConfigError
from domain.judging import Grade
from eval.rubric import SHIPPED, load


def test_the_shipped_rubric_says_what_every_grade_means_and_counts() -> None:
    rubric = load()
    assert list(rubric.grades) == list(rubric.scale) == list(Grade)
    assert rubric.scale[Grade.RIGHT] == 1
    assert rubric.scale[Grade.UNGROUNDED] == 0


def test_another_word_is_another_digest(tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(SHIPPED.read_text("utf-8").replace("neither a merit", "never a merit"), "utf-8")
    assert load(other).tag != load().tag
    assert load(other).tag.startswith("answers-1@")


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text(
        'name = "x"\nversion = "1"\nmood = 1\n[criteria]\nground = " "\n'
        '[grades]\nright = "yes"\n[scale]\nright = 1\npartly = 2\nwrong = nan\nungrounded = true\n',
        "utf-8",
    )
    with pytest.raises(ConfigError) as caught:
        load(broken)
    for wrong in (
        "mood",
        "version",
        "criteria.ground",
        "grades has right",
        "scale.partly",
        "scale.wrong",
        "ungrounded",
    ):
        assert wrong in str(caught.value), wrong


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml"):
        load(tmp_path / "gone.toml")
