"""What every retriever promises."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from domain.ports import Retriever
from domain.releases import Move, Rollout, Verb
from domain.types import Chunk, Document, Hit, Mode, Query, Scope
from retrieval.bedrock import KnowledgeBaseRetriever
from retrieval.building import build
from retrieval.embedding import HashingEmbedder
from retrieval.index import HybridIndex
from retrieval.knowledge_library import KnowledgeLibrary
from retrieval.library import Library
from retrieval.phases import Recipe
from retrieval.registry import FolderRegistry
from retrieval.shard_library import ShardLibrary
from retrieval.sharded import ShardedRetriever
from retrieval.sharding import shard_folder
from tests.bedrock_stub import BedrockStub, Passage
from tests.fakes import FakeRetriever, hits

STAFF = Scope("harbour", frozenset({"staff"}))
NOBODY = Scope("harbour", frozenset())
TEXTS = {
    "a": ("The pump overheats at noon.", "staff"),
    "b": ("The pump sticks in winter.", "staff"),
    "c": ("The pump was paid in May.", "finance"),
    "d": ("A pump for the canteen.", "staff"),
}


@dataclass
class Case:
    retriever: Retriever
    version: str
    ids: dict[str, str]  # document id -> chunk id
    libraries: tuple[Library, ...] = ()  # to be kept in step, and closed
    behind: ExitStack = field(default_factory=ExitStack)  # what it stands on, closed last


def library(path: Path) -> Case:
    embedder, registry = HashingEmbedder(32), FolderRegistry(path / "library")
    documents = [
        Document(name, "", text, "", "", "", frozenset({group}), "harbour", "") for name, (text, group) in TEXTS.items()
    ]
    version = build(documents, embedder=embedder, registry=registry, staging=path / "staging").version.id
    registry.move(Move(Verb.PROMOTE, "", "a test", Rollout(), Rollout(stable=version, revision=1)))
    index = HybridIndex.open(registry.folder(version), embedder)
    ids = {chunk.source.doc_id: chunk.id for chunk in index.stored.chunks()}
    retriever = Library(lambda name: HybridIndex.open(registry.folder(name), embedder), registry)
    return Case(retriever, version, ids, (retriever,))


def fake(path: Path) -> Case:
    known = library(path)
    index = HybridIndex.open(FolderRegistry(path / "library").folder(known.version), HashingEmbedder(32))
    # The fake keeps the ranks it is given, so what the readers here may not see stands last.
    chunks = sorted(index.stored.chunks(), key=lambda chunk: chunk.groups == {"finance"})
    return Case(FakeRetriever(hits(*chunks)), known.version, known.ids)


def sharded(path: Path) -> Case:
    known, embedder, registry = library(path), HashingEmbedder(32), FolderRegistry(path / "library")

    def shard(number: int) -> ShardLibrary:
        def opened(version: str) -> HybridIndex:
            return HybridIndex.open(shard_folder(registry.folder(version), path / "shards", number, 2), embedder)

        return ShardLibrary(opened, registry, name=f"retriever-{number}")

    shards = [shard(0), shard(1)]
    return Case(ShardedRetriever(shards, Recipe()), known.version, known.ids, tuple(shards))


def knowledge_base(path: Path) -> Case:
    known, behind = library(path), ExitStack()
    told = {name: {"doc_id": name, "tenant": "harbour", "groups": [group]} for name, (_, group) in TEXTS.items()}
    stub = behind.enter_context(BedrockStub(passages=[Passage(TEXTS[name][0], told[name]) for name in TEXTS]))
    client = behind.enter_context(stub.client(service="bedrock-agent-runtime"))
    pool = behind.enter_context(ThreadPoolExecutor(2))
    retriever = KnowledgeBaseRetriever(client, "ABCDEFGHIJ", pool)
    ids = {name: f"{name}#{sha256(text.encode()).hexdigest()[:16]}" for name, (text, _) in TEXTS.items()}
    there = KnowledgeLibrary(retriever, FolderRegistry(path / "library"))
    return Case(there, known.version, ids, (*known.libraries, there), behind)


RETRIEVERS: dict[str, Callable[[Path], Case]] = {
    "library": library,
    "sharded": sharded,
    "knowledge base": knowledge_base,
    "fake": fake,
}


@pytest.fixture(params=sorted(RETRIEVERS))
async def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    case = RETRIEVERS[request.param](tmp_path)
    request.addfinalizer(case.behind.close)
    for opened in case.libraries:
        await opened.refresh()
        request.addfinalizer(opened.close)  # noqa: PT021 - the fake has nothing to close
    return case


async def found(case: Case, n: int = 10, scope: Scope = STAFF, mode: Mode = Mode.HYBRID) -> tuple[Hit, ...]:
    retrieval = await case.retriever.retrieve(Query("pump"), scope, case.version, n, mode)
    assert retrieval.version == case.version
    return retrieval.hits


@pytest.mark.parametrize("mode", list(Mode))
async def test_it_returns_what_the_reader_may_see_each_once_best_first(case: Case, mode: Mode) -> None:
    hits = await found(case, mode=mode)
    assert sorted(hit.chunk.source.doc_id for hit in hits) == ["a", "b", "d"]
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.parametrize("n", [1, 2, 3, 1000])
async def test_it_returns_at_most_what_was_asked_and_a_larger_answer_begins_with_a_smaller(case: Case, n: int) -> None:
    hits = await found(case, n)
    assert len(hits) == min(n, 3)
    assert [hit.chunk.id for hit in hits] == [hit.chunk.id for hit in await found(case)][:n]


async def test_asking_twice_gives_the_same(case: Case) -> None:
    assert await found(case) == await found(case)


async def test_a_reader_without_groups_finds_nothing_and_nothing_is_no_error(case: Case) -> None:
    assert await found(case, scope=NOBODY) == ()


async def test_chunks_come_in_the_order_asked_without_the_unknown_and_forbidden(case: Case) -> None:
    asked = [case.ids["d"], "gone#0-0123456789", case.ids["c"], case.ids["a"]]
    chunks: tuple[Chunk, ...] = await case.retriever.chunks(asked, STAFF, case.version)
    assert [chunk.source.doc_id for chunk in chunks] == ["d", "a"]
    assert await case.retriever.chunks(asked, NOBODY, case.version) == ()
    assert await case.retriever.chunks([], STAFF, case.version) == ()
