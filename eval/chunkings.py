"""Ways of cutting a library on the same questions: what each finds, what it takes, and what none of its passages holds.

Numbers in, numbers out: what is built, searched and shown is somebody else's business. A figure that cannot be had is
None, which is not zero.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from domain.evaluation import Estimate
from domain.releases import Scorecard
from eval.intervals import Sample, interval
from eval.observed import Observed
from eval.questions import Question
from eval.ranking import folded


@dataclass(frozen=True, slots=True)
class Taken:
    """What a way of cutting takes: rows that are searched, passages that can be cited and their estimated tokens, bytes
    of the version on disk, and seconds of building it, with whatever the machine did besides.
    """

    chunks: int
    passages: int
    mean_tokens: float
    storage_bytes: int
    build_s: float


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Gold sentences that no passage holds whole, of all that the questions name; None where they name only documents.

    `absent` of them are of documents that the library does not have: no way of cutting would help those.
    """

    count: int
    absent: int
    sentences: int


@dataclass(frozen=True, slots=True)
class Chunking:
    """One way of cutting: per metric the mean with its interval, and the paired difference to the configured way."""

    name: str
    taken: Taken
    unresolved: Unresolved | None
    means: Mapping[str, Estimate | None]
    differences: Mapping[str, Estimate | None]
    tokens_at: Mapping[int, float]  # mean estimated tokens of the first k passages


@dataclass(frozen=True, slots=True)
class Looked:
    """What was measured of one way of cutting, before it is compared."""

    name: str
    taken: Taken
    unresolved: Unresolved | None
    scorecard: Scorecard
    tokens_at: Mapping[int, float]


def metric_names(questions: Sequence[Question], cutoffs: Sequence[int]) -> list[str]:
    """What is measured: of sentences only where the questions name some."""
    ranked = ["recall", *(["evidence_recall"] if _sentences(questions) else [])]
    return [*(f"{name}@{k}" for name in ranked for k in cutoffs), "ndcg@10"]


def unresolved(questions: Sequence[Question], passages: Iterable[tuple[str, str]]) -> Unresolved | None:
    """The gold sentences that stand whole in none of the passages, given as document id and text; each counts once."""
    sentences = _sentences(questions)
    if not sentences:
        return None
    open_: dict[str, set[str]] = {}
    for doc_id, text in sentences:
        open_.setdefault(doc_id, set()).add(text)
    absent = set(open_)
    for doc_id, text in passages:
        if doc_id in open_:
            absent.discard(doc_id)
            said = folded(text)
            open_[doc_id] -= {sentence for sentence in open_[doc_id] if sentence in said}
    left = sum(map(len, open_.values()))
    return Unresolved(left, sum(len(open_[doc_id]) for doc_id in absent), len(sentences))


def compared(looked: Sequence[Looked], configured: str, alpha: float, seed: int) -> tuple[Chunking, ...]:
    """Every way of cutting beside the configured one, in the order given. Bounds are beyond the mean with a chance of
    `alpha` each; without the configured way among them there is no difference.
    """
    base = next((each.scorecard for each in looked if each.name == configured), None)
    return tuple(
        Chunking(
            name=each.name,
            taken=each.taken,
            unresolved=each.unresolved,
            means={metric: _mean(values, alpha, seed) for metric, values in each.scorecard.values.items()},
            differences={
                metric: _difference(values, base, metric, alpha, seed) if base and each.name != configured else None
                for metric, values in each.scorecard.values.items()
            },
            tokens_at=each.tokens_at,
        )
        for each in looked
    )


def tokens_at(observed: Sequence[Observed], cutoffs: Sequence[int]) -> dict[int, float]:
    """Mean estimated tokens of the first k passages; each passage says how many it has."""
    found = [[passage["tokens"] for passage in one.passages("consulted")] for one in observed]
    return {k: fmean(sum(tokens[:k]) for tokens in found) if found else 0.0 for k in cutoffs}


def _sentences(questions: Sequence[Question]) -> set[tuple[str, str]]:
    return {(anchor.doc_id, folded(anchor.text)) for q in questions for anchor in q.evidence if anchor.text.strip()}


def _mean(values: Mapping[str, float | None], alpha: float, seed: int) -> Estimate | None:
    eligible = [value for value in values.values() if value is not None]
    if not eligible:
        return None
    low, high = interval(Sample.of(eligible, 0.0, 1.0), alpha, seed)
    return Estimate(fmean(eligible), low, high, len(eligible))


def _difference(
    values: Mapping[str, float | None], base: Scorecard, metric: str, alpha: float, seed: int
) -> Estimate | None:
    before = base.values[metric]
    pairs = [(value, before[question]) for question, value in values.items()]
    apart = [round(new - old, 12) for new, old in pairs if new is not None and old is not None]
    if not apart:
        return None
    low, high = interval(Sample.of(apart, -1.0, 1.0), alpha, seed)
    return Estimate(fmean(apart), low, high, len(apart))
