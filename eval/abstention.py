"""Saying that the library does not cover a question: when it is right, when it is not, and in one number."""

from statistics import fmean

from domain.releases import Scorecard
from domain.types import Status
from eval.observed import Observed


def abstention(observed: Observed) -> float | None:
    """On questions the library cannot answer: 1 when the service said so."""
    return None if observed.answerable else float(observed.abstained)


def abstention_precision(observed: Observed) -> float | None:
    """On questions that the service said are not covered: 1 when they are not. Nothing declined is not eligible."""
    if observed.failed:
        return 0.0
    return float(not observed.answerable) if observed.abstained else None


def no_over_refusal(observed: Observed) -> float | None:
    """On questions the library can answer: 1 when the service did not decline. A wrong answer is no refusal."""
    declined = observed.failed or observed.status in (Status.NO_SOURCES, Status.REFUSED)
    return float(not declined) if observed.answerable else None


def abstention_f1(scorecard: Scorecard) -> float | None:
    """Harmonic mean of the precision and the recall of abstaining, over the whole set; of no single question.

    0 when there were questions to decline and none was declined; None when there was none to decline, or the
    scorecard lacks `abstention` or `abstention_precision`.
    """
    recalls, precisions = (
        [v for v in scorecard.values.get(name, {}).values() if v is not None]
        for name in ("abstention", "abstention_precision")
    )
    if not recalls or "abstention_precision" not in scorecard.values:
        return None
    recalled, precise = fmean(recalls), fmean(precisions) if precisions else 0.0
    return 2 * precise * recalled / (precise + recalled) if precise + recalled else 0.0
