"""Chances fitted and judged: against scikit-learn, by hand, and on simulated truth that is known."""

from dataclasses import replace

import numpy as np
import pytest

from eval.calibrating import (
    Scored,
    calibration_error,
    cross_fitted,
    isotonic,
    left_out_share,
    log_loss,
    read,
    same_share,
    share_under,
)


def simulated(questions: int, passages: int, seed: int) -> Scored:
    """Passages whose chance to be relevant is their score, to the square."""
    rng = np.random.default_rng(seed)
    scores = rng.random(questions * passages)
    relevant = (rng.random(scores.size) < scores**2).astype(np.float64)
    return Scored(scores, relevant, np.repeat(np.arange(questions), passages))


@pytest.mark.parametrize("seed", range(5))
def test_every_level_of_the_curve_is_the_one_of_scikit_learn(seed: int) -> None:
    from sklearn.isotonic import IsotonicRegression  # takes seconds to import: not at collection

    scored = simulated(20, 4, seed)
    scores = np.round(scored.scores, 1)  # with ties
    curve = isotonic(scores, scored.relevant)
    oracle = IsotonicRegression().fit(scores, scored.relevant).predict(scores)
    levels = np.unique(np.round(np.clip(oracle, 1 / 160, 1 - 1 / 160), 6))
    assert np.allclose(np.unique(curve.values), levels, atol=2e-6)


def test_the_curve_by_hand() -> None:
    # Levels: 0 of 1 at 0.1; 1 of 2 at the mean of 0.2 and 0.4; 1 of 1 at 0.5. Nothing is nearer to 0 or 1 than 1 / 8.
    curve = isotonic(np.array([0.1, 0.2, 0.4, 0.5]), np.array([0.0, 1.0, 0.0, 1.0]))
    assert curve.scores == (0.1, 0.3, 0.5)
    assert curve.values == (0.125, 0.5, 0.875)


def test_the_curve_never_falls_and_never_says_certain() -> None:
    for seed in range(20):
        scored = simulated(10, 3, seed)
        curve = isotonic(scored.scores, scored.relevant)
        assert list(curve.values) == sorted(curve.values)
        assert 0 < curve.values[0] <= curve.values[-1] < 1


def test_many_scores_are_read_as_one_is() -> None:
    curve = isotonic(np.array([0.1, 0.2, 0.4, 0.5]), np.array([0.0, 1.0, 0.0, 1.0]))
    scores = np.linspace(-1, 1, 41)
    assert np.allclose(read(curve, scores), [curve.at(score) for score in scores])


def test_a_question_is_never_read_by_a_curve_that_was_fitted_on_it() -> None:
    scored = simulated(10, 2, 0)
    turned = replace(scored, relevant=np.where(scored.question == 3, 1 - scored.relevant, scored.relevant))
    own = scored.question == 3
    assert np.array_equal(cross_fitted(scored, 7)[own], cross_fitted(turned, 7)[own])


def test_the_error_by_hand() -> None:
    # Two bins of two: |(.2 - 0) + (.2 - 1)| + |(.8 - 1) + (.8 - 1)| = .6 + .4, over 4 passages.
    scored = Scored(np.zeros(4), np.array([0.0, 1.0, 1.0, 1.0]), np.arange(4))
    assert calibration_error(np.array([0.2, 0.2, 0.8, 0.8]), scored, 7).value == pytest.approx(0.25)


def test_chances_that_are_right_show_no_error_beyond_chance() -> None:
    scored = simulated(400, 5, 1)
    error = calibration_error(scored.scores**2, scored, 7)
    assert error.value < 2 * error.by_chance
    assert error.low < 0.01
    assert (error.passages, error.questions, error.bins) == (2000, 400, 10)


def test_chances_that_are_wrong_show_by_how_much() -> None:
    scored = simulated(400, 5, 1)
    error = calibration_error(np.full(2000, 0.9), scored, 7)  # a third is relevant
    assert error.low > 0.5
    assert error.bins == 1  # all chances are equal


def test_fitted_chances_are_nearer_than_the_scores_they_came_from() -> None:
    scored = simulated(400, 5, 2)
    before, after = (calibration_error(c, scored, 7) for c in (scored.scores, cross_fitted(scored, 7)))
    assert after.high < before.low
    assert log_loss(cross_fitted(scored, 7), scored) < log_loss(np.clip(scored.scores, 0.01, 0.99), scored)


def test_the_order_of_questions_changes_no_error() -> None:
    scored = simulated(50, 3, 3)
    order = np.argsort(-scored.question, kind="stable")
    chances = scored.scores**2
    assert calibration_error(chances, scored, 7).value == pytest.approx(
        calibration_error(chances[order], scored.at(order), 7).value
    )


@pytest.mark.parametrize("bar", [0.05, 0.3, 0.31, 0.5, 0.9])
def test_as_many_questions_stay_under_the_bar_in_other_terms(bar: float) -> None:
    rng = np.random.default_rng(4)
    theirs = rng.normal(0.6, 0.12, 300).clip(-1, 1)
    ours = 0.3 * theirs + 0.1 * rng.random(300)  # another scale, another order
    translated = same_share(theirs, ours).at(bar)
    assert share_under(ours, translated) == pytest.approx(share_under(theirs, bar), abs=1 / 300)


def test_a_bar_that_nobody_was_under_stays_under_everybody() -> None:
    curve = same_share(np.array([0.5, 0.6, 0.7]), np.array([0.2, 0.3, 0.4]))
    assert curve.at(0.5) == pytest.approx(0.2)
    assert curve.at(0.1) < 0.2


def test_an_encoder_in_its_own_terms_keeps_its_bar() -> None:
    cosines = np.random.default_rng(5).random(100)
    assert same_share(cosines, cosines).at(0.3) == pytest.approx(0.3, abs=1e-5)


def test_equal_cosines_give_a_curve() -> None:
    assert same_share(np.full(5, 0.4), np.full(5, 0.2)).at(0.4) == pytest.approx(0.2)


def test_the_share_holds_where_the_bar_was_not_fitted() -> None:
    rng = np.random.default_rng(6)
    theirs = rng.normal(0.6, 0.2, 500).clip(-1, 1)
    ours = 0.5 * theirs + 0.05 * rng.random(500)
    assert left_out_share(theirs, ours, 0.3, 7) == pytest.approx(share_under(theirs, 0.3), abs=0.02)
