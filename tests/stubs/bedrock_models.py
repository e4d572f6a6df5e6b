"""What the stub says where no model writes: embeddings of Titan and Cohere, reranking, a knowledge base.

All of it follows from the words of the texts, so that what is alike is near.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

WORD = re.compile(r"\w+")


class Invalid(ValueError):
    """The real service would refuse this request."""


def vector(text: str, dimensions: int) -> list[float]:
    """A unit vector of hashed words."""
    row = [0.0] * dimensions
    for word in WORD.findall(text.lower()) or [text]:
        row[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "little") % dimensions] += 1.0
    length = sum(x * x for x in row) ** 0.5
    return [x / length for x in row]


def embed(model_id: str, body: dict[str, Any]) -> dict[str, Any]:
    """The body of InvokeModel for Titan (one text) and Cohere (up to 96)."""
    if "titan" in model_id:
        text = body["inputText"]
        if not text or len(text) > 50_000:
            raise Invalid("expected minLength: 1, maxLength: 50000")
        if "v1" in model_id and set(body) != {"inputText"}:
            raise Invalid("extraneous key is not permitted")
        return {"embedding": vector(text, body.get("dimensions", 1536)), "inputTextTokenCount": len(text) // 4 + 1}
    texts, four = body["texts"], "embed-v4" in model_id
    if not 1 <= len(texts) <= 96 or any(not text for text in texts):
        raise Invalid("texts must be 1 to 96 and not empty")
    if body["input_type"] not in ("search_document", "search_query"):
        raise Invalid("input_type is not valid")
    rows = [vector(text, body.get("output_dimension", 1024)) for text in texts]
    return {
        "embeddings": {"float": rows} if four else rows,
        "response_type": "embeddings_by_type" if four else "floats",
    }


def _alike(query: str, text: str) -> float:
    wanted, there = set(WORD.findall(query.lower())), set(WORD.findall(text.lower()))
    return len(wanted & there) / len(wanted | there) if wanted | there else 0.0


def rerank(body: dict[str, Any]) -> dict[str, Any]:
    """The body of Rerank: best first, as the real one answers."""
    query = body["queries"][0]["textQuery"]["text"]
    texts = [source["inlineDocumentSource"]["textDocument"]["text"] for source in body["sources"]]
    if not texts or not all(1 <= len(text) <= 32_000 for text in (query, *texts)):
        raise Invalid("texts must be 1 to 32000 characters")
    wanted = body["rerankingConfiguration"]["bedrockRerankingConfiguration"].get("numberOfResults", len(texts))
    scored = [{"index": i, "relevanceScore": _alike(query, text)} for i, text in enumerate(texts)]
    return {"results": sorted(scored, key=lambda result: -result["relevanceScore"])[:wanted]}


@dataclass(frozen=True)
class Passage:
    """A passage of the knowledge base with the metadata that a document was ingested with."""

    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    uri: str = "s3://library/document"


def retrieve(passages: Sequence[Passage], body: dict[str, Any]) -> dict[str, Any]:
    """The body of Retrieve: passages that pass the filter, best first."""
    query = body["retrievalQuery"]["text"]
    if not query or len(query) > 1000:
        raise Invalid("text must be 1 to 1000 characters")
    search = body["retrievalConfiguration"]["vectorSearchConfiguration"]
    there = [passage for passage in passages if _passes(passage.metadata, search.get("filter"))]
    found = sorted(there, key=lambda passage: -_alike(query, passage.text))[: search.get("numberOfResults", 5)]
    results = [
        {
            "content": {"text": passage.text, "type": "TEXT"},
            "location": {"type": "S3", "s3Location": {"uri": passage.uri}},
            "metadata": passage.metadata,
            "score": _alike(query, passage.text),
        }
        for passage in found
    ]
    return {"retrievalResults": results}


def _passes(metadata: dict[str, Any], wanted: dict[str, Any] | None) -> bool:
    if wanted is None:
        return True
    [(kind, rule)] = wanted.items()
    if kind in ("andAll", "orAll"):
        if len(rule) < 2:
            raise Invalid(f"{kind} must have at least 2 members")
        return (all if kind == "andAll" else any)(_passes(metadata, part) for part in rule)
    value = metadata.get(rule["key"])
    if kind == "equals":
        return bool(value == rule["value"])
    if kind == "in":
        return value in rule["value"]
    if kind == "listContains":
        return isinstance(value, list) and rule["value"] in value
    raise Invalid(f"filter {kind} is not known here")
