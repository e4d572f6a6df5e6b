"""Saying that the library does not cover a question: when it is right, when it is not, and in one number."""

from statistics import fmean

import numpy as np

from domain.releases import Scorecard
from domain.types import Status
from eval.intervals import RESAMPLES
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


def abstention_f1_interval(scorecard: Scorecard, alpha: float, seed: int) -> tuple[float, float] | None:
    """The two bounds that `abstention_f1` is beyond with a chance of `alpha` each; None where there is no F1.

    A bootstrap of whole questions (percentiles of RESAMPLES draws), because F1 is no mean of theirs. A question counts
    by what it adds to the four sums behind precision and recall. Draws without a question to decline have no F1 and
    are left out.
    """
    if (f1 := abstention_f1(scorecard)) is None:
        return None
    recalls, precisions = scorecard.values["abstention"], scorecard.values["abstention_precision"]
    rows = [(*_of(recalls[q]), *_of(precisions[q])) for q in recalls]  # right, asked; right, declined
    kinds, counts = np.unique(np.array(rows), axis=0, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(rows), counts / len(rows), size=RESAMPLES)
    found, asked, right, declined = (drawn @ kinds).T  # [RESAMPLES] each
    with np.errstate(invalid="ignore", divide="ignore"):
        recalled, precise = found / asked, np.where(declined > 0, right / declined, 0.0)
        scores = np.where(recalled + precise > 0, 2 * recalled * precise / (recalled + precise), 0.0)
    low, high = np.quantile(scores[asked > 0], (alpha, 1 - alpha))
    return min(float(low), f1), max(float(high), f1)


def _of(value: float | None) -> tuple[float, float]:
    return (0.0, 0.0) if value is None else (value, 1.0)
