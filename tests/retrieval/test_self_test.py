"""A model that does not rank is refused when it is loaded."""

import pytest

from domain.errors import ConfigError
from retrieval.self_test import prove
from tests.fakes import FakePairModel


def test_a_model_that_tells_right_from_wrong_passes() -> None:
    prove(FakePairModel(), "models/fake")


def test_constant_scores_are_refused_by_name_with_the_way_out() -> None:
    model = FakePairModel()
    model.constant = 0.5
    with pytest.raises(
        ConfigError, match=r"models/fake does not rank \(all 6 known pairs got the score 0\.5\).*name a"
    ):
        prove(model, "models/fake")


def test_scores_that_are_not_finite_are_refused() -> None:
    model = FakePairModel()
    model.constant = float("nan")
    with pytest.raises(ConfigError, match="6 of 6 known pairs got a score that is not finite"):
        prove(model, "models/fake")


def test_a_model_that_ranks_the_wrong_way_round_is_refused() -> None:
    class Backwards(FakePairModel):
        def _logit(self, pair):  # type: ignore[no-untyped-def]
            return -super()._logit(pair)

    with pytest.raises(ConfigError, match="beat the wrong one for 0 of 3"):
        prove(Backwards(), "models/fake")
