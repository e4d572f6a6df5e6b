"""The versions of one process: in step with the pointer, and honest about which one answered."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from domain.errors import IncompatibleIndex, NotFound, NotReady, StorageError
from domain.releases import Move, Rollout, Verb
from domain.types import Document, Query, Scope
from retrieval.building import build
from retrieval.embedding import HashingEmbedder
from retrieval.index import HybridIndex
from retrieval.library import Library
from retrieval.registry import FolderRegistry

STAFF = Scope("harbour", frozenset({"staff"}))


class CountedRegistry(FolderRegistry):
    """Counts how often its pointer is read."""

    reads = 0

    def rollout(self) -> Rollout:
        self.reads += 1
        return super().rollout()


class Hall:
    """A registry with five versions, and a Library whose opening can be held up or made to fail."""

    def __init__(self, root: Path, versions: list[str]) -> None:
        self.embedder = HashingEmbedder(32)
        self.registry, self.versions = CountedRegistry(root), versions
        self.opened: list[str] = []
        self.failing: dict[str, Exception] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.library = Library(self.open, self.registry)

    def open(self, version: str) -> HybridIndex:
        folder = self.registry.folder(version)
        self.gate.wait(10)
        self.opened.append(version)
        if version in self.failing:
            raise self.failing[version]
        return HybridIndex.open(folder, self.embedder)

    def move(self, stable: int, canary: int | None = None, *, back: bool = False) -> None:
        """Moves the pointer as releases do: `back` forgets where it came from."""
        current, name = self.registry.rollout(), self.versions[stable]
        trial = self.versions[canary] if canary is not None else None
        previous = current.previous if name == current.stable else None if back else current.stable
        after = Rollout(name, trial, 0.5 if trial else 0.0, previous, current.revision + 1)
        self.registry.move(Move(Verb.CANARY, "", "a test", current, after))

    async def point(self, stable: int, canary: int | None = None, refresh: bool = True) -> None:
        self.move(stable, canary)
        if refresh:
            await self.library.refresh()

    def is_open(self, version: int) -> bool:
        return self.versions[version] in self.library.versions

    async def follow_until(self, claim: Callable[[], bool], within_s: float = 5.0) -> bool:
        """Follows as a serving process does, only more often, until the claim holds; False when it never does."""
        deadline = asyncio.get_running_loop().time() + within_s
        while not claim() and asyncio.get_running_loop().time() < deadline:
            await self.library.follow()
            await asyncio.sleep(0.005)
        return claim()

    async def asked(self, version: int) -> tuple[str, str, tuple[str, ...]]:
        """What a question to a version brings: the text found, the version that answered, the notes."""
        found = await self.library.retrieve(Query("pump"), STAFF, self.versions[version], 1)
        return found.hits[0].chunk.text, found.version, found.notes


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Five versions, built once: every test works on a copy of its own."""
    path = tmp_path_factory.mktemp("built")
    registry, versions = FolderRegistry(path / "library"), []
    for i in range(5):
        pump = Document("a", "", f"The pump of build {i} runs.", "", "", "", frozenset({"staff"}), "harbour", "")
        report = build([pump], embedder=HashingEmbedder(32), registry=registry, staging=path / "staging")
        versions.append(report.version.id)
    return registry.root, versions


@pytest.fixture
async def hall(built: tuple[Path, list[str]], tmp_path: Path) -> AsyncIterator[Hall]:
    root, versions = built
    shutil.copytree(root, tmp_path / "library")
    hall = Hall(tmp_path / "library", versions)
    yield hall
    hall.library.close()


async def test_before_the_first_promotion_it_is_not_ready(hall: Hall) -> None:
    await hall.library.refresh()
    assert not hall.library.ready
    assert hall.library.versions == ()


async def test_stable_and_canary_are_open_and_each_answers_for_itself(hall: Hall) -> None:
    await hall.point(0, 1)
    assert hall.library.ready
    assert set(hall.library.versions) == set(hall.versions[:2])
    assert await hall.asked(0) == ("The pump of build 0 runs.", hall.versions[0], ())
    assert await hall.asked(1) == ("The pump of build 1 runs.", hall.versions[1], ())


async def test_a_refresh_without_a_move_opens_nothing(hall: Hall) -> None:
    await hall.point(0, 1)
    await hall.library.refresh()
    assert hall.opened == hall.versions[:2]


async def test_while_a_canary_opens_stable_answers_and_says_so(hall: Hall) -> None:
    await hall.point(0)
    hall.gate.clear()
    await hall.point(0, 1, refresh=False)
    refreshing = asyncio.create_task(hall.library.refresh())
    while hall.library.pointer.canary is None:
        assert (await hall.asked(0))[1] == hall.versions[0]  # searching goes on all the time
    text, version, notes = await hall.asked(1)
    assert (text, version) == ("The pump of build 0 runs.", hall.versions[0])
    assert notes == (f"Version {hall.versions[1]} is not open here yet; {hall.versions[0]} answered.",)
    hall.gate.set()
    await refreshing
    assert await hall.asked(1) == ("The pump of build 1 runs.", hall.versions[1], ())


async def test_a_canary_that_cannot_be_opened_costs_stable_nothing_and_is_tried_once_per_move(hall: Hall) -> None:
    hall.failing[hall.versions[1]] = IncompatibleIndex("built with another embedder")
    await hall.point(0, 1)
    await hall.library.refresh()
    assert hall.opened.count(hall.versions[1]) == 1
    _, version, notes = await hall.asked(1)
    assert version == hall.versions[0]
    assert "could not be opened here: built with another embedder" in notes[0]
    assert "another embedder" in str(hall.library.problems[hall.versions[1]])
    hall.failing.clear()
    await hall.point(0, 1)
    assert hall.library.problems == {}
    assert (await hall.asked(1))[1] == hall.versions[1]


async def test_a_stable_that_cannot_be_opened_says_why(hall: Hall) -> None:
    hall.failing[hall.versions[0]] = IncompatibleIndex("built with another embedder")
    await hall.point(0)
    assert not hall.library.ready
    with pytest.raises(IncompatibleIndex, match="another embedder"):
        await hall.asked(0)


async def test_a_stable_that_is_still_opening_is_not_ready_yet(hall: Hall) -> None:
    hall.gate.clear()
    await hall.point(0, refresh=False)
    refreshing = asyncio.create_task(hall.library.refresh())
    while hall.library.pointer.stable is None:
        await asyncio.sleep(0.001)
    with pytest.raises(NotReady, match="try again in a moment"):
        await hall.asked(0)
    hall.gate.set()
    await refreshing
    assert (await hall.asked(0))[1] == hall.versions[0]


async def test_a_known_version_is_opened_when_it_is_asked_for_by_name(hall: Hall) -> None:
    await hall.point(0)
    assert await hall.asked(3) == ("The pump of build 3 runs.", hall.versions[3], ())


async def test_only_the_last_few_others_stay_open(hall: Hall) -> None:
    await hall.point(0)
    for version in (1, 2, 1, 3):
        await hall.asked(version)
    assert set(hall.library.versions) == {hall.versions[i] for i in (0, 1, 3)}


async def test_an_unknown_version_is_not_found(hall: Hall) -> None:
    await hall.point(0)
    for name in ("v00000000000f", "../library", ""):
        with pytest.raises(NotFound, match="there are: v"):
            await hall.library.retrieve(Query("pump"), STAFF, name, 1)
        with pytest.raises(NotFound):
            await hall.library.chunks([], STAFF, name)


async def test_a_promotion_keeps_the_canary_open_and_is_followed(hall: Hall) -> None:
    await hall.point(0, 1)
    await hall.point(1)
    assert hall.opened == hall.versions[:2]
    assert (await hall.asked(1))[1] == hall.versions[1]
    assert (await hall.asked(0))[1] == hall.versions[0]  # conversations from before the move go on


async def test_a_version_nobody_has_open_is_promoted_without_a_failed_or_a_waiting_request(hall: Hall) -> None:
    await hall.point(0)
    hall.gate.clear()
    hall.move(1)
    text, version, notes = await hall.asked(1)  # the gateway knows of the move, nobody here does yet
    assert (text, version) == ("The pump of build 0 runs.", hall.versions[0])
    assert notes == (f"Version {hall.versions[1]} is not open here yet; {hall.versions[0]} answered.",)
    assert hall.library.ready
    hall.gate.set()
    assert await hall.follow_until(lambda: hall.is_open(1))
    assert await hall.asked(1) == ("The pump of build 1 runs.", hall.versions[1], ())
    assert (await hall.asked(0))[1] == hall.versions[0]  # a gateway that is a second behind


async def test_a_canary_only_the_gateway_knows_of_is_opened_while_stable_answers(hall: Hall) -> None:
    await hall.point(0)
    hall.gate.clear()
    hall.move(0, 1)
    assert (await hall.asked(1))[1] == hall.versions[0]
    hall.gate.set()
    assert await hall.follow_until(lambda: hall.is_open(1))
    assert (await hall.asked(1))[1] == hall.versions[1]


async def test_a_rollback_finds_its_version_open_also_in_a_process_that_began_after_the_promotion(hall: Hall) -> None:
    hall.move(0)
    hall.move(1)
    await hall.library.refresh()
    assert hall.opened == [hall.versions[1]]
    await hall.library.follow()
    assert await hall.follow_until(lambda: hall.is_open(0))
    hall.gate.clear()
    hall.move(0, back=True)
    assert await hall.asked(0) == ("The pump of build 0 runs.", hall.versions[0], ())
    await hall.library.follow()
    assert await hall.asked(0) == ("The pump of build 0 runs.", hall.versions[0], ())
    hall.gate.set()


async def test_neither_a_deletion_nor_the_next_move_waits_for_a_version_that_opens_slowly(hall: Hall) -> None:
    await hall.point(0)
    hall.gate.clear()
    hall.move(0, 1)
    await hall.library.follow()
    hall.registry.tombstone(["a"])
    hall.move(0)
    await hall.library.follow()
    assert hall.library.pointer.canary is None
    assert (await hall.library.retrieve(Query("pump"), STAFF, hall.versions[0], 1)).hits == ()
    hall.gate.set()
    while not hall.opened[1:]:
        await asyncio.sleep(0.001)
    assert (await hall.library.retrieve(Query("pump"), STAFF, hall.versions[1], 1)).hits == ()


async def test_only_what_was_stable_ever_stands_in(hall: Hall) -> None:
    await hall.point(0)
    await hall.asked(4)  # open, and admitted by nobody
    hall.failing[hall.versions[1]] = IncompatibleIndex("built with another embedder")
    await hall.point(1)
    _, version, notes = await hall.asked(1)
    assert version == hall.versions[0]
    assert "could not be opened here: built with another embedder" in notes[0]


async def test_a_stand_in_stays_open_however_many_others_are_asked_for(hall: Hall) -> None:
    await hall.point(0)
    hall.failing[hall.versions[1]] = IncompatibleIndex("built with another embedder")
    hall.move(1)
    hall.move(1)  # twice, so that it is no longer the previous one either
    hall.registry.move(_forgetting(hall))
    await hall.library.refresh()
    for version in (2, 3, 4):
        await hall.asked(version)
    assert (await hall.asked(1))[1] == hall.versions[0]


def _forgetting(hall: Hall) -> Move:
    before = hall.registry.rollout()
    return Move(Verb.PROMOTE, "", "a test", before, replace(before, previous=None, revision=before.revision + 1))


async def test_a_version_whose_folder_arrives_late_is_tried_again_and_one_of_another_encoder_is_not(
    hall: Hall,
) -> None:
    hall.failing = {hall.versions[1]: StorageError("not here"), hall.versions[0]: IncompatibleIndex("other encoder")}
    hall.move(0)
    hall.move(2, 1)
    assert await hall.follow_until(lambda: hall.opened.count(hall.versions[1]) == 3)
    assert hall.opened.count(hall.versions[0]) == 1
    del hall.failing[hall.versions[1]]
    assert await hall.follow_until(lambda: hall.is_open(1))
    assert await hall.asked(1) == ("The pump of build 1 runs.", hall.versions[1], ())
    assert set(hall.library.problems) == {hall.versions[0]}


async def test_what_goes_wrong_in_the_background_is_told_by_the_next_look_and_tried_again(hall: Hall) -> None:
    await hall.point(0)
    hall.failing[hall.versions[1]] = MemoryError("no room")
    hall.move(0, 1)
    with pytest.raises(MemoryError, match="no room"):
        await hall.follow_until(lambda: hall.is_open(1))
    hall.failing.clear()
    assert await hall.follow_until(lambda: hall.is_open(1))


async def test_many_askers_of_an_unknown_move_look_once_or_twice_and_not_each(hall: Hall) -> None:
    await hall.point(0)
    hall.gate.clear()
    hall.move(0, 1)
    before = hall.registry.reads
    found = await asyncio.gather(*(hall.asked(1) for _ in range(20)))
    assert {version for _, version, _ in found} == {hall.versions[0]}
    assert hall.registry.reads - before <= 2
    hall.gate.set()


async def test_tombstones_that_did_not_change_are_the_same_object_after_every_look(hall: Hall) -> None:
    await hall.point(0)
    hall.registry.tombstone(["a"])
    index = await hall.library._opened(hall.versions[0])
    seen = []
    for _ in range(3):
        await hall.library.refresh()
        seen.append(index.amended)
    assert seen[0] is seen[1] is seen[2]
    hall.registry.restore(["a"])
    await hall.library.refresh()
    assert index.amended.gone == frozenset()


async def test_a_tombstone_reaches_every_open_version_and_those_opened_later(hall: Hall) -> None:
    await hall.point(0, 1)
    hall.registry.tombstone(["a"])
    await hall.library.refresh()
    for version in (0, 1, 2):
        found = await hall.library.retrieve(Query("pump"), STAFF, hall.versions[version], 1)
        assert found.hits == ()
    hall.registry.restore(["a"])
    await hall.library.refresh()
    assert (await hall.asked(2))[1] == hall.versions[2]


async def test_changed_readers_reach_every_open_version_and_those_opened_later(hall: Hall) -> None:
    await hall.point(0, 1)
    hall.registry.set_access("a", frozenset({"hr"}))
    await hall.library.refresh()
    hr = Scope(STAFF.tenant, frozenset({"hr"}))
    for version in (0, 1, 2):
        name = hall.versions[version]
        assert (await hall.library.retrieve(Query("pump"), STAFF, name, 1)).hits == ()
        assert len((await hall.library.retrieve(Query("pump"), hr, name, 1)).hits) == 1
    hall.registry.set_access("a", None)
    await hall.library.refresh()
    assert (await hall.asked(2))[1] == hall.versions[2]


async def test_many_askers_of_a_closed_version_open_it_once(hall: Hall) -> None:
    await hall.point(0)
    await asyncio.gather(*(hall.asked(2) for _ in range(5)))
    assert hall.opened.count(hall.versions[2]) == 1


async def test_an_unreadable_pointer_is_told_and_changes_nothing(hall: Hall) -> None:
    await hall.point(0)
    (hall.registry.root / "rollout.json").write_bytes(b"{")
    with pytest.raises(StorageError, match=r"rollout\.json is damaged"):
        await hall.library.refresh()
    assert (await hall.asked(0))[1] == hall.versions[0]


async def test_the_event_loop_runs_while_it_computes(hall: Hall) -> None:
    await hall.point(0)
    computing, release = threading.Event(), threading.Event()

    class Slow(HashingEmbedder):
        def embed_queries(self, texts):  # type: ignore[no-untyped-def]  # as its parent
            computing.set()
            release.wait(10)
            return super().embed_queries(texts)

    hall.embedder = Slow(32)
    question = asyncio.create_task(hall.asked(4))
    while not computing.is_set():
        await asyncio.sleep(0.001)
    assert not question.done()
    release.set()
    assert (await question)[1] == hall.versions[4]


async def test_a_drill_slows_the_canary_down_and_nobody_else(hall: Hall) -> None:
    hall.library = Library(hall.open, hall.registry, drill_s=0.05)
    await hall.point(0, canary=1)
    clock = asyncio.get_running_loop().time

    async def seconds(version: int) -> float:
        started = clock()
        await hall.asked(version)
        return clock() - started

    assert await seconds(1) >= 0.05
    assert min([await seconds(0) for _ in range(5)]) < 0.05
