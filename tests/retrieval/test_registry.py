"""The folder registry on a real disk: other processes, crashes, damage and folders that cannot be written."""

import multiprocessing
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from domain.errors import NotFound, PointerMoved, StorageError
from domain.releases import Rollout
from retrieval.registry import FolderRegistry
from tests.contracts.test_index_registry import V1, V2, decision, move, publish, staged, version


@pytest.fixture
def registry(tmp_path: Path) -> FolderRegistry:
    registry = FolderRegistry(tmp_path / "my library ü")
    publish(registry, tmp_path, V1)
    return registry


def race(root: Path, who: str, rounds: int, told: "multiprocessing.Queue[tuple[str, int, str]]") -> None:
    """Moves the pointer as often as it can; tells of each move it made and of each that somebody else was faster in."""
    registry = FolderRegistry(root)
    while (current := registry.rollout()).revision < rounds:
        try:
            registry.move(move(current, Rollout(stable=V1, revision=current.revision + 1), who))
        except PointerMoved as too_late:
            told.put((who, 0, str(too_late)))
        else:
            told.put((who, current.revision + 1, ""))
    told.put((who, -1, ""))


def test_between_processes_too_exactly_one_wins_each_revision(registry: FolderRegistry) -> None:
    context = multiprocessing.get_context("spawn")
    told: multiprocessing.Queue[tuple[str, int, str]] = context.Queue()
    names = ("the day shift", "the night shift")
    racers = [context.Process(target=race, args=(registry.root, name, 20, told)) for name in names]
    for racer in racers:
        racer.start()
    heard: list[tuple[str, int, str]] = []
    while sum(revision == -1 for _, revision, _ in heard) < len(racers):
        heard.append(told.get(timeout=60))
    for racer in racers:
        racer.join(60)
    told.close()
    won = {revision: who for who, revision, _ in heard if revision > 0}
    assert sorted(revision for _, revision, _ in heard if revision > 0) == list(range(1, 21))
    ledger = registry.ledger()
    assert [(each.after.revision, each.who) for each in ledger] == sorted(won.items())
    for who, revision, message in heard:
        if revision == 0:
            at, faster = re.match(r"The rollout pointer is at revision (\d+), .*: (.*) made a", message).groups()
            assert (won[int(at)], faster) == (faster, *{*names} - {who})


def test_what_was_written_is_read_by_another_registry(registry: FolderRegistry) -> None:
    registry.move(move(Rollout(), Rollout(stable=V1, revision=1)))
    registry.record(decision(V1))
    registry.tombstone(["a", "ü"])
    other = FolderRegistry(registry.root)
    assert (other.rollout().stable, other.tombstones()) == (V1, frozenset({"a", "ü"}))
    assert other.decisions(V1) == (decision(V1),)


def test_a_reason_in_another_encoding_hinders_no_move(registry: FolderRegistry) -> None:
    before = registry.rollout()
    reason = b"zur\xfcck".decode("utf-8", "surrogateescape")  # as Python hands on an argument that is no UTF-8
    registry.move(replace(move(before, Rollout(stable=V1, revision=before.revision + 1)), reason=reason))
    assert FolderRegistry(registry.root).ledger()[-1].reason == "zur?ck"


def test_documents_are_forgotten_and_restored_by_id(registry: FolderRegistry) -> None:
    registry.tombstone(["a", "b"])
    registry.tombstone(["b", "c"])
    registry.restore(["a", "unknown"])
    assert registry.tombstones() == frozenset({"b", "c"})


def test_reading_writes_nothing(tmp_path: Path) -> None:
    registry = FolderRegistry(tmp_path / "absent")
    registry.rollout(), registry.versions(), registry.tombstones()
    assert not registry.root.exists()


def test_a_torn_last_decision_loses_no_earlier_one_and_no_later_one(registry: FolderRegistry) -> None:
    registry.record(decision(V1, "r1"))
    path = registry.root / "decisions" / f"{V1}.jsonl"
    with path.open("ab") as lines:
        lines.write(b'{"binding": {"vers')  # the power went off here
    assert [each.run_id for each in registry.decisions(V1)] == ["r1"]
    registry.record(decision(V1, "r2"))
    assert [each.run_id for each in registry.decisions(V1)] == ["r1", "r2"]


def test_a_damaged_decision_is_named_with_its_line(registry: FolderRegistry) -> None:
    registry.record(decision(V1))
    with (registry.root / "decisions" / f"{V1}.jsonl").open("ab") as lines:
        lines.write(b'{"binding": 7}\n')
    with pytest.raises(StorageError, match=rf"{V1}.jsonl, line 2 is damaged \(binding"):
        registry.decisions(V1)


def damage(registry: FolderRegistry) -> None:
    """Says what is wrong with the version, as whoever comes to it by name would."""
    raise StorageError(registry.damaged()[V1])


@pytest.mark.parametrize(
    ("name", "look"),
    [
        ("rollout.json", lambda registry: registry.rollout()),
        ("tombstones.json", lambda registry: registry.tombstones()),
        (f"versions/{V1}/version.json", damage),
    ],
)
@pytest.mark.parametrize("content", [b'{"sta', b'{"share": "much"}', b"\xff\x00"])
def test_a_damaged_file_is_named(
    registry: FolderRegistry, name: str, look: Callable[[FolderRegistry], object], content: bytes
) -> None:
    (registry.root / name).write_bytes(content)
    with pytest.raises(StorageError, match=f"{Path(name).name} is damaged"):
        look(registry)


def test_a_version_without_its_description_is_damage_and_not_absence(registry: FolderRegistry) -> None:
    (registry.root / "versions" / V1 / "version.json").unlink()
    folder = registry.root / "versions" / V1
    with pytest.raises(StorageError, match=f"is damaged .* restore it from a backup or remove all of {folder}"):
        damage(registry)
    assert registry.folder(V1) == folder


def test_a_description_of_another_version_is_damage(registry: FolderRegistry) -> None:
    path = registry.root / "versions" / V1 / "version.json"
    path.write_text(path.read_text().replace(V1, "v0000000000ff"))
    with pytest.raises(StorageError, match=r"version.json is damaged \(id: it describes v0000000000ff\)"):
        damage(registry)
    assert registry.versions() == ()


def test_a_damaged_version_can_be_removed_and_hides_no_other(registry: FolderRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V2)
    (registry.root / "versions" / V1 / "version.json").write_bytes(b"{")
    with pytest.raises(NotFound, match=f"there are: {V1}, {V2}"):
        registry.folder("v0000000000ff")
    registry.remove(V1)
    assert [there.id for there in registry.versions()] == [V2]


def test_what_killed_removals_left_goes_with_the_next_publishing_or_removal(
    registry: FolderRegistry, tmp_path: Path
) -> None:
    versions = registry.root / "versions"
    for left in (f".removed-{V1}", ".incoming-x"):
        (versions / left / "bm25").mkdir(parents=True)
    publish(registry, tmp_path, V2)
    assert {path.name for path in versions.iterdir()} == {V1, V2}
    (versions / f".removed-{V1}" / "bm25").mkdir(parents=True)
    registry.remove(V1)
    assert {path.name for path in versions.iterdir()} == {V2}


def test_the_remains_of_a_crash_disturb_nobody(registry: FolderRegistry) -> None:
    (registry.root / ".rollout.json.new").write_bytes(b'{"half')
    (registry.root / "versions" / ".incoming-x").mkdir()
    (registry.root / "versions" / ".incoming-x" / "manifest.json").write_bytes(b"{")
    assert [there.id for there in registry.versions()] == [V1]
    registry.move(move(Rollout(), Rollout(stable=V1, revision=1)))
    assert registry.rollout() == Rollout(stable=V1, revision=1)


def test_a_staged_folder_moves_and_leaves_nothing_behind(registry: FolderRegistry, tmp_path: Path) -> None:
    folder = staged(tmp_path, "again")
    assert registry.publish(folder, version("v0000000000aa")) is True
    assert not folder.exists()
    assert {path.name for path in (registry.root / "versions").iterdir()} == {V1, "v0000000000aa"}


def test_a_staged_folder_on_another_disk_is_copied_over(tmp_path: Path) -> None:
    other_disk = Path("/dev/shm")  # the one other file system a Linux machine surely has
    if not other_disk.is_dir() or other_disk.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system to stage on")
    folder = other_disk / f"tidegate-test-{os.getpid()}"
    (folder / "bm25").mkdir(parents=True)
    try:
        (folder / "bm25" / "rows.npy").write_text("rows")
        registry = FolderRegistry(tmp_path / "library")
        assert registry.publish(folder, version(V1)) is True
        assert (registry.folder(V1) / "bm25" / "rows.npy").read_text() == "rows"
        assert [path.name for path in (registry.root / "versions").iterdir()] == [V1]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


WRITES: dict[str, Callable[[FolderRegistry, Path], object]] = {
    "publish": lambda registry, path: registry.publish(staged(path, "w"), version("v0000000000aa")),
    "record": lambda registry, path: registry.record(decision(V1)),
    "move": lambda registry, path: registry.move(move(Rollout(), Rollout(stable=V1, revision=1))),
    "remove": lambda registry, path: registry.remove(V1),
    "tombstone": lambda registry, path: registry.tombstone(["a"]),
}


@pytest.mark.parametrize("write", sorted(WRITES))
def test_a_root_that_cannot_be_a_folder_is_named(tmp_path: Path, write: str) -> None:
    good = FolderRegistry(tmp_path / "good")
    publish(good, tmp_path, V1)
    (good.root / ".lock").unlink()
    (good.root / ".lock").mkdir()  # any write must open it as a file
    with pytest.raises(StorageError, match=r"Cannot write .*\.lock"):
        WRITES[write](good, tmp_path)
