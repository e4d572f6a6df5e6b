"""Searched by parts, found as passages: each once, with the scores of its best part, for those who may see it."""

import random
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from domain.amending import Amendments
from domain.types import Document, Hit, Mode, Query, Scope
from retrieval.arms import Ranking
from retrieval.building import build
from retrieval.chunking import chunks_of
from retrieval.embedding import HashingEmbedder
from retrieval.families import folded
from retrieval.index import HybridIndex
from retrieval.phases import Fused, recipe
from retrieval.registry import FolderRegistry
from retrieval.shard_library import ShardLibrary
from retrieval.sharded import ShardedRetriever
from retrieval.sharding import shard_folder

STAFF = Scope("harbour", frozenset({"staff"}))
WORDS = ["pump", "valve", "copper", "hose", "oil", "AR-7", "冷却液", "noon", "the"]
SIZE = 32
DEPTH = 3  # so small that what an arm leaves out matters


def documents(seed: int, count: int, group: str = "staff", name: str = "d") -> list[Document]:
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(f"{' '.join(rng.choices(WORDS, k=rng.randrange(2, 9)))}." for _ in range(rng.randrange(1, 12)))

    return [
        Document(f"{name}{i:02}", f"Title {i}", text(), "", "", "", frozenset({group}), "harbour", "")
        for i in range(count)
    ]


def built(root: Path, corpus: Sequence[Document]) -> Path:
    registry = FolderRegistry(root / "library")
    made = build(
        corpus,
        embedder=HashingEmbedder(32),
        registry=registry,
        staging=root / "staging",
        chunker="hierarchical",
        chunk_tokens=SIZE,
    )
    return registry.folder(made.version.id)


def opened(folder: Path, **settings: object) -> HybridIndex:
    return HybridIndex.open(folder, HashingEmbedder(32), arm_candidates=DEPTH, dense="exact", **settings)  # type: ignore[arg-type]


def seen(hits: Sequence[Hit]) -> list[tuple[object, ...]]:
    return [(hit.chunk, hit.score, hit.rank, hit.cosine, hit.bm25) for hit in hits]


@pytest.fixture(scope="module")
def corpus() -> list[Document]:
    return documents(1, 30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, corpus: list[Document]) -> Path:
    return built(tmp_path_factory.mktemp("families"), corpus)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_hits_are_passages_each_once_and_as_many_as_there_are(
    folder: Path, corpus: list[Document], mode: Mode, n: int
) -> None:
    index = opened(folder)
    passages = {chunk.id: chunk for document in corpus for chunk in chunks_of(document, "heading", SIZE)}
    assert len(index.stored.ids) > len(passages) > 20
    for word in ("pump", "冷却液", "the"):
        hits = index.search(Query(word, ("copper hose",)), STAFF, n, mode)
        assert len({hit.chunk.id for hit in hits}) == len(hits) == n
        assert all(hit.chunk == passages[hit.chunk.id] for hit in hits)
        assert [hit.rank for hit in hits] == list(range(1, n + 1))
        assert all(a.score >= b.score for a, b in pairwise(hits))


def test_a_passage_scores_what_its_best_part_scores(folder: Path) -> None:
    index = opened(folder)
    vector = index.embedder.embed_queries(["pump oil"])[0]
    cosines = index.stored.vectors() @ vector  # the oracle: brute force over all parts
    best: dict[str, float] = {}
    for row, cosine in enumerate(cosines.tolist()):
        name = index.stored.ids[row].rpartition("!")[0]
        best[name] = max(best.get(name, -2.0), cosine)
    wanted = sorted(best, key=lambda name: (-round(best[name], 6), name))[:10]
    hits = index.search(Query("pump oil"), STAFF, 10, Mode.DENSE)
    assert [hit.score for hit in hits] == pytest.approx([best[name] for name in wanted], abs=1e-6)


def test_passages_are_looked_up_by_their_ids_and_parts_by_nobody(folder: Path) -> None:
    index = opened(folder)
    passage = index.search(Query("pump"), STAFF, 1)[0].chunk
    assert index.chunks([passage.id, f"{passage.id}!0", passage.id[:-1]], STAFF) == (passage,)
    assert index.chunks([passage.id], Scope("harbour", frozenset({"finance"}))) == ()


def test_everything_that_can_be_cited_is_listed_once(folder: Path, corpus: list[Document]) -> None:
    passages = [chunk for document in corpus for chunk in chunks_of(document, "heading", SIZE)]
    assert list(opened(folder).stored.passages()) == sorted(passages, key=lambda passage: passage.id)


@pytest.mark.parametrize("fusion", ["convex", "rrf", "weighted"])
def test_hidden_documents_change_not_one_bit(tmp_path: Path, fusion: str) -> None:
    mine, hidden = documents(2, 12, name="m"), documents(3, 25, group="finance", name="k")
    alone = opened(built(tmp_path / "a", mine), fusion=fusion)
    among = opened(built(tmp_path / "b", [*mine, *hidden]), fusion=fusion)
    gone = opened(
        built(tmp_path / "c", [*mine, *documents(3, 25, name="k")]),
        fusion=fusion,
        amended=Amendments(frozenset(document.doc_id for document in hidden), {}),
    )
    for mode in Mode:
        for text in WORDS:
            wanted = seen(alone.search(Query(text, ("oil",)), STAFF, 5, mode))
            assert seen(among.search(Query(text, ("oil",)), STAFF, 5, mode)) == wanted, (text, mode)
            assert seen(gone.search(Query(text, ("oil",)), STAFF, 5, mode)) == wanted, (text, mode)


@pytest.fixture
async def shards(folder: Path, tmp_path: Path) -> AsyncIterator[list[ShardLibrary]]:
    registry = FolderRegistry(folder.parent.parent)

    def library(number: int) -> ShardLibrary:
        def open_shard(version: str) -> HybridIndex:
            return opened(shard_folder(registry.folder(version), tmp_path / "shards", number, 3))

        return ShardLibrary(open_shard, registry, name=f"retriever-{number}")

    libraries = [library(number) for number in range(3)]
    yield libraries
    for one in libraries:
        one.close()


@pytest.mark.parametrize("fusion", ["convex", "rrf"])
async def test_shards_answer_what_one_index_answers(folder: Path, shards: list[ShardLibrary], fusion: str) -> None:
    whole = opened(folder, fusion=fusion)
    retriever = ShardedRetriever(shards, recipe(fusion, arm_candidates=DEPTH))
    for mode in Mode:
        for n in (1, 6):
            query = Query("pump oil at noon", ("copper valve",))
            found = await retriever.retrieve(query, STAFF, folder.name, n, mode)
            assert seen(found.hits) == seen(whole.search(query, STAFF, n, mode)), (mode, n)
    ids = [hit.chunk.id for hit in whole.search(Query("hose"), STAFF, 5)]
    assert await retriever.chunks(ids, STAFF, folder.name) == whole.chunks(ids, STAFF)


def test_folding_keeps_the_first_of_each_and_stops_at_n() -> None:
    ranking = Ranking(np.array([4, 5, 0, 9, 1]), np.array([0.9, 0.8, 0.7, 0.6, 0.5], np.float32))
    found = folded(Fused(ranking, {4: 1.0}, {}), 2, lambda row: f"p{row // 4}")  # p1 p1 p0 p2 p0
    assert found.ranking.rows.tolist() == [4, 0]
    assert found.ranking.scores.tolist() == pytest.approx([0.9, 0.7])
    assert found.bm25 == {4: 1.0}


def test_building_again_embeds_no_part_again_and_gives_the_same_version(tmp_path: Path) -> None:
    corpus = documents(4, 6)
    first = built(tmp_path, corpus)
    assert built(tmp_path, corpus) == first
    registry = FolderRegistry(tmp_path / "library")
    more = build(
        [*corpus, *documents(5, 1, name="new")],
        embedder=HashingEmbedder(32),
        registry=registry,
        staging=tmp_path / "staging",
        chunker="hierarchical",
        chunk_tokens=SIZE,
        parent=first.name,
    )
    assert more.reused_vectors == len(opened(first).stored.ids)
    assert 0 < more.embedded <= 8 * 12
