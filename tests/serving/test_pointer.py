"""The pointer as the gateway sees it: read seldom, kept when the registry is away, followed when it moves."""

import asyncio
import threading
import time

import pytest

from domain.errors import NotFound, NotReady, StorageError
from domain.releases import Rollout
from serving.pointer import Pointer
from tests.serving.service import FakeRegistry


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


async def test_a_slow_registry_holds_up_one_reader_and_nobody_else() -> None:
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
    first = asyncio.create_task(seen.rollout())
    await asyncio.sleep(0.01)
    started = time.monotonic()
    assert (await seen.rollout()).stable == "v1"
    assert time.monotonic() - started < 0.5
    hold.set()
    await first


async def test_sessions_go_where_the_pointer_says() -> None:
    seen, _ = pointer(FakeRegistry(Rollout("v1", "v2", 0.5)))
    versions = {await seen.version_for(f"s{i}", None) for i in range(50)}
    assert versions == {"v1", "v2"}


async def test_nothing_admitted_is_not_ready_and_pins_are_checked() -> None:
    empty, _ = pointer(FakeRegistry(Rollout()))
    with pytest.raises(NotReady, match="tidegate up"):
        await empty.version_for("s1", None)
    people, _ = pointer(FakeRegistry())
    with pytest.raises(NotFound, match="there are v1"):
        await people.version_for("s1", "v0")
    measuring, _ = pointer(FakeRegistry(), pinnable=True)
    assert await measuring.version_for("s1", "v0") == "v0"
