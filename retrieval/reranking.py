"""Reranking: what a passage is to a pair scorer, how scores become an order, and the stage around a scorer."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from math import isfinite

from domain.errors import StageFailed
from domain.ports import PairScorer
from domain.types import Chunk, Hit, Query


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


class ScoredReranker:
    """Reranker over a pair scorer: reorders the best `depth` hits, keeps the rest below them in their order.

    The rest keeps its own method and scores, which are not comparable with those above; ranks run through. Scoring runs
    in `executor`, because it computes for milliseconds on end and the event loop has streams to serve.
    """

    def __init__(self, scorer: PairScorer, depth: int, executor: Executor) -> None:
        self.scorer, self.depth, self.executor = scorer, depth, executor

    async def rerank(self, query: Query, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """A permutation of `hits` with new ranks: never more, never fewer."""
        head, tail = tuple(hits[: self.depth]), hits[self.depth :]
        if not head:
            return ()
        loop = asyncio.get_running_loop()
        scores = await loop.run_in_executor(self.executor, self.scorer.score, query.text, head)
        below = (replace(hit, rank=rank) for rank, hit in enumerate(tail, len(head) + 1))
        return (*reorder(head, scores, self.scorer.tag), *below)
