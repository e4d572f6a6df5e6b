"""The versions of one process: in step with the pointer, and honest about which one answered."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
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


class Hall:
    """A registry with five versions, and a Library whose opening can be held up or made to fail."""

    def __init__(self, root: Path, versions: list[str]) -> None:
        self.embedder = HashingEmbedder(32)
        self.registry, self.versions = FolderRegistry(root), versions
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

    async def point(self, stable: int, canary: int | None = None, refresh: bool = True) -> None:
        current = self.registry.rollout()
        name = self.versions[canary] if canary is not None else None
        share = 0.5 if name else 0.0
        after = Rollout(self.versions[stable], name, share, revision=current.revision + 1)
        self.registry.move(Move(Verb.CANARY, "", "a test", current, after))
        if refresh:
            await self.library.refresh()

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
