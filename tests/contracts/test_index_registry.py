"""What every index registry promises."""

import json
import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from domain.amending import Amendment, DocumentChange
from domain.errors import BadRequest, NotAdmitted, NotFound, PointerMoved, StorageError
from domain.ports import IndexRegistry
from domain.releases import Binding, Decision, IndexVersion, Move, Outcome, Rollout, Verb, Verdict
from domain.types import Document
from retrieval.building import build
from retrieval.embedding import HashingEmbedder
from retrieval.registry import FolderRegistry
from retrieval.s3_objects import Objects
from retrieval.s3_registry import S3Registry
from tests.fakes import MemoryRegistry

if TYPE_CHECKING:
    from tests.s3_server import S3Server

V1, V2, V3 = (f"v{i:012x}" for i in (1, 2, 3))

REGISTRIES: dict[str, Callable[[Path, pytest.FixtureRequest], IndexRegistry]] = {
    "folder": lambda path, _: FolderRegistry(path / "library"),
    "fake": lambda path, _: MemoryRegistry(),
    "s3": lambda path, request: s3_registry(path, request.getfixturevalue("s3_server")),
}


@pytest.fixture(params=sorted(REGISTRIES))
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> IndexRegistry:
    return REGISTRIES[request.param](tmp_path, request)


def s3_registry(path: Path, server: "S3Server", bucket: str = "") -> S3Registry:
    """A registry on the server, in a bucket of its own unless one is named."""
    return S3Registry(Objects(server.client(), bucket or server.bucket(), "library"), path / "cache", 1 << 30)


def version(id: str, built_at: str = "2026-01-31T12:00:00+00:00") -> IndexVersion:
    return IndexVersion(id, None, "heading-200-0", "words-1", "hash-256", 2, 3, built_at)


def staged(tmp_path: Path, name: str, content: str = "chunks") -> Path:
    folder = tmp_path / "staging" / name
    (folder / "bm25").mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"of": content}))
    (folder / "bm25" / "rows.npy").write_text(content)
    return folder


def publish(registry: IndexRegistry, tmp_path: Path, *ids: str) -> None:
    for id in ids:
        registry.publish(staged(tmp_path, id), version(id))


def decision(id: str, run: str = "r1", outcome: Outcome = Outcome.PASS) -> Decision:
    verdicts = (Verdict("recall@8", outcome, "recall@8 .91 ≥ .90 (n = 300)"), Verdict("p95", Outcome.ERROR, "", True))
    return Decision(Binding(id, "d", "s", "g", "c"), verdicts, run, "2026-01-31T12:00:00+00:00")


def move(before: Rollout, after: Rollout, who: str = "a test", reason: str = "") -> Move:
    return Move(Verb.PROMOTE, "2026-01-31T12:00:00.000+00:00", who, before, after, reason)


def test_before_anything_is_written_it_is_empty(registry: IndexRegistry) -> None:
    assert (registry.versions(), registry.rollout(), registry.tombstones()) == ((), Rollout(), frozenset())


def test_a_published_version_is_there_with_its_files(registry: IndexRegistry, tmp_path: Path) -> None:
    assert registry.publish(staged(tmp_path, "x"), version(V1)) is True
    assert registry.versions() == (version(V1),)
    assert json.loads((registry.folder(V1) / "manifest.json").read_text()) == {"of": "chunks"}


def test_publishing_a_version_again_says_so_and_keeps_the_first(registry: IndexRegistry, tmp_path: Path) -> None:
    registry.publish(staged(tmp_path, "a", "first"), version(V1, "2026-01-01"))
    assert registry.publish(staged(tmp_path, "b", "second"), version(V1, "2026-02-02")) is False
    assert registry.versions() == (version(V1, "2026-01-01"),)
    assert (registry.folder(V1) / "bm25" / "rows.npy").read_text() == "first"


def test_versions_come_oldest_first_and_equally_old_by_id(registry: IndexRegistry, tmp_path: Path) -> None:
    for id, day in ((V3, "2026-01-01"), (V2, "2026-01-02"), (V1, "2026-01-02")):
        registry.publish(staged(tmp_path, id), version(id, day))
    assert [there.id for there in registry.versions()] == [V3, V1, V2]


@pytest.mark.parametrize(
    "name",
    [
        "v00000000000f",
        "../library",
        "..",
        "",
        ".",
        "/etc",
        "v1",
        "V000000000001",
        "v000000000001\n",
        "v\0",
        "v000000000001/..",
    ],
)
def test_an_unknown_name_is_not_found_naming_what_there_is(registry: IndexRegistry, tmp_path: Path, name: str) -> None:
    publish(registry, tmp_path, V1)
    with pytest.raises(NotFound, match=f"there are: {V1}"):
        registry.folder(name)
    with pytest.raises(NotFound):
        registry.decisions(name)
    with pytest.raises(NotFound):
        registry.move(move(Rollout(), Rollout(stable=name, revision=1)))


def test_a_version_with_a_path_for_a_name_is_not_published(registry: IndexRegistry, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no version name"):
        registry.publish(staged(tmp_path, "x"), version("../../elsewhere"))
    assert not (tmp_path / "elsewhere").exists()


def test_decisions_are_kept_in_order_as_they_were(registry: IndexRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V1, V2)
    made = [decision(V1, "r1"), replace(decision(V1, "r2", Outcome.FAIL), forced="an incident, see the log")]
    for each in made:
        registry.record(each)
    assert registry.decisions(V1) == tuple(made)
    assert registry.decisions(V1)[1].outcome is Outcome.FAIL
    assert registry.decisions(V2) == ()


def test_a_decision_about_no_version_is_refused(registry: IndexRegistry) -> None:
    with pytest.raises(NotFound):
        registry.record(decision(V1))


def test_the_pointer_moves_when_it_is_where_it_was_expected(registry: IndexRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V1, V2)
    first = Rollout(stable=V1, revision=1)
    second = Rollout(stable=V1, canary=V2, share=0.05, revision=2)
    registry.move(move(Rollout(), first))
    registry.move(move(first, second))
    assert registry.rollout() == second


def test_a_move_from_elsewhere_is_refused_and_changes_nothing(registry: IndexRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V1, V2)
    first = Rollout(stable=V1, revision=1)
    registry.move(move(Rollout(), first))
    with pytest.raises(PointerMoved, match="at revision 1, not 0"):
        registry.move(move(Rollout(), Rollout(stable=V2, revision=1)))
    assert registry.rollout() == first


def test_a_move_to_where_it_is_changes_nothing(registry: IndexRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V1)
    first = Rollout(stable=V1, revision=1)
    registry.move(move(Rollout(), first))
    registry.move(move(first, first))
    assert registry.rollout() == first


def test_a_move_that_skips_or_repeats_a_revision_is_a_bug(registry: IndexRegistry) -> None:
    for revision in (0, 2):
        with pytest.raises(ValueError, match="this is a bug"):
            registry.move(move(Rollout(), Rollout(share=0.5, revision=revision)))


def test_a_forced_decision_is_recorded_with_the_move_that_bears_it_or_not_at_all(
    registry: IndexRegistry, tmp_path: Path
) -> None:
    publish(registry, tmp_path, V1, V2)
    first = Rollout(stable=V1, revision=1)
    forced = replace(decision(V2, outcome=Outcome.FAIL), forced="an incident, see the log")
    registry.move(replace(move(Rollout(), first), decision=decision(V1)))
    assert registry.decisions(V1) == ()  # a passing one is recorded by whoever decides
    with pytest.raises(PointerMoved):
        registry.move(replace(move(Rollout(), Rollout(stable=V2, revision=1)), decision=forced))
    with pytest.raises(NotFound):
        registry.move(replace(move(first, Rollout(stable=V2, canary=V3, revision=2)), decision=forced))
    assert registry.decisions(V2) == ()
    second, third = Rollout(V1, V2, 0.1, revision=2, began=2), Rollout(V1, V2, 0.2, revision=3, began=2)
    registry.move(replace(move(first, second), decision=forced))
    registry.move(replace(move(second, third), decision=forced))
    assert registry.decisions(V2) == (forced,)


def test_a_move_is_refused_when_its_version_was_decided_against_meanwhile(
    registry: IndexRegistry, tmp_path: Path
) -> None:
    publish(registry, tmp_path, V1)
    passed, failed = decision(V1, "r1"), decision(V1, "r2", Outcome.FAIL)
    registry.record(passed)
    first = replace(move(Rollout(), Rollout(stable=V1, revision=1)), decision=passed)
    registry.record(failed)
    with pytest.raises(NotAdmitted, match=rf"{V1} was decided about again at .* \(FAIL\)"):
        registry.move(first)
    assert (registry.rollout(), registry.ledger()) == (Rollout(), ())
    registry.record(replace(failed, binding=replace(failed.binding, dataset="another")))  # about something else
    registry.record(decision(V1, "r3"))
    registry.move(first)
    assert registry.rollout().stable == V1


def test_every_move_is_in_the_ledger_as_it_was_made(registry: IndexRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V1, V2)
    pointers = [Rollout(), Rollout(stable=V1, revision=1), Rollout(V1, V2, 0.05, None, 2, began=2, auto=True)]
    made = [
        replace(move(pointers[0], pointers[1], "Zoë", "a first one: ü\n"), decision=decision(V1)),
        replace(move(pointers[1], pointers[2]), verb=Verb.CANARY, noticed_at="2026-01-31T11:59:59.500+00:00"),
    ]
    assert registry.ledger() == ()
    for i, each in enumerate(made, 1):
        registry.move(each)
        assert registry.ledger() == tuple(made[:i])


def test_a_move_that_is_refused_or_moves_nothing_leaves_no_line(registry: IndexRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V1)
    first = Rollout(stable=V1, revision=1)
    registry.move(move(Rollout(), first))
    with pytest.raises(PointerMoved):
        registry.move(move(Rollout(), first))
    with pytest.raises(NotFound):
        registry.move(move(first, Rollout(stable=V2, previous=V1, revision=2)))
    registry.move(move(first, first))
    assert [each.after.revision for each in registry.ledger()] == [1]


def test_who_comes_too_late_is_told_who_moved_the_pointer(registry: IndexRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V1, V2)
    registry.move(move(Rollout(), Rollout(stable=V1, revision=1), "the night shift"))
    with pytest.raises(
        PointerMoved,
        match=f"the night shift made a promote move at 2026-01-31T12:00:00.000\\+00:00, "
        f"from nothing stable, no canary to stable {V1}, no canary",
    ):
        registry.move(move(Rollout(), Rollout(stable=V2, revision=1), "the day shift"))


def test_the_clock_may_go_backwards(registry: IndexRegistry, tmp_path: Path) -> None:
    registry.publish(staged(tmp_path, V1), version(V1, "2999-01-01T00:00:00+00:00"))
    registry.publish(staged(tmp_path, V2), version(V2, "1999-01-01T00:00:00+00:00"))
    first, second = Rollout(stable=V1, revision=1), Rollout(stable=V2, previous=V1, revision=2)
    registry.move(replace(move(Rollout(), first), at="2999-01-02T00:00:00.000+00:00"))
    registry.move(replace(move(first, second), at="1999-01-02T00:00:00.000+00:00"))
    assert [(each.after.revision, each.at[:4]) for each in registry.ledger()] == [(1, "2999"), (2, "1999")]
    assert [there.id for there in registry.versions()] == [V2, V1]


def test_a_canary_can_be_left_although_stable_is_gone(registry: IndexRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V1, V2)
    first, second = Rollout(stable=V1, revision=1), Rollout(V1, V2, 0.05, revision=2, began=2)
    registry.move(move(Rollout(), first))
    registry.move(move(first, second))
    lose(registry, V1)
    registry.move(move(second, Rollout(stable=V1, revision=3)))
    assert registry.rollout() == Rollout(stable=V1, revision=3)


def lose(registry: IndexRegistry, id: str) -> None:
    """Somebody deletes the version's folder by hand."""
    if isinstance(registry, MemoryRegistry):
        registry.lose(id)
    elif isinstance(registry, S3Registry):
        registry.objects.delete(f"versions/{id}.json")
    else:
        shutil.rmtree(registry.folder(id))


def test_a_removed_version_is_gone_and_its_decisions_stay(registry: IndexRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V1, V2)
    registry.record(decision(V1))
    registry.remove(V1)
    assert [there.id for there in registry.versions()] == [V2]
    with pytest.raises(NotFound, match=f"there are: {V2}"):
        registry.folder(V1)
    with pytest.raises(NotFound):
        registry.remove(V1)
    with pytest.raises(NotFound):
        registry.move(move(Rollout(), Rollout(stable=V1, revision=1)))
    assert registry.publish(staged(tmp_path, "again"), version(V1)) is True
    assert registry.decisions(V1) == (decision(V1),)


def test_what_the_pointer_names_is_not_removed(registry: IndexRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V1, V2, V3)
    registry.move(move(Rollout(), Rollout(stable=V2, canary=V3, share=0.1, previous=V1, revision=1)))
    for id, role in ((V1, "what a rollback goes back to"), (V2, "stable"), (V3, "the canary")):
        with pytest.raises(BadRequest, match=f"{id} is {role} and stays"):
            registry.remove(id)
    assert len(registry.versions()) == 3


def test_a_version_is_what_its_name_says_until_it_is_changed(registry: IndexRegistry, tmp_path: Path) -> None:
    built = genuine(tmp_path)
    registry.publish(tmp_path / "genuine" / "versions" / built.id, built)
    registry.verify(built.id)
    if isinstance(registry, MemoryRegistry):
        registry.altered.add(built.id)
    else:
        with (registry.folder(built.id) / "chunks.jsonl").open("ab") as file:
            file.write(b" ")
    with pytest.raises(StorageError, match=f"{built.id} is not what was published"):
        registry.verify(built.id)
    with pytest.raises(NotFound):
        registry.verify(V1)


def test_a_manifest_that_was_changed_is_seen_without_reading_the_rest(registry: IndexRegistry, tmp_path: Path) -> None:
    built = genuine(tmp_path)
    registry.publish(tmp_path / "genuine" / "versions" / built.id, built)
    registry.check(built.id)
    if isinstance(registry, MemoryRegistry):
        registry.altered.add(built.id)
    else:
        path = registry.folder(built.id) / "manifest.json"
        path.write_bytes(path.read_bytes().replace(b"chunks", b"chonks"))
    with pytest.raises(StorageError, match=f"{built.id} is not what was published"):
        registry.check(built.id)


def spoil(registry: IndexRegistry, id: str) -> None:
    """What is said of the version can no longer be read."""
    if isinstance(registry, MemoryRegistry):
        registry.spoilt.add(id)
    elif isinstance(registry, S3Registry):
        registry.objects.put(f"versions/{id}.json", b'{"stage"')
    else:
        (registry.folder(id) / "version.json").write_bytes(b'{"id"')


def test_a_damaged_version_is_told_of_stands_in_nobodys_way_and_can_be_removed(
    registry: IndexRegistry, tmp_path: Path
) -> None:
    publish(registry, tmp_path, V1, V2)
    first = Rollout(stable=V2, revision=1)
    spoil(registry, V1)
    assert [there.id for there in registry.versions()] == [V2]
    assert list(registry.damaged()) == [V1]
    assert "damaged" in registry.damaged()[V1]
    assert registry.publish(staged(tmp_path, V3), version(V3)) is True
    registry.record(decision(V2))
    registry.move(move(Rollout(), first))
    with pytest.raises(StorageError, match="damaged"):
        registry.publish(staged(tmp_path, "again"), version(V1))
    registry.remove(V1)
    assert registry.damaged() == {}
    assert registry.publish(staged(tmp_path, "once more"), version(V1)) is True


def test_a_registry_in_which_nothing_was_killed_has_no_leftovers(registry: IndexRegistry, tmp_path: Path) -> None:
    assert registry.leftovers() == ()
    publish(registry, tmp_path, V1, V2)
    registry.remove(V1)
    assert (registry.leftovers(), registry.clear_leftovers()) == ((), ())
    assert [there.id for there in registry.versions()] == [V2]


def genuine(tmp_path: Path) -> IndexVersion:
    """A version of one document, built below `genuine`."""
    gate = Document("a", "", "The gate opens at high water.", "", "", "", frozenset({"staff"}), "harbour", "")
    elsewhere = FolderRegistry(tmp_path / "genuine")
    return build([gate], embedder=HashingEmbedder(8), registry=elsewhere, staging=tmp_path / "staging").version


# ---------------------------------------------------------------------------------------------- documents


def test_documents_are_forgotten_and_restored_and_twice_is_the_same(registry: IndexRegistry) -> None:
    registry.tombstone(["a", "b"])
    registry.tombstone(["b", "c/ü ?.md"])
    assert registry.tombstones() == frozenset({"a", "b", "c/ü ?.md"})
    for _ in range(2):
        registry.restore(["a", "never there"])
        assert registry.tombstones() == frozenset({"b", "c/ü ?.md"})


def test_the_readers_of_a_document_are_set_replaced_and_taken_back(registry: IndexRegistry) -> None:
    assert dict(registry.access()) == {}
    registry.set_access("a", frozenset({"hr", "Hr"}))
    registry.set_access("b", frozenset())  # nobody, which is not the same as "as it was built"
    registry.set_access("a", frozenset({"staff"}))
    assert dict(registry.access()) == {"a": frozenset({"staff"}), "b": frozenset()}
    for _ in range(2):
        registry.set_access("a", None)
        assert dict(registry.access()) == {"b": frozenset()}


def test_tombstones_and_readers_outlive_the_versions(registry: IndexRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V1)
    registry.tombstone(["a"])
    registry.set_access("b", frozenset({"hr"}))
    registry.remove(V1)
    publish(registry, tmp_path, V2)
    assert (registry.tombstones(), dict(registry.access())) == (frozenset({"a"}), {"b": frozenset({"hr"})})


def test_every_change_of_documents_is_on_record_in_order(registry: IndexRegistry) -> None:
    assert registry.changes() == ()
    made = (
        DocumentChange(Amendment.FORGET, "2026-01-31T12:00:00+00:00", "Zoë", ("a", "b"), None, "a request: ü\n"),
        DocumentChange(Amendment.READERS, "2026-01-31T11:00:00+00:00", "a test", ("a",), ("hr",)),
        DocumentChange(Amendment.READERS, "2026-01-31T11:00:00+00:00", "a test", ("a",), ()),
        DocumentChange(Amendment.RESTORE, "2026-01-31T11:00:00+00:00", "a test", ("b",)),
    )
    for i, each in enumerate(made, 1):
        registry.note_change(each)
        assert registry.changes() == made[:i]


def test_of_racing_changes_of_documents_none_is_lost(registry: IndexRegistry) -> None:
    racers = 6
    start = Barrier(racers)

    def change(racer: int) -> None:
        start.wait()
        for i in range(3):
            registry.tombstone([f"gone-{racer}-{i}"])
            registry.set_access(f"read-{racer}-{i}", frozenset({f"g{racer}"}))

    with ThreadPoolExecutor(racers) as pool:
        list(pool.map(change, range(racers)))
    each = [(racer, i) for racer in range(racers) for i in range(3)]
    assert registry.tombstones() == {f"gone-{racer}-{i}" for racer, i in each}
    assert dict(registry.access()) == {f"read-{racer}-{i}": frozenset({f"g{racer}"}) for racer, i in each}


# ---------------------------------------------------------------------------------------------- races


def test_of_many_racing_moves_exactly_one_wins_each_revision(registry: IndexRegistry, tmp_path: Path) -> None:
    publish(registry, tmp_path, V1, V2, V3)
    racers, rounds = 6, 8
    start = Barrier(racers)

    def race(seed: int) -> list[Rollout]:
        rng = random.Random(seed)
        won: list[Rollout] = []
        start.wait()
        while (current := registry.rollout()).revision < rounds:
            wanted = replace(
                current, stable=rng.choice([V1, V2, V3]), share=round(rng.random(), 6), revision=current.revision + 1
            )
            try:
                registry.move(move(current, wanted))
            except PointerMoved:
                continue
            won.append(wanted)
        return won

    with ThreadPoolExecutor(racers) as pool:
        won = [pointer for pointers in pool.map(race, range(racers)) for pointer in pointers]
    # A thread that read revision 7 may still win revision 8, and nobody goes on from there.
    assert sorted(pointer.revision for pointer in won) == list(range(1, rounds + 1))
    assert registry.rollout() == max(won, key=lambda pointer: pointer.revision)


def test_of_many_racing_publishers_exactly_one_made_the_version(registry: IndexRegistry, tmp_path: Path) -> None:
    folders = [staged(tmp_path, f"s{i}") for i in range(6)]
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda folder: registry.publish(folder, version(V1)), folders))
    assert sorted(made) == [False] * 5 + [True]
    assert len(registry.versions()) == 1
