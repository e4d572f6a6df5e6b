"""The pointer as the gateway sees it: read seldom, kept when the registry is away, followed when it moves."""

import asyncio
import threading

import pytest

from domain.errors import NotFound, NotReady, StorageError
from domain.releases import Rollout
from serving.pointer import Pointer
from tests.serving.service import FakeRegistry, soon


def pointer(registry: FakeRegistry, *, pinnable: bool = False) -> tuple[Pointer, list[float]]:
    """A pointer good for one second of a clock that stands still until it is moved."""
    now = [0.0]
    return Pointer(registry, lambda: now[0], 1.0, pinnable), now  # type: ignore[arg-type]  # two methods are read


async def test_the_registry_is_read_once_a_second() -> None:
    registry = FakeRegistry()
    seen, now = pointer(registry)
    for moment in (0.0, 0.5, 0.99):
        now[0] = moment
        await seen.rollout()
    assert registry.reads == 1
    registry.pointer, now[0] = Rollout("v2", revision=2), 1.5
    assert (await seen.rollout()).stable == "v2"
    assert registry.reads == 2


async def test_a_registry_that_was_never_readable_is_an_error_and_one_that_was_is_not() -> None:
    registry = FakeRegistry(error=StorageError("The disk is away."))
    seen, now = pointer(registry)
    with pytest.raises(StorageError):
        await seen.rollout()
    registry.error, now[0] = None, 2.0
    await seen.rollout()
    registry.error, now[0] = StorageError("The disk is away."), 4.0
    assert (await seen.rollout()).stable == "v1"


async def test_a_registry_that_is_away_is_logged_once_until_it_was_back(caplog: pytest.LogCaptureFixture) -> None:
    registry = FakeRegistry()
    seen, now = pointer(registry)
    await seen.rollout()
    registry.error = StorageError("The disk is away.")
    for now[0] in (2.0, 4.0):
        await seen.rollout()
    assert caplog.messages == ["The rollout pointer cannot be read (The disk is away.): the last one stays in force."]
    registry.error, now[0] = None, 6.0
    await seen.rollout()
    registry.error, now[0] = StorageError("The disk is away."), 8.0
    await seen.rollout()
    assert len(caplog.messages) == 2


async def test_requests_that_wake_a_quiet_gateway_together_share_one_read_and_all_see_the_move() -> None:
    registry = FakeRegistry()
    seen, now = pointer(registry)
    await seen.rollout()
    registry.pointer, now[0] = Rollout("v2", revision=2), 60.0
    assert [r.stable for r in await asyncio.gather(*(seen.rollout() for _ in range(5)))] == ["v2"] * 5
    assert registry.reads == 2


async def test_whoever_moved_the_pointer_sees_it_at_once() -> None:
    registry = FakeRegistry()
    seen, _ = pointer(registry)
    await seen.rollout()
    registry.pointer = Rollout("v2", revision=2)
    seen.forget()
    assert (await seen.rollout()).stable == "v2"


async def test_whoever_moved_the_pointer_while_it_was_being_read_has_it_read_again() -> None:
    class Moving(FakeRegistry):
        def rollout(self) -> Rollout:
            read = super().rollout()
            if self.reads == 1:
                self.pointer = Rollout("v2", revision=2)
                seen.forget()
            return read

    seen, _ = pointer(Moving())
    assert [(await seen.rollout()).stable for _ in range(3)] == ["v1", "v2", "v2"]


async def test_a_pointer_ages_from_when_its_reading_began() -> None:
    class Moving(FakeRegistry):
        def rollout(self) -> Rollout:
            read = super().rollout()
            now[0] += 0.75  # a slow disk
            self.pointer = Rollout("v2", revision=2)
            return read

    registry = Moving()
    seen, now = pointer(registry)
    assert (await seen.rollout()).stable == "v1"
    now[0] += 0.25
    assert (await seen.rollout()).stable == "v2"


async def test_a_slow_registry_holds_up_its_first_reader_for_a_moment_and_nobody_after() -> None:
    class Slow(FakeRegistry):
        def rollout(self) -> Rollout:
            if self.reads:
                hold.wait(2)
            return super().rollout()

    hold = threading.Event()
    registry = Slow()
    seen, now = pointer(registry)
    await seen.rollout()
    now[0] = 5.0
    assert (await seen.rollout()).stable == "v1"  # and not only when the registry answers
    async with asyncio.timeout(0.1):
        for _ in range(5):
            await seen.rollout()
    hold.set()
    assert await soon(lambda: registry.reads == 2)


async def test_sessions_go_where_the_pointer_says() -> None:
    seen, _ = pointer(FakeRegistry(Rollout("v1", "v2", 0.5)))
    versions = {(await seen.assign(f"s{i}", None))[0] for i in range(50)}
    assert versions == {"v1", "v2"}


async def test_nothing_admitted_is_not_ready_and_pins_are_checked() -> None:
    empty, _ = pointer(FakeRegistry(Rollout()))
    with pytest.raises(NotReady, match="tidegate up"):
        await empty.assign("s1", None)
    people, _ = pointer(FakeRegistry())
    with pytest.raises(NotFound, match="there are v1"):
        await people.assign("s1", "v0")
    measuring, _ = pointer(FakeRegistry(), pinnable=True)
    assert (await measuring.assign("s1", "v0"))[0] == "v0"
