"""Learning when to decline: the bar keeps its promise, and the weights are the trees that were grown."""

import numpy as np
import pytest

from domain.errors import BadRequest
from domain.evidence_signals import SIGNALS
from eval.covering_training import DECLINED, Held, Sample, bar_for, held, learned


def samples(seed: int, count: int) -> list[Sample]:
    """Questions that are answerable where what they name is named, nine times of ten."""
    rng, found = np.random.default_rng(seed), list[Sample]()
    for _ in range(count):
        named = float(rng.random() > 0.3)
        known = {name: float(rng.random()) for name in SIGNALS} | {"named": named}
        found.append(Sample(known, bool(named) == (rng.random() > 0.02)))
    return found


def test_the_bar_declines_at_most_its_share_of_what_is_answerable() -> None:
    chances = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.15, 0.9])
    answerable = np.array([True, True, True, True, True, False, False])
    assert bar_for(chances, answerable, 0.2) == pytest.approx(0.15)  # one of five, half way from .1 to .2
    assert bar_for(chances, answerable, 0.19) == pytest.approx(0.05)  # none
    assert np.mean(chances[answerable] < bar_for(chances, answerable, 0.4)) == 0.4


def test_weights_tell_unseen_questions_apart_within_the_share_that_may_be_declined() -> None:
    covering = learned("any", samples(1, 600), samples(2, 300))
    on_dev, unseen = held(covering, samples(2, 300)), held(covering, samples(3, 300))
    assert on_dev.over_refusal <= DECLINED
    assert unseen.f1 > 0.9
    assert covering.encoder == "any"


def test_precision_recall_and_over_refusal_are_counted() -> None:
    covering = learned("any", samples(1, 400), samples(2, 200))
    base = dict(samples(1, 1)[0].signals)
    known, gone = base | {"named": 1.0}, base | {"named": 0.0}
    told = held(covering, [Sample(known, True), Sample(known, False), Sample(gone, False), Sample(gone, True)])
    assert told == Held(4, 2, 0.5, 0.5, 0.5, 0.5)


def test_questions_of_one_kind_alone_teach_nothing() -> None:
    only = [sample for sample in samples(1, 100) if sample.answerable]
    with pytest.raises(BadRequest, match="training questions are all answerable"):
        learned("any", only, samples(2, 50))
    with pytest.raises(BadRequest, match="dev questions are all answerable"):
        learned("any", samples(1, 100), only)
