"""A comparison of chunking strategies as lines of a terminal, and as data."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from tidegate.columns import padded

if TYPE_CHECKING:
    from domain.evaluation import Estimate
    from eval.chunkings import Chunking
    from tidegate.settings import Settings

NAME = 14  # cells
NOT_MEASURED = "not measured"


def lines(settings: "Settings", told: "Sequence[Chunking]", questions: int, part: str) -> Iterator[str]:
    """What each way takes, and then each metric with all ways below it."""
    chosen, alpha = settings.chunking, settings.evaluation.alpha
    yield (
        f"{questions} questions with gold evidence (slice {part}); {chosen.tokens} tokens, overlap {chosen.overlap}; "
        f"reranked: {settings.rerank.backend}; encoder: {settings.embedding.backend}"
    )
    yield f"Differences are paired with {chosen.strategy}, which is configured; a bound is wrong with chance {alpha:g}."
    yield ""
    yield from _takes(told)
    for metric in told[0].means:
        yield ""
        yield metric
        for one in told:
            apart = "configured" if one.name == chosen.strategy else _signed(one.differences[metric])
            yield f"  {padded(one.name, NAME)}{_bounded(one.means[metric]):<26}{apart}"


def as_record(settings: "Settings", told: "Sequence[Chunking]", questions: int, part: str) -> dict[str, object]:
    """The same for a machine; null is not measured."""
    return {
        "questions": questions,
        "slice": part,
        "configured": settings.chunking.strategy,
        "tokens": settings.chunking.tokens,
        "overlap": settings.chunking.overlap,
        "k": settings.answering.k,
        "rerank": settings.rerank.backend,
        "embedding": settings.embedding.backend,
        "alpha": settings.evaluation.alpha,
        "strategies": [
            {
                "name": one.name,
                **asdict(one.taken),
                "unresolved": asdict(one.unresolved) if one.unresolved else None,
                "metrics": {metric: asdict(mean) if mean else None for metric, mean in one.means.items()},
                "differences": {metric: asdict(apart) if apart else None for metric, apart in one.differences.items()},
                "tokens_at": {str(k): tokens for k, tokens in one.tokens_at.items()},
            }
            for one in told
        ],
    }


def _takes(told: "Sequence[Chunking]") -> Iterator[str]:
    cutoffs = list(told[0].tokens_at)
    heads = ["searched", "passages", "tokens", *(f"tokens@{k}" for k in cutoffs), "KB", "build s"]
    yield f"  {padded('', NAME)}{''.join(f'{head:>10}' for head in heads)}   unresolved gold"
    for one in told:
        took = one.taken
        cells = [
            str(took.chunks),
            str(took.passages),
            f"{took.mean_tokens:.1f}",
            *(f"{one.tokens_at[k]:.0f}" for k in cutoffs),
            f"{took.storage_bytes / 1000:.0f}",
            f"{took.build_s:.1f}",
        ]
        yield f"  {padded(one.name, NAME)}{''.join(f'{cell:>10}' for cell in cells)}   {_unresolved(one)}"


def _unresolved(one: "Chunking") -> str:
    if one.unresolved is None:
        return f"{NOT_MEASURED}: the gold names documents, not sentences"
    absent = f", {one.unresolved.absent} of documents that are not there" if one.unresolved.absent else ""
    return f"{one.unresolved.count} of {one.unresolved.sentences}{absent}"


def _bounded(mean: "Estimate | None") -> str:
    return NOT_MEASURED if mean is None else f"{mean.mean:.4f} [{mean.low:.4f}, {mean.high:.4f}]"


def _signed(apart: "Estimate | None") -> str:
    return NOT_MEASURED if apart is None else f"{apart.mean:+.4f} [{apart.low:+.4f}, {apart.high:+.4f}]"
