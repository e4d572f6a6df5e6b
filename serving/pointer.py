"""The rollout pointer as the gateway sees it: read again at most every second, never on the way of a request twice."""

import asyncio
import logging
from collections.abc import Callable

from domain.errors import NotFound, NotReady, TidegateError
from domain.ports import IndexRegistry
from domain.releases import Rollout
from domain.rollout import assign

log = logging.getLogger("tidegate.serving")


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
        self._told = ""
        self._reading = asyncio.Lock()

    async def rollout(self) -> Rollout:
        """The pointer. Raises what the registry raises when it could never be read."""
        if self._rollout is not None and (self._clock() - self._read_at < self._ttl_s or self._reading.locked()):
            return self._rollout
        async with self._reading:
            try:
                self._rollout = await asyncio.to_thread(self._registry.rollout)
                self._told = ""
            except TidegateError as error:
                if self._rollout is None:
                    raise
                if str(error) != self._told:  # once per new trouble: this is tried every second
                    log.warning("The rollout pointer cannot be read (%s): the last one stays in force.", error)
                self._told = str(error)
            self._read_at = self._clock()
        return self._rollout

    async def version_for(self, session_id: str, pinned: str | None) -> str:
        """The version of a session, or the pinned one. Raises NotReady before the first promotion, NotFound after."""
        if pinned is not None:
            await self._check_may_be_pinned(pinned)
            return pinned
        version = assign(await self.rollout(), session_id)
        if version is None:
            raise NotReady("No index version is admitted yet: run `tidegate up`, or promote one.", "index")
        return version

    async def _check_may_be_pinned(self, version: str) -> None:
        rollout = await self.rollout()
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
