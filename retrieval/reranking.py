"""Reranking: what a passage is to a pair scorer, the scorer that needs no model, and the stage around any scorer."""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from math import isfinite
from pathlib import Path

import numpy as np

from domain.errors import ConfigError, StageFailed
from domain.ports import PairScorer
from domain.types import Chunk, Hit, Query, Reranking
from retrieval.pair_features import FEATURES, Floats, PairFeatures, WordVectors

WEIGHTS = Path(__file__).with_name("weights") / "feature_reranker.json"


def passage(chunk: Chunk) -> str:
    """Title, heading and text, one a line, empty ones left out: what a pair scorer reads of a chunk."""
    return "\n".join(part for part in (chunk.source.title, chunk.heading, chunk.text) if part)


def reorder(hits: Sequence[Hit], scores: Sequence[float], method: str) -> tuple[Hit, ...]:
    """A permutation of `hits` by new scores, best first, ties by chunk id, ranks from 1.

    Raises StageFailed for a score that is missing or not finite: such an order would mean nothing.
    """
    if len(scores) != len(hits) or not all(map(isfinite, scores)):
        raise StageFailed(
            f"Reranker {method!r} gave {len(scores)} scores, {sum(map(isfinite, scores))} of them finite, for "
            f"{len(hits)} hits: one finite score per hit is wanted; this is a bug in the reranker.",
            stage="rerank",
        )
    ordered = sorted(zip(hits, scores, strict=True), key=lambda pair: (-pair[1], pair[0].chunk.id))
    return tuple(
        replace(hit, score=float(score), rank=rank, method=method) for rank, (hit, score) in enumerate(ordered, 1)
    )


class FeatureReranker:
    """PairScorer of the embedded default: the first stage's score, corrected by eight pair features.

    Everything is normalised over the list (mean 0, deviation 1), so the scores order one list and mean nothing outside
    of it. A feature that is equal for all hits says nothing; with all weights 0 the first stage's order stays.
    """

    listwise = True

    def __init__(self, weights: Mapping[str, float], word_vectors: WordVectors | None = None) -> None:
        if set(weights) != set(FEATURES) or not all(map(isfinite, weights.values())):
            raise ConfigError(
                f"The reranker's weights are {dict(weights)}, one finite number for each of {', '.join(FEATURES)} is "
                "wanted: restore retrieval/weights/feature_reranker.json or train anew."
            )
        self.weights = np.array([weights[name] for name in FEATURES])
        self.features = PairFeatures(word_vectors)
        self.tag = f"features-{hashlib.sha256(self.weights.tobytes()).hexdigest()[:8]}"

    def score(self, query: str, hits: Sequence[Hit]) -> Sequence[float]:
        """One score per hit: the normalised first-stage score plus the weighted normalised features."""
        prior = np.array([[hit.score] for hit in hits]).reshape(-1, 1)
        scores: list[float] = (
            standardised(prior)[:, 0] + standardised(self.features(query, hits)) @ self.weights
        ).tolist()
        return scores


def read_weights(path: Path = WEIGHTS) -> dict[str, float]:
    """The weights in a file written by feature_training.py. Raises ConfigError naming the file and the way out."""
    try:
        weights: dict[str, float] = {
            name: float(w) for name, w in json.loads(path.read_text("utf-8"))["weights"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ConfigError(
            f"The reranker's weights cannot be read from {path} ({problem!r}): restore the file, or write a new one "
            "with `tidegate train-reranker --kind features --pairs DIR --out FILE`."
        ) from problem
    return weights


def standardised(columns: Floats) -> Floats:
    """Each column [n, columns] over the list: mean 0 and deviation 1, or zeros where all values are equal."""
    if not len(columns):
        return columns
    centred = columns - columns.mean(0)
    deviations = columns.std(0)
    # Equal values can leave a rounding error behind, which must not be blown up to a difference.
    flat = deviations <= 1e-9 * np.maximum(1.0, np.abs(columns).max(0))
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, deviations))


class ScoredReranker:
    """Reranker over a pair scorer: reorders the best `depth` hits, keeps the rest below them in their order.

    The rest keeps its own method and scores, which are not comparable with those above; ranks run through. Scoring runs
    in `executor`, because it computes for milliseconds on end and the event loop has streams to serve.
    """

    def __init__(self, scorer: PairScorer, depth: int, executor: Executor) -> None:
        self.scorer, self.depth, self.executor = scorer, depth, executor

    async def rerank(self, query: Query, hits: Sequence[Hit], within_s: float | None = None) -> Reranking:  # noqa: ARG002
        """A permutation of `hits` with new ranks: never more, never fewer. Takes the time that it takes."""
        head, tail = tuple(hits[: self.depth]), hits[self.depth :]
        if not head:
            return Reranking(())
        loop = asyncio.get_running_loop()
        scores = await loop.run_in_executor(self.executor, self.scorer.score, query.text, head)
        below = (replace(hit, rank=rank) for rank, hit in enumerate(tail, len(head) + 1))
        return Reranking((*reorder(head, scores, self.scorer.tag), *below))
