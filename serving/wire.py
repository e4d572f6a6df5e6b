"""How answers, hits, versions and errors look on the wire: plain dictionaries for orjson, nothing here knows HTTP."""

from typing import Any, Protocol

from domain.costs import cache_read_share
from domain.covering import Cover, Coverage
from domain.naming import Naming
from domain.policies import safe_uri
from domain.releases import IndexVersion
from domain.types import Answer, Citation, Failed, Hit, PoolTally, Retrieval, RetrievalRound, Rewrite, Session, Usage

Json = dict[str, Any]  # what orjson writes


class FailureShape(Protocol):
    """How an error looks on the wire."""

    def __call__(self, code: str, message: str, retryable: bool, request_id: str, field: str = "", /) -> Json:
        """The body. `message` and `field` have been scrubbed."""
        ...


def failure_json(code: str, message: str, retryable: bool, request_id: str, field: str = "") -> Json:
    """The shape of every error of ours."""
    said: Json = {"code": code, "message": message, "retryable": retryable, "request_id": request_id}
    return {"error": said | ({"field": field} if field else {})}


def failed_json(failed: Failed, request_id: str, shape: FailureShape = failure_json) -> Json:
    """The same shape for an answer that failed."""
    field = getattr(failed.error, "field", "")
    return shape(failed.code, failed.message, failed.retryable, request_id, field)


def answer_json(answer: Answer) -> Json:
    """The body of a finished answer; the terminal `done` event carries the same."""
    trace = answer.trace
    return {
        "id": trace.id,
        "answer": answer.text,
        "citations": [citation_json(citation) for citation in answer.citations],
        "consulted": [citation_json(citation) for citation in answer.consulted],
        "grounding": answer.grounding.value,
        "status": answer.status.value,
        "relevance": trace.rounds[-1].relevance if trace.rounds else None,
        "coverage": coverage_json(trace.coverage),
        "session": session_json(answer.session),
        "pool": pool_json(trace.pool),
        "rewrite": rewrite_json(answer.rewrite),
        "rounds": [round_json(taken) for taken in trace.rounds],
        "stopped": trace.stopped,
        "index_version": trace.version,
        "trace_id": trace.id,
        "stage_ms": dict(trace.stage_ms),
        "usage": {
            **usage_json(trace.usage),
            "cache_read_share": cache_read_share(trace.usage),
            "rewriting": usage_json(trace.rewriting),
        },
        "cost_usd": trace.cost_usd,
        "notes": list(trace.notes),
        "unsupported": [
            {"text": one.text, "markers": list(one.sids), "lacking": list(one.lacking)} for one in answer.unsupported
        ],
    }


def usage_json(usage: Usage) -> Json:
    """Tokens by class. Not `measured`, the zeros mean nothing."""
    kinds = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "measured")
    return {kind: getattr(usage, kind) for kind in kinds}


def coverage_json(coverage: Coverage | None) -> Json | None:
    """Whether the evidence was taken to cover the question, and by which signals; None where nobody decided."""
    if coverage is None or coverage.cover is Cover.UNDECIDED:
        return None
    return {
        "cover": coverage.cover.value,
        "chance": coverage.chance,
        "bar": coverage.bar,
        "lacking": list(coverage.lacking),
        "signals": dict(coverage.signals),
    }


def round_json(taken: RetrievalRound) -> Json:
    """One step of the search for evidence; `next` is why another followed, empty for the last."""
    return {
        "tool": taken.tool,
        "query": taken.query.text,
        "variants": list(taken.query.variants),
        "wanted": taken.k,
        "found": len(taken.candidates),
        "reranked": taken.reranked,
        "next": taken.trigger,
    }


def rewrite_json(rewrite: Rewrite) -> Json:
    """What was searched for, and how it came about."""
    return {"query": rewrite.query.text, "status": rewrite.status.value, "reason": rewrite.reason}


def citation_json(citation: Citation) -> Json:
    """A citation as the page and every client see it; its strings were scrubbed when it was built."""
    return {
        "marker": citation.sid,
        "chunk_id": citation.chunk_id,
        "doc_id": citation.doc_id,
        "title": citation.label,
        "uri": citation.uri,
        "source": citation.source,
        "published": citation.published,
        "place": citation.place,
        "quote": citation.quote,
        "joined_turn": citation.joined_turn,
    }


def session_json(session: Session) -> Json:
    """The session for the client to carry into its next turn."""
    return {
        "id": session.id,
        "turns": [{"role": turn.role.value, "text": turn.text} for turn in session.turns],
        "pool": [{"id": entry.chunk_id, "turn": entry.joined_turn} for entry in session.pool],
        "version": session.version,
        "earlier": session.earlier,
    }


def pool_json(tally: PoolTally) -> Json:
    """What became of the chunks that the session brought, counted."""
    dropped = {name: getattr(tally, name) for name in ("unknown", "stale", "duplicate", "over_cap")}
    return {"kept": tally.kept, "joined": tally.joined, "evicted": tally.evicted, "dropped": dropped}


def hit_json(hit: Hit, naming: Naming) -> Json:
    """A search hit, every visible string scrubbed; an address that must not be followed is left out."""
    source = hit.chunk.source
    return {
        "chunk_id": naming.scrub(hit.chunk.id),
        "doc_id": naming.scrub(source.doc_id),
        "title": naming.scrub(source.title),
        "text": naming.scrub(hit.chunk.text),
        "uri": safe_uri(source.uri, naming),
        "source": naming.scrub(source.source),
        "published": naming.scrub(source.published),
        "place": naming.scrub(source.place),
        "score": hit.score,
        "rank": hit.rank,
        "method": hit.method,
    }


def found_json(found: Retrieval, stage_ms: dict[str, float], naming: Naming) -> Json:
    """The body of a finished search."""
    return {
        "hits": [hit_json(hit, naming) for hit in found.hits],
        "index_version": found.version,
        "stage_ms": stage_ms,
        "notes": [naming.scrub(note) for note in found.notes],
    }


def version_json(version: IndexVersion) -> Json:
    """An index version; whoever sends it has its strings `scrubbed`."""
    return {
        "id": version.id,
        "parent": version.parent,
        "chunker": version.chunker,
        "analyser": version.analyser,
        "embedder": version.embedder,
        "documents": version.documents,
        "chunks": version.chunks,
        "built_at": version.built_at,
    }


def scrubbed(told: Json, naming: Naming) -> Json:
    """The same with a neutral word for every forbidden term, in every string however deep."""
    return {name: _scrubbed(value, naming) for name, value in told.items()}


def _scrubbed(value: object, naming: Naming) -> object:
    if isinstance(value, str):
        return naming.scrub(value)
    if isinstance(value, dict):
        return {name: _scrubbed(inner, naming) for name, inner in value.items()}
    return [_scrubbed(inner, naming) for inner in value] if isinstance(value, list | tuple) else value
