"""The question of a canaried answer searched again on stable, in the background, so that both versions are compared on
the same question: one search each, packed under the same cap, nothing generated. Text stays here; numbers leave.

What one answer remembers for it is FirstSearch; who asks for the comparison and keeps it is observing.py.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.errors import TidegateError
from domain.packing import pack
from domain.policies import coverage
from domain.ports import Stages
from domain.searching import search
from domain.types import Chunk, Evidence, Hit, Mode, Query, Reranking, Retrieval, Scope
from serving.service import Service
from serving.telemetry import SHADOWS

log = logging.getLogger("tidegate.serving")

AT_ONCE = 8  # shadow searches of one gateway; the retriever works for people first
PAUSE_S = 0.02  # the reply leaves first
LIMIT_S = 5.0  # a comparison that takes longer is given up: it is a sample, and the next request brings another

Pairs = Mapping[str, tuple[float, float]]  # metric -> (canary, stable)


@dataclass(frozen=True, slots=True)
class Searched:
    """The first search of an answer: what was searched for, for whom, and the `k` best hits as they were served."""

    query: Query
    scope: Scope
    k: int
    hits: tuple[Hit, ...]


class FirstSearch:
    """The retriever and the reranker of one answer, which remember its first search.

    The first alone is compared: later, wider rounds and the conversation's pool follow from it, and are not the
    index's doing.
    """

    def __init__(self, stages: Stages, k: int) -> None:
        self._retriever, self._reranker, self._k = stages.retriever, stages.reranker, k
        self._first: Searched | None = None
        self._searches = 0
        self._as_served = False

    @property
    def searched(self) -> Searched | None:
        """The first search; None when there was none, or when it was not served as it should be: not reranked."""
        return self._first if self._as_served else None

    def within(self, stages: Stages) -> Stages:
        """The stages with this in place of their retriever and reranker."""
        return Stages(stages.rewriter, self, self if stages.reranker else None, stages.generator)

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        """As Retriever.retrieve."""
        found = await self._retriever.retrieve(query, scope, version, n, mode)
        self._searches += 1
        if self._searches == 1:
            self._first = Searched(query, scope, self._k, found.hits[: self._k])
            self._as_served = self._reranker is None or not found.hits
        return found

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        """As Retriever.chunks."""
        return await self._retriever.chunks(ids, scope, version)

    async def rerank(self, query: Query, hits: Sequence[Hit], within_s: float | None = None) -> Reranking:
        """As Reranker.rerank."""
        if self._reranker is None:
            raise RuntimeError("Reranking was asked of stages without a reranker: this is a bug in shadow.py.")
        ranked = await self._reranker.rerank(query, hits, within_s)
        if self._searches == 1 and self._first:
            self._first = Searched(self._first.query, self._first.scope, self._k, ranked.hits[: self._k])
            self._as_served = True
        return ranked


class Shadow:
    """Searches stable for what a canary was asked. Never raises, and never works on more than AT_ONCE questions."""

    def __init__(self, service: Service) -> None:
        self._stages, self._rules, self._telemetry = service.stages, service.rules, service.telemetry
        self._running = 0

    async def compare(self, canary: Searched, stable: str) -> Pairs:
        """The metrics of both versions on one question; empty, and counted by reason, when there is no comparison."""
        if self._running >= AT_ONCE:
            return self._nothing("crowded")
        self._running += 1
        try:
            await asyncio.sleep(PAUSE_S)
            async with asyncio.timeout(LIMIT_S):
                rules, mode = self._rules, Mode.HYBRID
                found, _ = await search(
                    canary.query, canary.scope, stable, canary.k, mode, self._stages, rules.rerank_depth
                )
        except TimeoutError:
            return self._nothing("late")
        except TidegateError:
            return self._nothing("failed")
        except Exception:
            log.exception("A shadow search failed: the answer it belongs to is not affected.")
            return self._nothing("failed")
        finally:
            self._running -= 1
        if found.version != stable:  # a replica that has not opened it: a comparison with something else is none
            return self._nothing("elsewhere")
        self._telemetry.add(SHADOWS, 1, "compared")
        cap = rules.evidence_token_cap
        return pairs(canary.query.text, pack((), canary.hits, 1, cap), pack((), found.hits, 1, cap))

    def _nothing(self, reason: str) -> Pairs:
        self._telemetry.add(SHADOWS, 1, reason)
        return {}


def pairs(question: str, canary: Sequence[Evidence], stable: Sequence[Evidence]) -> Pairs:
    """What can be said of two sets of evidence for one question without anybody judging them, each in [0, 1].

    `found`: 1 with any evidence. `coverage`: share of the question's content words in it; left out without such a
    word. `overlap`: shared documents over all documents (Jaccard), 1 where both have none, against 1 for "the same".
    """
    ours, theirs = ({e.chunk.source.doc_id for e in evidence} for evidence in (canary, stable))
    overlap = len(ours & theirs) / len(ours | theirs) if ours | theirs else 1.0
    told = {"found": (float(bool(canary)), float(bool(stable))), "overlap": (overlap, 1.0)}
    covered, covering = coverage(question, _texts(canary)), coverage(question, _texts(stable))
    if covered is not None and covering is not None:
        told["coverage"] = (covered, covering)
    return told


def _texts(evidence: Sequence[Evidence]) -> list[str]:
    """What a model is shown of each passage: title and heading belong to it, wherever a chunker cut."""
    return [f"{e.chunk.source.title}\n{e.chunk.heading}\n{e.chunk.text}" for e in evidence]
