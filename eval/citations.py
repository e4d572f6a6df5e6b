"""Citations held against the gold evidence."""

from statistics import fmean

from eval.client import Body
from eval.observed import Observed
from eval.questions import Question
from eval.ranking import anchors_within, contains


def citation_recall(observed: Observed) -> float | None:
    """Share of the gold sentences that stand in a cited passage."""
    return anchors_within(observed, observed.passages("citations"))


def citation_precision(observed: Observed) -> float | None:
    """Share of the citations that hold: the cited passage contains a gold sentence, whole, of its own document.

    Every fact on the way to an answer has its gold sentence, so citing an intermediate hop holds too. A passage that
    says the same in other words counts as wrong: a lower bound, which no lucky word can raise. Not eligible without a
    citation: missing ones are citation recall's business. On a null question every citation is wrong.
    """
    if observed.failed:
        return 0.0
    cited = observed.passages("citations")
    return fmean(float(_holds(observed.question, passage)) for passage in cited) if cited else None


def _holds(question: Question, passage: Body) -> bool:
    return any(contains(passage, anchor) for anchor in question.evidence)
