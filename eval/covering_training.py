"""Learns what signals of evidence are worth, and the bar under which a question is declined. Numbers only.

Questions come with their signals; asking them is tidegate/abstaining.py. Weights are learned on some libraries and the
bar is set on the dev questions of another one, so that neither has seen what it is judged by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.covering import DEPTH, Covering, Tree
from domain.errors import BadRequest
from domain.evidence_signals import SIGNALS
from eval.boosting import boost

ROUNDS = 200
# Share of the answerable dev questions that the bar may decline. The aim is .05 on questions that nobody has seen; of
# 250 questions, .03 is about two standard errors below it.
DECLINED = 0.03


@dataclass(frozen=True, slots=True)
class Sample:
    """A question's signals, and whether the library holds its answer for who asks."""

    signals: Mapping[str, float]
    answerable: bool


@dataclass(frozen=True, slots=True)
class Held:
    """What a bar does to questions: F1, precision and recall of declining, and the share wrongly declined."""

    questions: int
    unanswerable: int
    f1: float
    precision: float
    recall: float
    over_refusal: float


def learned(encoder: str, training: Sequence[Sample], dev: Sequence[Sample]) -> Covering:
    """Weights from `training`, the bar from `dev`. Raises BadRequest where either has only one kind of question."""
    for name, samples in (("training", training), ("dev", dev)):
        if len({sample.answerable for sample in samples}) < 2:
            raise BadRequest(
                f"The {name} questions are all answerable or all not ({len(samples)}): both are wanted to learn "
                "which are declined.",
                "questions",
            )
    labels = np.array([float(sample.answerable) for sample in training])
    grown = boost(_rows(training), labels, np.ones(len(labels)), ROUNDS, DEPTH)
    trees = tuple(Tree(tree.asks, tree.bars, tree.leaves) for tree in grown.trees)
    unbarred = Covering(encoder, grown.start, trees, bar=0.0)
    return Covering(encoder, grown.start, trees, bar=bar_for(_chances(unbarred, dev), _answerable(dev), DECLINED))


def bar_for(chances: NDArray[np.float64], answerable: NDArray[np.bool_], declined: float) -> float:
    """The highest bar that declines at most the share `declined` of what is answerable: half way to the next chance."""
    rising = np.sort(chances[answerable])
    at = int(declined * len(rising))
    below = rising[at - 1] if at else 0.0
    return round(float(below + rising[at]) / 2, 4)


def held(covering: Covering, samples: Sequence[Sample]) -> Held:
    """What the weights and their bar do to these questions."""
    declined, answerable = _chances(covering, samples) < covering.bar, _answerable(samples)
    right, wrong, nulls = (int(n.sum()) for n in (declined & ~answerable, declined & answerable, ~answerable))
    precision, recall = right / max(1, right + wrong), right / max(1, nulls)
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return Held(len(samples), nulls, f1, precision, recall, wrong / max(1, len(samples) - nulls))


def _rows(samples: Sequence[Sample]) -> NDArray[np.float64]:
    return np.array([[sample.signals[name] for name in SIGNALS] for sample in samples], np.float64)


def _chances(covering: Covering, samples: Sequence[Sample]) -> NDArray[np.float64]:
    return np.array([covering.chance(sample.signals) for sample in samples])


def _answerable(samples: Sequence[Sample]) -> NDArray[np.bool_]:
    return np.array([sample.answerable for sample in samples], np.bool_)
