"""Documents of the caller's own in the order of their relevance, in the shape of Cohere's clients.

The reranker of the answering path reads them and nothing is searched: a reader gets back positions and scores of what
he sent. A score is the chance that calibration gives it where this reranker's order is calibrated, and otherwise the
logistic function of what the reranker said, which only orders; `meta.warnings` tells which of the two.
"""

from bisect import bisect_right
from collections.abc import Sequence
from hashlib import sha256
from math import exp

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from domain.calibration import Order
from domain.errors import BadRequest, StageTimeout
from domain.packing import cost
from domain.types import Chunk, Hit, Query, Reranking, Scope, SourceRef
from serving.asking import Asking
from serving.auth import Right
from serving.compat_bodies import RerankBody, read_rerank
from serving.edge import FAILURE_SHAPE, json_response, read_body, unless_gone
from serving.telemetry import STAGE_SECONDS
from serving.wire import Json

GIVEN = "given"  # the method of a document that no reranker has read
ORDERED = "relevance_score is not calibrated here: it orders these documents and is no chance"
CHANCES = "relevance_score is the chance, on the library's own questions, that a passage of this score holds evidence"


def cohere_routes(asking: Asking) -> list[Route]:
    """The routes: one endpoint, at the address of each generation of their clients."""
    rerank = _Rerank(asking)
    return [Route(f"/{version}/rerank", rerank.rerank, methods=["POST"]) for version in ("v1", "v2")]


def cohere_failure(code: str, message: str, retryable: bool, request_id: str, field: str = "") -> Json:
    """An error as Cohere's clients read it, with what ours has beside it."""
    return {"id": request_id, "message": message, "code": code, "retryable": retryable, "field": field or None}


class _Rerank:
    """The endpoint over one gateway."""

    def __init__(self, asking: Asking) -> None:
        self.asking, self.service = asking, asking.service

    async def rerank(self, request: Request) -> Response:
        """The documents' positions, best first. Nothing degrades: what could not be read in time is a failure."""
        setattr(request.state, FAILURE_SHAPE, cohere_failure)
        service, started = self.service, self.service.clock()
        scope = service.authenticate(request.headers, Right.SEARCH)
        reranker = service.stages.reranker
        if reranker is None:
            raise BadRequest("This service has no reranker: its operator can set rerank.backend.", "model")
        depth = service.rules.rerank_depth
        body = read_rerank(await read_body(request, service.limits), service.rules.max_question_chars, depth)
        with self.asking.place():
            ranking = await unless_gone(request.receive, reranker.rerank(Query(body.query), given(body, scope)))
        service.telemetry.observe(STAGE_SECONDS, service.clock() - started, "rerank")
        unread = sum(hit.method == GIVEN for hit in ranking.hits)
        if unread:
            total = len(body.documents)
            raise StageTimeout(f"{unread} of {total} documents were not read in time: send fewer.", "reranker")
        return json_response(self._told(request.state.request_id, body, ranking))

    def _told(self, id: str, body: RerankBody, ranking: Reranking) -> Json:
        calibration, method = self.service.rules.calibration, ranking.hits[0].method
        orders = calibration.orders if calibration else ()
        order = next((order for order in orders if order.method == method), None)
        scores = relevance_scores(ranking.hits, order)
        results = [
            {"index": hit.chunk.ordinal, "relevance_score": score}
            for hit, score in zip(ranking.hits, scores, strict=True)
        ]
        notes = [self.service.naming.scrub(note) for note in ranking.notes]
        meta = {"api_version": {"version": "2"}, "warnings": [ORDERED if order is None else CHANCES, *notes]}
        return {"id": id, "results": results[: body.top_n], "meta": meta}


def given(body: RerankBody, scope: Scope) -> tuple[Hit, ...]:
    """The documents as hits in the order they came. Their ids hold their whole content, because a reranker may remember
    by its id what it has read, and must not take one caller's document for another's.
    """
    texts = [cut(text, body.max_tokens_per_doc) for text in body.documents]
    chunks = [
        Chunk(f"given#{place:05}#{_digest(text)}", text, place, "", NOWHERE, scope.tenant, scope.groups)
        for place, text in enumerate(texts)
    ]
    return tuple(Hit(chunk, 0.0, rank, GIVEN) for rank, chunk in enumerate(chunks, 1))


NOWHERE = SourceRef("", "", "", "", "")


def cut(text: str, max_tokens: int) -> str:
    """The longest beginning of `text` that costs at most so many tokens, as packing estimates them."""
    if cost(text) <= max_tokens:
        return text
    return text[: bisect_right(range(1, len(text) + 1), float(max_tokens), key=lambda length: cost(text[:length]))]


def relevance_scores(hits: Sequence[Hit], order: Order | None) -> list[float]:
    """One score 0..1 a hit, never rising from the best to the last."""
    if order is None:
        return [_logistic(hit.score) for hit in hits]
    return [order.of(hits, place) for place in range(len(hits))]


def _logistic(score: float) -> float:
    return 1 / (1 + exp(-score)) if score >= 0 else exp(score) / (1 + exp(score))


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
