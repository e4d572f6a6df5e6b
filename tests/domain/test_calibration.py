"""Curves are read straight between their points; a listwise score is read as a lead."""

import pytest

from domain.calibration import Calibration, Curve, Order, Signal, lead, relevance
from tests.fakes import chunk, hits

A, B, C = (chunk(f"{name}#0", "text") for name in "abc")
RISING = Curve((0.0, 1.0), (0.2, 0.8))


def calibration(method: str, signal: Signal) -> Calibration:
    return Calibration("an encoder", RISING, orders=(Order(method, signal, RISING),))


@pytest.mark.parametrize(("score", "value"), [(-1, 0.2), (0, 0.2), (0.25, 0.35), (0.5, 0.5), (1, 0.8), (7, 0.8)])
def test_a_curve_is_straight_between_its_points_and_level_beyond(score: float, value: float) -> None:
    assert RISING.at(score) == pytest.approx(value)


def test_a_curve_of_one_point_is_level() -> None:
    assert Curve((0.5,), (0.3,)).at(9) == 0.3


@pytest.mark.parametrize(
    ("scores", "values"),
    [
        ((), ()),
        ((0.0,), ()),
        ((0.0, 0.0), (0.1, 0.2)),
        ((1.0, 0.0), (0.1, 0.2)),
        ((0.0, 1.0), (0.2, 0.1)),
        ((0.0,), (float("nan"),)),
    ],
)
def test_points_that_are_no_rising_curve_are_refused(scores: tuple[float, ...], values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="curve"):
        Curve(scores, values)


def test_the_lead_is_what_a_hit_is_above_the_best_other_one() -> None:
    shown = hits(A, B, C)  # scores 1.0, 0.9, 0.8
    assert [lead(shown, place) for place in range(3)] == pytest.approx([0.1, -0.1, -0.2])


def test_a_hit_alone_leads_nobody() -> None:
    assert lead(hits(A), 0) == 0.0


def test_relevance_reads_the_lead_of_the_best_hit() -> None:
    assert relevance(hits(A, B), calibration("fake", Signal.LEAD)) == pytest.approx(0.2 + 0.6 * 0.1)


def test_relevance_reads_the_score_of_a_method_whose_scores_mean_something() -> None:
    assert relevance(hits(A, B), calibration("fake", Signal.SCORE)) == pytest.approx(0.8)


def test_nothing_is_said_of_an_order_that_was_not_calibrated() -> None:
    assert relevance(hits(A, B), calibration("another", Signal.LEAD)) is None
    assert relevance(hits(A, B), None) is None
    assert relevance((), calibration("fake", Signal.LEAD)) is None
