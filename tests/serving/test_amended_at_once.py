"""A document that is forgotten, or whose readers change, is so everywhere at the next look: mode, version, search,
answer, stream, conversation and comparison, also after a restart; what had begun is finished as it began.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from domain.prompt import PromptPlan
from domain.releases import Move, Rollout, Verb
from domain.types import Delta, Document, Draft, Mode, Query, Scope, Trace
from generation.extractive import ExtractiveGenerator
from generation.rewriting import AsTyped
from retrieval.building import build
from retrieval.embedding import CachedQueries, HashingEmbedder
from retrieval.index import HybridIndex
from retrieval.library import Library
from retrieval.registry import FolderRegistry
from serving.auth import TrustedHeaders
from serving.service import Service, fresh_id
from serving.shadow import Searched, Shadow
from tests.serving.service import events, post, service

STAFF = {"X-Tidegate-Tenant": "harbour", "X-Tidegate-Groups": "staff"}
HR = {"X-Tidegate-Tenant": "harbour", "X-Tidegate-Groups": "hr"}
QUESTION = "How hot is the zebrawood kiln?"
KILNS = [("keep", "The blue kiln reaches 900 degrees."), ("drop", "The zebrawood kiln reaches 1200 degrees.")]
MORE = [(f"more{i}", f"The kiln of shed {i} is swept on Mondays.") for i in range(4)]


@dataclass
class KeptTraces:
    """A TraceSink that remembers whose each trace is."""

    kept: list[tuple[Trace, Scope]] = field(default_factory=list)

    def write(self, trace: Trace, scope: Scope) -> None:
        self.kept.append((trace, scope))


@dataclass
class Kilns:
    """Two versions that hold the document, stable and canary, in one process."""

    root: Path
    library: Library = field(init=False)
    versions: list[str] = field(init=False)
    traces: KeptTraces = field(default_factory=KeptTraces)
    generator: Any = field(default_factory=ExtractiveGenerator)

    def __post_init__(self) -> None:
        self.registry = FolderRegistry(self.root / "registry")
        self.embedder = CachedQueries(HashingEmbedder(32), 100)
        self.versions = [self._built(KILNS + MORE[:n]) for n in (3, 4)]
        after = Rollout(stable=self.versions[0], canary=self.versions[1], share=0.5, revision=1, began=1)
        self.registry.move(Move(Verb.CANARY, "", "a test", Rollout(), after))
        self.restart()

    def _built(self, texts: list[tuple[str, str]]) -> str:
        staff = frozenset({"staff"})
        documents = [Document(name, "", text, "", "", "", staff, "harbour", "") for name, text in texts]
        made = build(
            documents, embedder=self.embedder, registry=self.registry, staging=self.root / "s", chunker="whole"
        )
        return made.version.id

    def restart(self) -> None:
        self.library = Library(
            lambda version: HybridIndex.open(self.registry.folder(version), self.embedder), self.registry
        )

    @property
    def service(self) -> Service:
        return service(
            retriever=self.library, rewriter=AsTyped(), generator=self.generator, registry=self.registry,
            authenticate=TrustedHeaders(), new_id=fresh_id, traces=self.traces,
        )  # fmt: skip

    async def found(self, mode: str, version: str, k: int = 3, reader: dict[str, str] = STAFF) -> list[str]:
        body = {"query": QUESTION, "mode": mode, "k": k}
        reply = await post(self.service, "/v1/search", body, **reader, **{"X-Index-Version": version})
        return [hit["doc_id"] for hit in reply.json()["hits"]]

    async def answered(self, session: Any = None, reader: dict[str, str] = STAFF, **more: Any) -> Any:
        body = {"question": QUESTION} | ({"session": session} if session else {}) | more
        reply = await post(self.service, "/v1/answers", body, **reader)
        return events(reply.text)[-1][1] if more.get("stream") else reply.json()


@pytest.fixture
async def kilns(tmp_path: Path) -> AsyncIterator[Kilns]:
    kilns = Kilns(tmp_path)
    await kilns.library.refresh()
    yield kilns
    kilns.library.close()


def is_told(answer: Any) -> bool:
    sources = [each["doc_id"] for each in (*answer["citations"], *answer["consulted"])]
    return "1200" in answer["answer"] or "drop" in sources


async def test_a_forgotten_document_is_in_no_mode_of_no_version_and_its_place_is_filled(kilns: Kilns) -> None:
    for version in kilns.versions:
        for mode in Mode:
            assert "drop" in await kilns.found(mode, version)  # and every cache has seen it
    kilns.registry.tombstone(["drop"])
    await kilns.library.follow()
    for restarted in (False, True):
        for version in kilns.versions:
            for mode in Mode:
                found = await kilns.found(mode, version)
                assert "drop" not in found
                assert len(found) == 3
        if not restarted:
            kilns.library.close()
            kilns.restart()
            await kilns.library.refresh()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_forgotten_document_is_neither_cited_nor_kept_in_a_conversation(kilns: Kilns, stream: bool) -> None:
    before = await kilns.answered(stream=stream)
    assert is_told(before)
    pool = before["session"]["pool"]
    assert [entry for entry in pool if entry["id"].startswith("drop#")]
    kilns.registry.tombstone(["drop"])
    await kilns.library.follow()
    after = await kilns.answered(before["session"], stream=stream)
    assert not is_told(after)
    assert not [entry for entry in after["session"]["pool"] if entry["id"].startswith("drop#")]


async def test_readers_that_changed_count_in_every_mode_version_answer_and_conversation(kilns: Kilns) -> None:
    before = await kilns.answered()
    kilns.registry.set_access("drop", frozenset({"hr"}))
    await kilns.library.follow()
    for version in kilns.versions:
        for mode in Mode:
            assert "drop" not in await kilns.found(mode, version)
            assert await kilns.found(mode, version, reader=HR) == ["drop"]
    assert not is_told(await kilns.answered(before["session"]))
    assert is_told(await kilns.answered(reader=HR))


async def test_the_comparison_of_a_canary_does_not_find_it_either(kilns: Kilns) -> None:
    reader = Scope("harbour", frozenset({"staff"}))
    query = Query("zebrawood 1200")
    hits = (await kilns.library.retrieve(query, reader, kilns.versions[1], 1, Mode.LEXICAL)).hits
    told = [await Shadow(kilns.service).compare(Searched(query, reader, 1, hits), kilns.versions[0])]
    kilns.registry.tombstone(["drop"])
    await kilns.library.follow()
    told.append(await Shadow(kilns.service).compare(Searched(query, reader, 1, hits), kilns.versions[0]))
    assert [each["overlap"][0] for each in told] == [1.0, 0.0]  # the canary had found it before; stable no longer does


async def test_a_trace_is_its_readers_and_names_only_what_he_may_see(kilns: Kilns) -> None:
    kilns.registry.set_access("drop", frozenset({"hr"}))
    await kilns.library.follow()
    for reader in (STAFF, HR):
        await kilns.answered(reader=reader)
    while len(kilns.traces.kept) < 2:
        await asyncio.sleep(0)
    named = {
        next(iter(scope.groups)): {chunk.partition("#")[0] for each in trace.rounds for chunk, _ in each.candidates}
        for trace, scope in kilns.traces.kept
    }
    assert named["hr"] == {"drop"}
    assert "drop" not in named["staff"]


async def test_what_one_reader_asked_changes_nothing_of_what_another_gets(kilns: Kilns) -> None:
    kilns.registry.set_access("drop", frozenset({"hr"}))
    await kilns.library.follow()
    alone = [await kilns.found(mode, kilns.versions[0], 9) for mode in Mode]
    for _ in range(2):
        for mode in Mode:
            await kilns.found(mode, kilns.versions[0], 9, HR)
        assert [await kilns.found(mode, kilns.versions[0], 9) for mode in Mode] == alone


@dataclass
class Waiting:
    """Quotes its first source, but waits in the middle."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        self.begun.set()
        await self.go_on.wait()
        async for piece in ExtractiveGenerator().generate(plan):
            yield piece


async def test_an_answer_that_had_begun_is_finished_from_what_it_had_found(kilns: Kilns) -> None:
    kilns.generator = waiting = Waiting()
    answering = asyncio.create_task(kilns.answered(stream=True))
    await waiting.begun.wait()
    kilns.registry.tombstone(["drop"])
    await kilns.library.follow()
    waiting.go_on.set()
    begun = await answering
    assert is_told(begun)
    assert not is_told(await kilns.answered(begun["session"], stream=True))
