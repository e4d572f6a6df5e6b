"""The library of a process whose passages lie in a Bedrock Knowledge Base: it follows the pointer and opens no index.

A knowledge base has no versions. The one that the pointer names stands for the settings that were measured, and the
same passages answer for every version. Deletions are heard of from the registry and hidden here, as everywhere; so are
documents that lost a reader's groups. One that gained them is still held back by the knowledge base's own metadata.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from domain.amending import Amendments
from domain.errors import BadRequest, NotFound
from domain.ports import IndexRegistry, Retriever
from domain.types import Chunk, Encoded, Mode, Query, Retrieval, Scope, TextSide
from retrieval.index import HybridIndex
from retrieval.library import Library


class KnowledgeLibrary(Library):
    """A Library whose searches go to `retriever`, whatever version is asked for."""

    def __init__(self, retriever: Retriever, registry: IndexRegistry, drill_s: float = 0.0) -> None:
        super().__init__(_no_index, registry, drill_s)
        self._retriever = retriever

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        """At most `n` hits, best first, without those of deleted documents."""
        amended = self._amended
        if self._drill_s and version == self._rollout.canary:
            await asyncio.sleep(self._drill_s)
        # What is hidden here still counts there, so as many more are asked for.
        more = len(amended.gone) + len(amended.access)
        found = await self._retriever.retrieve(query, scope, version, n + more, mode)
        seen = [hit for hit in found.hits if _visible(hit.chunk, scope, amended)][:n]
        return replace(found, hits=tuple(replace(hit, rank=rank) for rank, hit in enumerate(seen, 1)))

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        """The chunks of `ids` that are found again, visible and not deleted, in the order asked."""
        found = await self._retriever.chunks(ids, scope, version)
        return tuple(chunk for chunk in found if _visible(chunk, scope, self._amended))

    async def encode(self, texts: Sequence[str], version: str, side: TextSide) -> Encoded:  # noqa: ARG002
        """Raises BadRequest: a knowledge base tells nobody its vectors."""
        raise BadRequest("This library lies in a knowledge base, whose encoder cannot be asked: use one of your own.")

    async def refresh(self) -> None:
        """Take in pointer and amendments. Raises StorageError when the registry cannot be read."""
        await self._look()

    async def follow(self) -> None:
        """As `refresh`: nothing is opened."""
        await self._look()

    @property
    def ready(self) -> bool:
        """True when the pointer names a version."""
        return self._rollout.stable is not None


def _visible(chunk: Chunk, scope: Scope, amended: Amendments) -> bool:
    doc_id = chunk.source.doc_id
    return doc_id not in amended.gone and scope.may_read(chunk.tenant, amended.access.get(doc_id, chunk.groups))


def _no_index(version: str) -> HybridIndex:
    raise NotFound(f"Version {version} is not searched: retrieval.knowledge_base is. This is a bug if you see it.")
