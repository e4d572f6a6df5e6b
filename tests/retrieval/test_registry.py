"""The folder registry on a real disk: other processes, crashes, damage and folders that cannot be written."""

import multiprocessing
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from domain.errors import PointerMoved, StorageError
from domain.releases import Rollout
from retrieval.registry import FolderRegistry
from tests.contracts.test_index_registry import V1, decision, move, publish, staged, version


@pytest.fixture
def registry(tmp_path: Path) -> FolderRegistry:
    registry = FolderRegistry(tmp_path / "my library ü")
    publish(registry, tmp_path, V1)
    return registry


def race(root: Path, rounds: int, won: "multiprocessing.Queue[int]") -> None:
    registry = FolderRegistry(root)
    while (current := registry.rollout()).revision < rounds:
        try:
            registry.move(move(current, Rollout(stable=V1, revision=current.revision + 1)))
        except PointerMoved:
            continue
        won.put(current.revision + 1)


def test_between_processes_too_exactly_one_wins_each_revision(registry: FolderRegistry) -> None:
    context = multiprocessing.get_context("spawn")
    won: multiprocessing.Queue[int] = context.Queue()
    racers = [context.Process(target=race, args=(registry.root, 20, won)) for _ in range(2)]
    for racer in racers:
        racer.start()
    revisions = [won.get(timeout=60) for _ in range(20)]
    for racer in racers:
        racer.join(60)
    assert sorted(revisions) == list(range(1, 21))
    assert won.empty()
    won.close()


def test_what_was_written_is_read_by_another_registry(registry: FolderRegistry) -> None:
    registry.move(move(Rollout(), Rollout(stable=V1, revision=1)))
    registry.record(decision(V1))
    registry.tombstone(["a", "ü"])
    other = FolderRegistry(registry.root)
    assert (other.rollout().stable, other.tombstones()) == (V1, frozenset({"a", "ü"}))
    assert other.decisions(V1) == (decision(V1),)


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


@pytest.mark.parametrize(
    ("name", "look"),
    [
        ("rollout.json", lambda registry: registry.rollout()),
        ("tombstones.json", lambda registry: registry.tombstones()),
        (f"versions/{V1}/version.json", lambda registry: registry.versions()),
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
    with pytest.raises(StorageError, match="is damaged"):
        registry.versions()


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
    "tombstone": lambda registry, path: registry.tombstone(["a"]),
}


@pytest.mark.parametrize("write", sorted(WRITES))
def test_a_read_only_folder_serves_and_says_so_when_written(
    registry: FolderRegistry, tmp_path: Path, write: str
) -> None:
    folders = [registry.root, *(path for path in registry.root.rglob("*") if path.is_dir())]
    (registry.root / ".lock").chmod(0o400)
    for folder in folders:
        folder.chmod(0o500)
    try:
        if os.access(registry.root, os.W_OK):
            pytest.skip("this user may write everywhere")
        assert registry.rollout() == Rollout()
        assert [there.id for there in registry.versions()] == [V1]
        with pytest.raises(StorageError, match="serving works read-only"):
            WRITES[write](registry, tmp_path)
    finally:
        for folder in folders:
            folder.chmod(0o700)


@pytest.mark.parametrize("write", sorted(WRITES))
def test_a_root_that_cannot_be_a_folder_is_named(tmp_path: Path, write: str) -> None:
    good = FolderRegistry(tmp_path / "good")
    publish(good, tmp_path, V1)
    (good.root / ".lock").unlink()
    (good.root / ".lock").mkdir()  # any write must open it as a file
    with pytest.raises(StorageError, match=r"Cannot write .*\.lock"):
        WRITES[write](good, tmp_path)
