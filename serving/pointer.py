"""The rollout pointer as the gateway sees it: read again at most every second, never on the way of a request twice."""

import asyncio
import logging
from collections.abc import Callable
from math import inf

from domain.errors import NotFound, NotReady, TidegateError
from domain.ports import IndexRegistry
from domain.releases import Rollout
from domain.rollout import assign

log = logging.getLogger("tidegate.serving")

PATIENCE_S = 0.25  # a registry in a folder is read in a few milliseconds


class Pointer:
    """A registry's pointer and version names, at most `ttl_s` seconds old.

    A registry that cannot be read is logged and leaves the last pointer in force: a storage hiccup must not take
    answers down.
    """

    def __init__(self, registry: IndexRegistry, clock: Callable[[], float], ttl_s: float, pinnable: bool) -> None:
        self._registry, self._clock, self._ttl_s, self._pinnable = registry, clock, ttl_s, pinnable
        self._rollout: Rollout | None = None
        self._versions: frozenset[str] = frozenset()
        self._read_at = 0.0
        self._moved = False  # by this process, since the last reading began
        self._told = ""
        self._reading: asyncio.Task[None] | None = None
        self._late = False

    async def rollout(self) -> Rollout:
        """The pointer. Raises what the registry raises when it could never be read."""
        if self._rollout is None:
            await self._read()
        elif self._clock() - self._read_at >= self._ttl_s:
            await self._read_again()
        if self._rollout is None:
            raise RuntimeError("The pointer was read and is not there: this is a bug in serving/pointer.py.")
        return self._rollout

    async def assign(self, session_id: str, pinned: str | None) -> tuple[str, Rollout]:
        """The version of a session, or the pinned one, and the pointer by which it was chosen.

        Raises NotReady before the first promotion, NotFound after it for a version that is not there.
        """
        rollout = await self.rollout()
        if pinned is not None:
            await self._check_may_be_pinned(pinned, rollout)
            return pinned, rollout
        version = assign(rollout, session_id)
        if version is None:
            raise NotReady("No index version is admitted yet: run `tidegate up`, or promote one.", "index")
        return version, rollout

    def forget(self) -> None:
        """Have the pointer read again by whoever needs it next: this process has just moved it."""
        self._read_at, self._moved = -inf, True

    async def _read_again(self) -> None:
        """Waits a moment for one read that all requests share: a quiet gateway must not start with an old pointer, and
        a registry that hangs must not hold up anybody for long, or twice.
        """
        if self._reading is None:
            self._reading, self._late = asyncio.create_task(self._read()), False
        if not self._late:
            reading = self._reading
            await asyncio.wait((reading,), timeout=PATIENCE_S)
            self._late = not reading.done()
            if reading.done():
                reading.result()

    async def _read(self) -> None:
        began, self._moved = self._clock(), False  # what is read may move right after: its age counts from here
        try:
            self._rollout = await asyncio.to_thread(self._registry.rollout)
            self._told = ""
        except TidegateError as error:
            if self._rollout is None:
                raise
            if str(error) != self._told:  # once per new trouble: this is tried every second
                log.warning("The rollout pointer cannot be read (%s): the last one stays in force.", error)
            self._told = str(error)
        finally:
            self._read_at, self._reading = -inf if self._moved else began, None

    async def _check_may_be_pinned(self, version: str, rollout: Rollout) -> None:
        if version in (rollout.stable, rollout.canary) or (self._pinnable and version in self._versions):
            return
        if not self._pinnable:
            there = ", ".join(name for name in (rollout.stable, rollout.canary) if name) or "none yet"
            raise NotFound(f"Index version {version[:80]!r} is not served here: there are {there}.", "X-Index-Version")
        versions = await asyncio.to_thread(self._registry.versions)
        self._versions = frozenset(v.id for v in versions)
        if version not in self._versions:
            there = ", ".join(v.id for v in versions[-10:]) or "none yet"
            raise NotFound(f"Index version {version[:80]!r} does not exist: there are {there}.", "X-Index-Version")
