"""Several shards searched as one: the answer of one index, from one view of the library, or no answer."""

import asyncio
import pickle
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from domain.amending import Amendments
from domain.errors import BadRequest, IncompatibleIndex, NotFound, NotReady, StageFailed, StageTimeout
from domain.releases import Move, Rollout, Verb
from domain.types import Document, Mode, Query, Scope
from retrieval.building import build
from retrieval.embedding import HashingEmbedder
from retrieval.index import HybridIndex
from retrieval.phases import recipe
from retrieval.registry import FolderRegistry
from retrieval.shard_library import ShardLibrary, Survey, View
from retrieval.sharded import ShardedRetriever
from retrieval.sharding import shard_folder

STAFF = Scope("harbour", frozenset({"staff"}))
ALL = Scope("harbour", frozenset({"staff", "finance"}))
READERS = [STAFF, Scope("other", frozenset({"staff"})), Scope("harbour", frozenset())]
WORDS = ["pump", "valve", "copper", "hose", "oil", "AR-7", "冷却液", "noon", "the"]
DEPTH = 5  # so small that what an arm leaves out matters
BUILDS = 3


class CountedEmbedder(HashingEmbedder):
    """Counts the texts that it was asked for."""

    texts = 0

    def embed_queries(self, texts: Sequence[str]) -> Any:
        self.texts += len(texts)
        return super().embed_queries(texts)


class Hall:
    """A registry with three versions of forty documents, and as many shards as a test asks for."""

    def __init__(self, root: Path, versions: Sequence[str]) -> None:
        self.root, self.versions = root, versions
        self.registry, self.embedder = FolderRegistry(root), CountedEmbedder(32)
        self.failing: dict[tuple[int, str], Exception] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.slow: tuple[int, str] | None = None  # opens only when the gate does
        self.libraries: list[ShardLibrary] = []

    def move(self, stable: int, canary: int | None = None) -> None:
        current, name = self.registry.rollout(), self.versions[stable]
        trial = self.versions[canary] if canary is not None else None
        previous = current.previous if name == current.stable else current.stable
        after = Rollout(name, trial, 0.5 if trial else 0.0, previous, current.revision + 1)
        self.registry.move(Move(Verb.CANARY, "", "a test", current, after))

    def library(self, shard: int, of: int) -> ShardLibrary:
        def opened(version: str) -> HybridIndex:
            if (shard, version) in self.failing:
                raise self.failing[shard, version]
            if (shard, version) == self.slow:
                self.gate.wait(10)
            folder = shard_folder(self.registry.folder(version), self.root / "shards", shard, of)
            return HybridIndex.open(folder, self.embedder, dense="faiss")

        self.libraries.append(ShardLibrary(opened, self.registry))
        return self.libraries[-1]

    async def shards(self, of: int) -> list["Shard"]:
        shards = [Shard(f"retriever-{i}", self.library(i, of)) for i in range(of)]
        for shard in shards:
            await shard.library.refresh()
        return shards

    def whole(self, version: int = 0, fusion: str = "convex") -> HybridIndex:
        folder = self.registry.folder(self.versions[version])
        amended = Amendments(self.registry.tombstones(), self.registry.access())
        return HybridIndex.open(
            folder, self.embedder, dense="exact", fusion=fusion, arm_candidates=DEPTH, amended=amended
        )


class Shard:
    """A shard a process away: everything is pickled on its way. `before` runs before a named step."""

    def __init__(self, name: str, library: ShardLibrary) -> None:
        self.name, self.library = name, library
        self.before: dict[str, Callable[[], Awaitable[None]]] = {}
        self.asked: list[str] = []

    def __getattr__(self, step: str) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any) -> Any:
            self.asked.append(step)
            if step in self.before:
                await self.before[step]()
            there = pickle.loads(pickle.dumps(arguments))
            return pickle.loads(pickle.dumps(await getattr(self.library, step)(*there)))

        return call


def retriever(shards: Sequence[Any], fusion: str = "convex", limit_s: float = 10.0) -> ShardedRetriever:
    return ShardedRetriever(shards, recipe(fusion, arm_candidates=DEPTH), limit_s)


@pytest.fixture(scope="module")
def hall_of_all(tmp_path_factory: pytest.TempPathFactory) -> Hall:
    root, rng, versions = tmp_path_factory.mktemp("hall"), random.Random(5), []
    for i in range(BUILDS):
        documents = [
            Document(
                f"d{j:02}", "", " ".join(rng.choices(WORDS, k=rng.randrange(1, 12))), "", "", "",
                frozenset({rng.choice(["staff", "staff", "finance"])}), rng.choice(["harbour"] * 5 + ["other"]), "",
            )
            for j in range(40)
        ]  # fmt: skip
        documents.append(Document("a", "", f"The pump of build {i}.", "", "", "", frozenset({"staff"}), "harbour", ""))
        built = build(
            documents,
            embedder=HashingEmbedder(32),
            registry=FolderRegistry(root / "library"),
            staging=root / "staging",
            chunker="whole",
        )
        versions.append(built.version.id)
    return Hall(root / "library", versions)


@pytest.fixture
async def hall(hall_of_all: Hall) -> AsyncIterator[Hall]:
    """The versions of all tests with a pointer of their own: shards that were cut once are used again."""
    for name in ("rollout.json", "ledger.jsonl", "tombstones.json"):
        (hall_of_all.root / name).unlink(missing_ok=True)
    hall = Hall(hall_of_all.root, hall_of_all.versions)
    hall.move(0)
    yield hall
    hall.gate.set()
    for library in hall.libraries:
        library.close()


# ---------------------------------------------------------------------------------------------- the same answer


@pytest.mark.parametrize("shards", [1, 2, 3, 5])
async def test_shards_answer_what_one_index_answers_to_the_last_bit(hall: Hall, shards: int) -> None:
    rng = random.Random(shards)
    parts = await hall.shards(shards)
    for fusion in ("convex", "rrf", "weighted", "lexical", "dense"):
        whole, together = hall.whole(fusion=fusion), retriever(parts, fusion)
        for mode in Mode:
            for scope in (ALL, rng.choice(READERS)):
                variants = tuple(" ".join(rng.choices(WORDS, k=2)) for _ in range(rng.randrange(3)))
                query = Query(" ".join(rng.choices([*WORDS, "unknown"], k=3)), variants)
                n = rng.choice([1, 4, 9, 60])
                found = await together.retrieve(query, scope, hall.versions[0], n, mode)
                assert found.hits == whole.search(query, scope, n, mode), (fusion, mode, scope, query, n)
                assert (found.version, found.notes) == (hall.versions[0], ())


async def test_they_do_so_without_the_documents_that_were_deleted(hall: Hall) -> None:
    hall.registry.tombstone([f"d{i:02}" for i in range(0, 40, 3)])
    together, whole = retriever(await hall.shards(3)), hall.whole()
    for word in WORDS:
        for mode in Mode:
            found = await together.retrieve(Query(word), STAFF, hall.versions[0], 9, mode)
            assert found.hits == whole.search(Query(word), STAFF, 9, mode)


async def test_chunks_come_in_the_order_asked_from_whichever_shard_holds_them(hall: Hall) -> None:
    whole, together = hall.whole(), retriever(await hall.shards(3))
    ids = random.Random(1).sample(whole.stored.ids, 20)
    asked = [*ids, "gone#0-0123456789", "", ids[0]]
    assert await together.chunks(asked, STAFF, hall.versions[0]) == whole.chunks(asked, STAFF)


async def test_only_the_shard_of_a_document_is_asked_for_its_chunks(hall: Hall) -> None:
    shards = await hall.shards(3)
    await retriever(shards).chunks([hall.whole().stored.ids[0]], STAFF, hall.versions[0])
    assert sorted(len(shard.asked) for shard in shards) == [0, 0, 1]


async def test_a_question_is_embedded_once_and_not_by_every_shard(hall: Hall) -> None:
    together = retriever(await hall.shards(3))
    before = hall.embedder.texts
    await together.retrieve(Query("pump", ("valve",)), STAFF, hall.versions[0], 3)
    assert hall.embedder.texts - before == 2
    await together.retrieve(Query("pump"), STAFF, hall.versions[0], 3, Mode.LEXICAL)
    assert hall.embedder.texts - before == 2


async def test_what_cannot_be_searched_for_is_refused_before_any_shard_is_asked(hall: Hall) -> None:
    shards = await hall.shards(2)
    for query, n in ((Query(" "), 3), (Query("pump"), 0)):
        with pytest.raises(BadRequest):
            await retriever(shards).retrieve(query, STAFF, hall.versions[0], n)
    assert [shard.asked for shard in shards] == [[], []]


async def test_an_unknown_version_is_not_found(hall: Hall) -> None:
    together = retriever(await hall.shards(2))
    with pytest.raises(NotFound):
        await together.retrieve(Query("pump"), STAFF, "v00000000000f", 3)
    with pytest.raises(NotFound):
        await together.chunks([], STAFF, "v00000000000f")


# ---------------------------------------------------------------------------------------------- one view


async def test_a_deletion_that_one_shard_alone_has_seen_holds_for_all(hall: Hall) -> None:
    shards = await hall.shards(3)
    hall.registry.tombstone(["a", "d01", "d02", "d03"])
    await shards[1].library.refresh()
    found = await retriever(shards).retrieve(Query("pump"), STAFF, hall.versions[0], 9)
    assert found.hits == hall.whole().search(Query("pump"), STAFF, 9)


async def test_readers_that_one_shard_alone_has_heard_of_hold_for_all(hall: Hall) -> None:
    shards = await hall.shards(3)
    for name in ("a", "d01", "d02", "d03"):
        hall.registry.set_access(name, frozenset({"hr"}))
    await shards[1].library.refresh()
    for scope in (STAFF, Scope("harbour", frozenset({"hr"}))):
        found = await retriever(shards).retrieve(Query("pump"), scope, hall.versions[0], 9)
        assert found.hits == hall.whole().search(Query("pump"), scope, 9)


@pytest.mark.parametrize("step", ["shortlist", "hits"])
async def test_a_deletion_in_the_middle_of_a_search_begins_it_again(hall: Hall, step: str) -> None:
    shards = await hall.shards(2)

    async def deleted() -> None:
        hall.registry.tombstone(["a", "d01", "d02"])
        await shards[1].library.refresh()

    shards[1].before[step] = deleted
    found = await retriever(shards).retrieve(Query("pump"), STAFF, hall.versions[0], 40)
    assert found.hits == hall.whole().search(Query("pump"), STAFF, 40)
    assert shards[0].asked.count("survey") == 2


async def test_a_library_that_never_stands_still_fails_the_search(hall: Hall) -> None:
    shards, times = await hall.shards(2), iter(range(100))

    async def deleted() -> None:
        hall.registry.tombstone([f"d{next(times):02}"])
        await shards[1].library.refresh()

    shards[1].before["shortlist"] = deleted
    with pytest.raises(StageFailed, match="changed under this search 3 times") as caught:
        await retriever(shards).retrieve(Query("pump"), STAFF, hall.versions[0], 9)
    assert caught.value.retryable


async def test_while_one_shard_opens_a_canary_all_answer_from_stable_and_say_so(hall: Hall) -> None:
    shards = await hall.shards(3)
    hall.slow = (2, hall.versions[1])
    hall.gate.clear()
    hall.move(0, 1)
    for shard in shards[:2]:
        await shard.library.refresh()
    found = await retriever(shards).retrieve(Query("pump"), STAFF, hall.versions[1], 9)
    assert (found.version, found.hits) == (hall.versions[0], hall.whole(0).search(Query("pump"), STAFF, 9))
    assert found.notes == (f"Version {hall.versions[1]} is not open here yet; {hall.versions[0]} answered.",)
    hall.gate.set()
    await shards[2].library.refresh()
    found = await retriever(shards).retrieve(Query("pump"), STAFF, hall.versions[1], 9)
    assert (found.version, found.hits) == (hall.versions[1], hall.whole(1).search(Query("pump"), STAFF, 9))
    assert found.notes == ()


async def test_a_replica_that_is_behind_the_one_that_was_surveyed_takes_the_search_back_to_what_it_has(
    hall: Hall,
) -> None:
    shards = await hall.shards(2)
    behind = hall.library(1, 2)  # a second replica of the same shard, which cannot open the canary
    await behind.refresh()
    hall.move(0, 1)
    for shard in shards:
        await shard.library.refresh()
    hall.failing = {(1, hall.versions[1]): IncompatibleIndex("built with another embedder")}
    ahead = shards[1].library

    async def other() -> None:
        shards[1].library = behind

    shards[1].before["shortlist"] = other
    found = await retriever(shards).retrieve(Query("pump"), STAFF, hall.versions[1], 9)
    assert ahead.versions != behind.versions
    assert (found.version, found.hits) == (hall.versions[0], hall.whole(0).search(Query("pump"), STAFF, 9))
    assert found.notes == (f"Version {hall.versions[1]} is not open everywhere yet; {hall.versions[0]} answered.",)


async def test_a_shard_that_catches_up_during_a_search_leaves_no_note(hall: Hall) -> None:
    shards = await hall.shards(2)
    hall.slow = (1, hall.versions[1])
    hall.gate.clear()
    hall.move(0, 1)
    await shards[0].library.refresh()

    async def opened_and_deleted() -> None:
        hall.gate.set()
        hall.registry.tombstone(["a"])
        await shards[1].library.refresh()

    shards[1].before["shortlist"] = opened_and_deleted
    found = await retriever(shards).retrieve(Query("pump"), STAFF, hall.versions[1], 9)
    assert (found.version, found.hits) == (hall.versions[1], hall.whole(1).search(Query("pump"), STAFF, 9))
    assert found.notes == ()


async def test_chunks_are_looked_up_in_one_version_too(hall: Hall) -> None:
    shards = await hall.shards(3)
    hall.failing = {(2, hall.versions[1]): IncompatibleIndex("built with another embedder")}
    hall.move(0, 1)
    for shard in shards:
        await shard.library.refresh()
    old, new = hall.whole(0), hall.whole(1)
    asked = [*old.stored.ids, *new.stored.ids]
    assert await retriever(shards).chunks(asked, STAFF, hall.versions[1]) == old.chunks(asked, STAFF)


async def test_a_promotion_that_one_shard_alone_knows_of_is_answered_by_what_all_have(hall: Hall) -> None:
    shards = await hall.shards(2)
    hall.failing = {(1, hall.versions[1]): IncompatibleIndex("built with another embedder")}
    hall.move(1)
    await shards[0].library.refresh()
    found = await retriever(shards).retrieve(Query("pump"), STAFF, hall.versions[1], 9)
    assert found.version == hall.versions[0]
    assert found.hits == hall.whole(0).search(Query("pump"), STAFF, 9)


class Stuck:
    """A shard that answers from one version, whatever it is asked for."""

    def __init__(self, name: str, version: str) -> None:
        self.name, self.version = name, version

    async def survey(self, *_: object) -> Survey:
        return Survey(View(self.version, ""), (), None, ())


async def test_shards_that_have_no_version_in_common_are_not_ready_and_say_who_has_what() -> None:
    shards = [Stuck("retriever-0", "v1"), Stuck("retriever-1", "v2")]
    with pytest.raises(NotReady, match="retriever-0: v1, retriever-1: v2") as caught:
        await retriever(shards).retrieve(Query("pump"), STAFF, "v1", 9)
    assert caught.value.retryable


# ---------------------------------------------------------------------------------------------- no smaller library


async def test_a_silent_shard_is_a_failed_search_that_names_it(hall: Hall) -> None:
    shards = await hall.shards(3)

    async def silence() -> None:
        await asyncio.sleep(3600)

    shards[1].before["shortlist"] = silence
    with pytest.raises(StageTimeout, match=r"from retriever-1 within 0\.3 s") as caught:
        await retriever(shards, limit_s=0.3).retrieve(Query("pump"), STAFF, hall.versions[0], 9)
    assert (caught.value.stage, caught.value.retryable) == ("retriever-1", True)


@pytest.mark.parametrize("step", ["survey", "shortlist", "hits"])
async def test_a_failed_shard_fails_the_search_at_once_whatever_the_others_do(hall: Hall, step: str) -> None:
    shards, ended = await hall.shards(3), list[int]()

    async def dies() -> None:
        raise StageFailed("The retriever-2 died twice on this request: try again.", "retriever-2")

    async def waits() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(1)

    shards[2].before[step] = dies
    shards[0].before[step] = waits
    with pytest.raises(StageFailed, match="retriever-2 died twice"):
        await retriever(shards).retrieve(Query("pump valve"), ALL, hall.versions[0], 60)
    assert ended == [1]  # nobody goes on computing for a search that failed


async def test_a_caller_who_leaves_ends_the_work_in_every_shard(hall: Hall) -> None:
    shards, ended, begun = await hall.shards(2), list[int](), asyncio.Event()

    async def waits() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(1)

    for shard in shards:
        shard.before["survey"] = waits
    search = asyncio.create_task(retriever(shards).retrieve(Query("pump"), STAFF, hall.versions[0], 9))
    await begun.wait()
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert ended == [1, 1]
