"""Bedrock behind the ports of this ring: embeddings of Titan and Cohere, reranking, a Knowledge Base.

Clients are made outside, with retries of their own off, and passed in. So is what makes a call again where that is
worth it, and keeps the pace of a model that throttles: every call is made through such a `Trying`. Messages never
repeat the vendor's: they may hold accounts and keys. Writing answers is in generation/, which this ring does not know.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from domain.errors import StageFailed, StageTimeout, Throttled, UpstreamDenied
from domain.types import Chunk, Hit, Mode, Query, Retrieval, Scope, SourceRef
from retrieval.dense import Vectors
from retrieval.reranking import passage

T = TypeVar("T")


class Trying(Protocol):
    """Makes a blocking call for a stage, again where that is worth it, and no faster than its model allows."""

    def __call__(self, call: Callable[[], T], stage: str) -> T:
        """What `call` returns. Raises StageFailed and its kinds."""
        ...


def once(call: Callable[[], T], stage: str) -> T:  # noqa: ARG001 - the port names it
    """The Trying that calls once, at once."""
    return call()


TITAN_CHARS = 50_000  # the longest text that Titan takes; both models cut at 8,192 tokens or fewer
COHERE_BATCH = 96
QUERY_CHARS = 1_000  # of a knowledge base
MOST_RESULTS = 100
PASSAGE_CHARS = 32_000  # the longest text that Rerank takes


class BedrockEmbedder:
    """The Embedder over InvokeModel of Titan (one text a call, in `executor`) or Cohere (96 a call).

    A text without anything but blanks is refused by the vendor and gets the first axis, so that blanks resemble only
    each other. `dimensions` must be what the model gives: Titan 2 gives 1024, 512 or 256, Cohere 3 gives 1024.
    """

    runtime = ""

    def __init__(
        self,
        client: Any,  # boto3
        model_id: str,
        dimensions: int,
        executor: Executor,
        trying: Trying = once,
    ) -> None:
        self._client, self._model_id, self._executor, self._trying = client, model_id, executor, trying
        self.dimensions = dimensions
        self.tag = f"bedrock-{model_id}-{dimensions}"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [len(texts), dimensions], unit rows. Raises StageFailed and its kinds."""
        return self._embed(texts, "search_document")

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """As `embed_documents`; Cohere tells the two sides apart."""
        return self._embed(texts, "search_query")

    def _embed(self, texts: Sequence[str], side: str) -> Vectors:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        rows[:, 0] = 1.0
        sent = [i for i, text in enumerate(texts) if text.strip()]
        clean = [texts[i].encode(errors="replace").decode() for i in sent]  # half a character is no JSON for them
        if clean:
            found = np.array(self._titan(clean) if "titan" in self._model_id else self._cohere(clean, side), np.float32)
            if found.shape != (len(clean), self.dimensions):
                got = found.shape[-1]
                raise StageFailed(
                    f"Model {self._model_id} gave vectors of length {got}, {self.dimensions} is wanted: "
                    "set embedding.dimensions to what the model gives.",
                    "embed",
                )
            rows[sent] = found / np.linalg.norm(found, axis=1, keepdims=True)
        return rows

    def _titan(self, texts: Sequence[str]) -> list[list[float]]:
        shape = {} if "v1" in self._model_id else {"dimensions": self.dimensions, "normalize": True}
        asked = [{"inputText": text[:TITAN_CHARS], **shape} for text in texts]
        return [reply["embedding"] for reply in self._executor.map(self._invoke, asked)]

    def _cohere(self, texts: Sequence[str], side: str) -> list[list[float]]:
        four = "embed-v4" in self._model_id
        shape: dict[str, Any] = {"embedding_types": ["float"], "output_dimension": self.dimensions} if four else {}
        asked = [
            {
                "texts": list(texts[start : start + COHERE_BATCH]),
                "input_type": side,
                "truncate": "RIGHT" if four else "END",
            }
            | shape
            for start in range(0, len(texts), COHERE_BATCH)
        ]
        replies = [reply["embeddings"] for reply in self._executor.map(self._invoke, asked)]
        return [row for reply in replies for row in (reply["float"] if isinstance(reply, dict) else reply)]

    def _invoke(self, asked: dict[str, Any]) -> Any:  # the body of a reply
        body = json.dumps(asked)
        invoke = partial(self._client.invoke_model, modelId=self._model_id, body=body)
        reply = self._trying(partial(called, invoke, self._model_id, "embed"), "embed")
        return json.loads(reply["body"].read())


class BedrockPairScorer:
    """The PairScorer over Rerank of `bedrock-agent-runtime`: scores in 0..1, whatever stands beside a hit."""

    listwise = False

    def __init__(self, client: Any, model_arn: str, trying: Trying = once) -> None:  # boto3
        self._client, self._model_arn, self._trying = client, model_arn, trying
        self.tag = f"bedrock-{model_arn.rpartition('/')[2]}"

    def score(self, query: str, hits: Sequence[Hit]) -> Sequence[float]:
        """One score per hit, in the order given. Raises StageFailed and its kinds."""
        if not hits or not query.strip():
            return [0.0] * len(hits)
        texts = [_sendable(passage(hit.chunk)) or " " for hit in hits]
        sources = [
            {"type": "INLINE", "inlineDocumentSource": {"type": "TEXT", "textDocument": {"text": text}}}
            for text in texts
        ]
        model = {"modelConfiguration": {"modelArn": self._model_arn}, "numberOfResults": len(hits)}
        asked = partial(
            self._client.rerank,
            queries=[{"type": "TEXT", "textQuery": {"text": _sendable(query)}}],
            sources=sources,
            rerankingConfiguration={"type": "BEDROCK_RERANKING_MODEL", "bedrockRerankingConfiguration": model},
        )
        reply = self._trying(partial(called, asked, self.tag, "rerank"), "rerank")
        found = {result["index"]: float(result["relevanceScore"]) for result in reply["results"]}
        if found.keys() != set(range(len(hits))):
            raise StageFailed(f"Reranker {self.tag} scored {len(found)} of {len(hits)} hits: try again.", "rerank")
        return [found[i] for i in range(len(hits))]


class KnowledgeBaseRetriever:
    """The Retriever over Retrieve of a Bedrock Knowledge Base.

    Every document there must have been ingested with the metadata `doc_id`, `tenant` and `groups` (a list): what lacks
    them is seen by nobody. The filter is the vendor's, and every result is checked again here. A knowledge base has no
    versions, so it answers for any, and `chunks` finds a chunk again by its document and the hash of its text.
    """

    def __init__(
        self,
        client: Any,
        knowledge_base_id: str,
        executor: Executor,
        trying: Trying = once,  # boto3
    ) -> None:
        self._client, self._id, self._executor, self._trying = client, knowledge_base_id, executor, trying

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:  # noqa: ARG002
        """At most `n` hits, 100 at most, best first, ties by chunk id. The vendor decides how it searches."""
        chunks = await self._find(query.text, scope, n)
        ordered = sorted(chunks, key=lambda found: (-found[1], found[0].id))[:n]
        hits = [Hit(chunk, score, rank, "knowledge base") for rank, (chunk, score) in enumerate(ordered, 1)]
        return Retrieval(tuple(hits), version)

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:  # noqa: ARG002
        """The chunks of `ids` that are found again and visible, in the order asked."""
        documents = sorted({chunk_id.rpartition("#")[0] for chunk_id in ids})
        if not documents:
            return ()
        found = await self._find(" ".join(documents), scope, MOST_RESULTS, documents)
        known = {chunk.id: chunk for chunk, _ in found}
        return tuple(known[chunk_id] for chunk_id in ids if chunk_id in known)

    async def _find(
        self, text: str, scope: Scope, n: int, documents: Sequence[str] | None = None
    ) -> list[tuple[Chunk, float]]:
        if not scope.groups or not text.strip():
            return []
        groups = [{"listContains": {"key": "groups", "value": group}} for group in sorted(scope.groups)]
        rules: list[dict[str, Any]] = [{"equals": {"key": "tenant", "value": scope.tenant}}]
        rules.append({"orAll": groups} if len(groups) > 1 else groups[0])
        if documents is not None:
            rules.append({"in": {"key": "doc_id", "value": list(documents)}})
        search = {"numberOfResults": min(n, MOST_RESULTS), "filter": {"andAll": rules}}
        asked = partial(
            self._client.retrieve,
            knowledgeBaseId=self._id,
            retrievalQuery={"text": text.encode(errors="replace").decode()[:QUERY_CHARS]},
            retrievalConfiguration={"vectorSearchConfiguration": search},
        )
        loop = asyncio.get_running_loop()
        once_asked = partial(called, asked, f"of knowledge base {self._id}", "retrieve")
        reply: Any = await loop.run_in_executor(self._executor, partial(self._trying, once_asked, "retrieve"))
        read = [(_chunk(result), float(result.get("score", 0.0))) for result in reply["retrievalResults"]]
        return [(chunk, score) for chunk, score in read if scope.may_read(chunk.tenant, chunk.groups)]


def _sendable(text: str) -> str:
    """As Rerank takes it: half a character is no JSON for it, and a longer text is refused whole."""
    return text[:PASSAGE_CHARS].encode(errors="replace").decode()


def _chunk(result: dict[str, Any]) -> Chunk:
    told, text = result.get("metadata", {}), result["content"].get("text", "")
    doc_id = str(told.get("doc_id", ""))
    uri = result.get("location", {}).get("s3Location", {}).get("uri", "")
    source = SourceRef(
        doc_id, str(told.get("title", doc_id)), uri, str(told.get("source", "")), str(told.get("published", ""))
    )
    groups = frozenset(told["groups"]) if isinstance(told.get("groups"), list) else frozenset[str]()
    chunk_id = f"{doc_id}#{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"
    return Chunk(chunk_id, text, 0, "", source, str(told.get("tenant", "")), groups)


def called(function: Callable[[], T], what: str, stage: str) -> T:
    """What `function` returns; the vendor's errors as ours, by who must act. As generation/bedrock_errors.py has it."""
    from botocore import exceptions as vendor

    try:
        return function()
    except vendor.ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", "unknown"))
        told = error.response.get("ResponseMetadata", {})
        status, said = told.get("HTTPStatusCode", 0), told.get("HTTPHeaders", {}).get("retry-after", "")
        wait_s = float(said) if said.replace(".", "", 1).isdigit() else None
        if status == 429 or "Throttl" in code:
            raise Throttled(f"Model {what} is throttled ({code}): try again a little later.", stage, wait_s) from error
        if status >= 500 or status in (408, 424):
            raise StageFailed(f"Model {what} failed ({code}): try again.", stage, wait_s) from error
        raise UpstreamDenied(
            f"Model {what} refuses the call ({code}): check credentials, region and id.", stage
        ) from error
    except (vendor.ReadTimeoutError, vendor.ConnectTimeoutError) as error:
        raise StageTimeout(f"Model {what} did not answer in time: try again.", stage) from error
    except (vendor.NoCredentialsError, vendor.PartialCredentialsError, vendor.ParamValidationError) as error:
        name = type(error).__name__
        raise UpstreamDenied(
            f"Model {what} cannot be called ({name}): check credentials and settings.", stage
        ) from error
    except vendor.BotoCoreError as error:
        raise StageFailed(f"Model {what} cannot be reached ({type(error).__name__}): try again.", stage) from error
