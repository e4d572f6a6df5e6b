"""A library over a knowledge base: it follows the pointer, and hides what was deleted."""

from pathlib import Path

import pytest

from domain.releases import IndexVersion, Move, Rollout, Verb
from domain.types import Query, Scope
from retrieval.knowledge_library import KnowledgeLibrary
from retrieval.registry import FolderRegistry
from tests.fakes import FakeRetriever, MemoryRegistry, chunk, hits

READER = Scope("harbour", frozenset({"public"}))
FOUND = hits(*(chunk(f"{name}#0", "the kiln") for name in "abc"))


@pytest.fixture
def library(tmp_path: Path) -> KnowledgeLibrary:
    return KnowledgeLibrary(FakeRetriever(FOUND), FolderRegistry(tmp_path))


async def test_it_is_ready_when_the_pointer_names_a_version_and_opens_none(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    library = KnowledgeLibrary(FakeRetriever(FOUND), registry)
    await library.refresh()
    assert not library.ready
    version = IndexVersion("v1", None, "whole-1", "words-1", "hashing-64-1", 0, 0, "2026-01-01T00:00:00+00:00")
    registry.publish(tmp_path, version)
    registry.move(Move(Verb.PROMOTE, "", "a test", Rollout(), Rollout(stable="v1", revision=1)))
    await library.follow()
    assert library.ready
    assert library.versions == ()
    library.close()


async def test_a_deleted_document_is_found_no_more_and_the_others_move_up(
    library: KnowledgeLibrary, tmp_path: Path
) -> None:
    gone = FOUND[0].chunk.source.doc_id
    FolderRegistry(tmp_path).tombstone([gone])
    await library.refresh()
    found = (await library.retrieve(Query("kiln"), READER, "v1", 2)).hits
    assert [(hit.chunk.id, hit.rank) for hit in found] == [("b#0", 1), ("c#0", 2)]
    assert [one.id for one in await library.chunks(["a#0", "b#0"], READER, "v1")] == ["b#0"]
    library.close()


async def test_who_lost_his_groups_finds_a_document_no_more(library: KnowledgeLibrary, tmp_path: Path) -> None:
    FolderRegistry(tmp_path).set_access(FOUND[1].chunk.source.doc_id, frozenset({"hr"}))
    await library.refresh()
    found = (await library.retrieve(Query("kiln"), READER, "v1", 2)).hits
    assert [(hit.chunk.id, hit.rank) for hit in found] == [("a#0", 1), ("c#0", 2)]
    assert [one.id for one in await library.chunks(["a#0", "b#0"], READER, "v1")] == ["a#0"]
    library.close()
