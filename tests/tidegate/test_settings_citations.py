"""What becomes of unsupported claims is a setting that reaches the rules."""

import pytest
from pydantic import ValidationError

from domain.types import OnUnsupported
from tidegate.compose import make_rules
from tidegate.settings import Settings
from tidegate.settings_citations import Citations


@pytest.mark.parametrize(("said", "meant"), [("flag", OnUnsupported.FLAG), ("drop", OnUnsupported.DROP)])
def test_the_setting_reaches_the_rules(said: str, meant: OnUnsupported) -> None:
    settings = Settings.model_validate({"citations": {"unsupported": said}})
    assert make_rules(settings).on_unsupported is meant


def test_another_word_is_refused() -> None:
    with pytest.raises(ValidationError, match="flag"):
        Citations.model_validate({"unsupported": "hide"})
