"""What the page offers to try: written once something is served, read by every gateway."""

from pathlib import Path

import pytest

from domain.errors import ConfigError
from eval.questions import load
from tests.tidegate.small import small_library
from tidegate.sample import questions_path
from tidegate.suggestions import FILE, offer, offered


def test_six_questions_of_the_set_are_offered_and_none_without_a_set(tmp_path: Path) -> None:
    settings, _ = small_library(tmp_path)
    offer(settings, questions_path(settings))
    asked = {question.query for question in load(questions_path(settings))}
    assert len(offered(tmp_path)) == 6
    assert asked.issuperset(offered(tmp_path))
    offer(settings, None)
    assert offered(tmp_path) == ()


def test_nothing_is_offered_where_nothing_was_written(tmp_path: Path) -> None:
    assert offered(tmp_path) == ()


def test_damaged_suggestions_are_told_by_name(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("[broken", "utf-8")
    with pytest.raises(ConfigError, match=r"suggestions\.json"):
        offered(tmp_path)
