"""The registry on S3 when replies are lost, writers are many, processes die at any request and disks are small."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from domain.errors import NotFound, PointerMoved, StorageError
from domain.ports import IndexRegistry
from domain.releases import Move, Outcome, Rollout
from tests.contracts.test_index_registry import V1, V2, V3, decision, move, publish, staged, version
from tests.retrieval.coast import FIRST, SECOND, Coast, prepared
from tests.s3_server import DROPPED, LOST, Asked, S3Server


@pytest.fixture
def coast(s3_server: S3Server, tmp_path: Path) -> Coast:
    return Coast(s3_server, tmp_path)


# ---------------------------------------------------------------------------------------------- what is done

FORCED = replace(decision(V2, "forced", Outcome.FAIL), forced="an incident")


def publish_new(registry: IndexRegistry, path: Path) -> None:
    shutil.rmtree(path / "staging", ignore_errors=True)
    registry.publish(staged(path, "new", "of a new version"), version("v00000000000a"))


OPERATIONS: dict[str, Callable[[IndexRegistry, Path], None]] = {
    "publish": publish_new,
    "record": lambda registry, path: registry.record(decision(V1, "r2")),
    "move": lambda registry, path: registry.move(replace(move(FIRST, SECOND), decision=FORCED)),
    "remove": lambda registry, path: registry.remove(V3),
    "tombstone": lambda registry, path: registry.tombstone(["a"]),
}


def known(registry: IndexRegistry) -> tuple[Any, ...]:
    """All that anybody can learn of a registry."""
    versions = registry.versions()
    decisions = [registry.decisions(each.id) for each in versions]
    return (
        versions,
        decisions,
        registry.rollout(),
        chain(registry),
        registry.tombstones(),
        dict(registry.access()),
    )


def chain(registry: IndexRegistry) -> tuple[Move, ...]:
    moves = registry.ledger()
    assert [each.before for each in moves] == [Rollout(), *(each.after for each in moves)][:-1]
    assert (moves[-1].after if moves else Rollout()) == registry.rollout()
    return moves


@pytest.fixture
def before(coast: Coast, tmp_path: Path) -> Coast:
    """A prepared bucket, to be copied."""
    prepared(coast, tmp_path)
    return coast


def after(name: str, before: Coast, path: Path) -> tuple[tuple[Any, ...], int]:
    """What is known when nothing went wrong, and how many requests that takes."""
    coast = before.copied(path / "undisturbed")
    registry = coast.registry("other")
    with coast.server.fault(lambda _: None):
        OPERATIONS[name](registry, path)
        count = len(coast.server.requests)
    return known(coast.registry()), count


# ---------------------------------------------------------------------------------------------- lost, dropped


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_lost_reply_to_any_request_changes_nothing(name: str, before: Coast, tmp_path: Path) -> None:
    wanted, count = after(name, before, tmp_path)
    for nth in range(1, count + 1):
        coast = before.copied(tmp_path / str(nth))
        with coast.server.fault(lambda asked, nth=nth: LOST if asked.nth == nth else None):
            OPERATIONS[name](coast.registry("other"), tmp_path)
        assert known(coast.registry()) == wanted, nth


def lost_writes(asked: Asked) -> str | None:
    return LOST if asked.conditional else None


def test_a_conditional_write_whose_reply_is_lost_for_good_is_known_to_have_happened(
    coast: Coast, tmp_path: Path
) -> None:
    prepared(coast, tmp_path)
    registry = coast.registry(attempts=1)
    with coast.server.fault(lost_writes):
        registry.record(decision(V1, "r2"))
        registry.move(replace(move(FIRST, SECOND), decision=FORCED))
        registry.tombstone(["a"])
    assert (registry.rollout(), registry.tombstones()) == (SECOND, frozenset({"a"}))
    assert registry.decisions(V1) == (decision(V1, "r2"),)
    assert registry.decisions(V2) == (FORCED,)
    assert [each.after for each in chain(registry)] == [FIRST, SECOND]


def test_a_move_whose_reply_was_lost_is_known_although_somebody_moved_on_meanwhile(
    coast: Coast, tmp_path: Path
) -> None:
    prepared(coast, tmp_path)
    third = Rollout(stable=V2, previous=V1, revision=3)
    moved: list[bool] = []

    def lost_and_overtaken(asked: Asked) -> str | None:
        if moved:
            return None
        if asked.method == "PUT" and asked.key.endswith("rollout.json"):
            return LOST
        if (
            asked.method == "GET"
            and asked.key.endswith("rollout.json")
            and any(each.method == "PUT" and each.key.endswith("rollout.json") for each in coast.server.requests)
        ):
            moved.append(True)  # between the write and the look whether it arrived
            coast.registry("faster").move(move(SECOND, third, "somebody faster"))
        return None

    with coast.server.fault(lost_and_overtaken):
        coast.registry(attempts=1).move(move(FIRST, SECOND, "us"))
    assert moved
    assert [(each.who, each.after) for each in chain(coast.registry())[1:]] == [
        ("us", SECOND),
        ("somebody faster", third),
    ]


def test_who_lost_is_not_told_that_he_won_when_the_reply_is_lost_too(coast: Coast, tmp_path: Path) -> None:
    prepared(coast, tmp_path)
    other = replace(SECOND, share=0.5)
    raced: list[bool] = []

    def overtaken(asked: Asked) -> str | None:
        if asked.method == "PUT" and asked.key.endswith("rollout.json") and not raced:
            raced.append(True)
            coast.registry("faster").move(move(FIRST, other, "somebody faster"))
            return LOST
        return None

    with coast.server.fault(overtaken), pytest.raises(PointerMoved, match="somebody faster"):
        coast.registry(attempts=1).move(move(FIRST, SECOND, "us"))
    assert coast.registry().rollout() == other


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", OPERATIONS)
def test_whoever_dies_before_any_request_leaves_the_old_or_the_new_and_the_next_command_works(
    name: str, before: Coast, tmp_path: Path
) -> None:
    (wanted, count), was = after(name, before, tmp_path), known(before.registry())
    for nth in range(1, count + 1):
        coast = before.copied(tmp_path / str(nth))
        # From some request on none arrives: to the bucket that is the same as a process that was killed. Of some
        # operations the last requests only put on record once more what has happened.
        with coast.server.fault(lambda asked, nth=nth: DROPPED if asked.nth >= nth else None), suppress(StorageError):
            OPERATIONS[name](coast.registry("dead", attempts=1), tmp_path)
        between = known(coast.registry())
        assert all(now in (old, new) for now, old, new in zip(between, was, wanted, strict=True)), nth
        again(name, coast, tmp_path)
        assert known(coast.registry())[2:] == wanted[2:], nth
        coast.registry(hours=25).clear_leftovers()
        left = {key for key in coast.there() if key.startswith("files/")}
        assert {key.split("/")[1] for key in left} == {each.id for each in coast.registry().versions()}
        for each in coast.registry().versions():
            coast.registry("fresh").folder(each.id)


def again(name: str, coast: Coast, path: Path) -> None:
    registry = coast.registry("again")
    try:
        OPERATIONS[name](registry, path)
    except PointerMoved:
        assert name == "move"
    except NotFound:
        assert name == "remove"


def test_a_removal_that_a_move_overtook_leaves_the_version(coast: Coast, tmp_path: Path) -> None:
    prepared(coast, tmp_path)
    moved: list[bool] = []

    def overtaken(asked: Asked) -> None:
        """Just before the version's object says that it leaves, somebody makes the version a canary."""
        if asked.method == "PUT" and asked.key.endswith(f"versions/{V2}.json") and not moved:
            moved.append(True)
            coast.registry("faster").move(move(FIRST, SECOND))

    with coast.server.fault(overtaken), pytest.raises(Exception, match="is the canary and stays"):
        coast.registry().remove(V2)
    assert moved
    assert coast.registry("fresh").folder(V2).is_dir()


def test_a_move_that_a_removal_overtook_is_refused(coast: Coast, tmp_path: Path) -> None:
    prepared(coast, tmp_path)
    removed: list[bool] = []

    def overtaken(asked: Asked) -> None:
        if asked.method == "PUT" and asked.key.endswith("rollout.json") and not removed:
            removed.append(True)
            coast.registry("faster").remove(V2)

    with coast.server.fault(overtaken), pytest.raises(NotFound, match=V2):
        coast.registry().move(move(FIRST, SECOND))
    assert coast.registry().rollout() == FIRST


def test_a_move_that_a_decision_against_it_overtook_is_refused(coast: Coast, tmp_path: Path) -> None:
    prepared(coast, tmp_path)
    decided: list[bool] = []
    coast.registry().record(decision(V2))

    def overtaken(asked: Asked) -> None:
        if asked.method == "PUT" and asked.key.endswith("rollout.json") and not decided:
            decided.append(True)
            coast.registry("faster").record(decision(V2, "r2", Outcome.FAIL))

    with coast.server.fault(overtaken), pytest.raises(Exception, match="was decided about again"):
        coast.registry().move(replace(move(FIRST, SECOND), decision=decision(V2)))
    assert coast.registry().rollout() == FIRST


# ---------------------------------------------------------------------------------------------- this machine's copies


def fetched(server: S3Server) -> int:
    return sum("/files/" in asked.key and asked.method == "GET" for asked in server.requests)


def test_a_version_is_fetched_once_a_machine_and_not_at_all_where_it_was_built(coast: Coast, tmp_path: Path) -> None:
    publish(coast.registry("builder"), tmp_path, V1)
    with coast.server.fault(lambda _: None):
        coast.registry("builder").folder(V1)
        assert fetched(coast.server) == 0
        for _ in range(2):  # two processes of one machine
            coast.registry("other").folder(V1)
        assert fetched(coast.server) == 2  # it has two files


def test_what_has_not_changed_is_not_sent_again(coast: Coast, tmp_path: Path) -> None:
    prepared(coast, tmp_path)
    registry = coast.registry()
    registry.rollout()
    body = registry.objects.get("rollout.json")
    assert registry.objects.get("rollout.json") is body  # 304: the very same
    coast.registry("other").move(move(FIRST, SECOND))
    assert registry.rollout() == SECOND
