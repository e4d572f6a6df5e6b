"""What every index registry promises."""

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from domain.errors import NotFound, PointerMoved
from domain.ports import IndexRegistry
from domain.releases import Binding, Decision, IndexVersion, Move, Outcome, Rollout, Verb, Verdict
from retrieval.registry import FolderRegistry

V1, V2, V3 = (f"v{i:012x}" for i in (1, 2, 3))

REGISTRIES: dict[str, Callable[[Path], IndexRegistry]] = {"folder": lambda path: FolderRegistry(path / "library")}


@pytest.fixture(params=sorted(REGISTRIES))
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> IndexRegistry:
    return REGISTRIES[request.param](tmp_path)


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
