"""Conversations between requests: what a client carries, or what a store remembers of it, becomes a Session, and the
answer's session goes back to both.

With a store the id alone is enough, and the id is then a key: whoever is no reader of that conversation, or comes when
it has expired, goes on under a new id and cannot tell which of the two it was. Stores are ports; the SQL one is
session_sql.py. What of a session is believed is domain/sessions.py.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from domain.errors import StorageError
from domain.ports import KeptSession, SessionStore
from domain.types import Answer, Done, Event, Scope, Session

UNKNOWN = "session: this id is not remembered for this reader (expired, or never was): it goes on under a new id"
OVERTAKEN = "session: another request of this conversation ended first, so this turn is not remembered"


class NoSessions:
    """The SessionStore that keeps nothing: the client carries the conversation."""

    keeps = False

    def load(self, session_id: str, scope: Scope, now_s: float) -> KeptSession | None:  # noqa: ARG002
        """None."""
        return None

    def save(self, session: Session, scope: Scope, revision: int, now_s: float) -> bool:  # noqa: ARG002
        """True: there is nothing that another request could have saved."""
        return True


@dataclass(frozen=True, slots=True)
class Resumed:
    """The session of one request, as it is answered from. `revision` is what the store had, 0 for nothing."""

    session: Session
    revision: int = 0
    notes: tuple[str, ...] = ()


class Conversations:
    """The sessions of one gateway over a store. `wall` gives seconds since 1970; what blocks runs on threads."""

    def __init__(self, store: SessionStore, wall: Callable[[], float], new_id: Callable[[], str]) -> None:
        self._store, self._wall, self._new_id = store, wall, new_id

    async def resume(self, carried: Session, scope: Scope, *, named: bool) -> Resumed:
        """The session to answer from: the store's where it knows one by this id, else what was carried.

        `named` is whether the client gave the id. One that the store does not know is replaced, so that nobody
        chooses an id that others could guess. Raises StorageError when the store cannot be read: a conversation that
        is there must not look like a new one.
        """
        if not self._store.keeps or not named:
            return Resumed(carried)
        kept = await asyncio.to_thread(self._store.load, carried.id, scope, self._wall())
        if kept is None:
            return Resumed(replace(carried, id=self._new_id()), notes=(UNKNOWN,))
        return Resumed(kept.session, kept.revision)

    async def remember(
        self, events: AsyncGenerator[Event, None], resumed: Resumed, scope: Scope
    ) -> AsyncGenerator[Event, None]:
        """The events of an answer; before the last one leaves, its session is saved. A turn that could not be saved is
        an answer all the same, and a note says so. Whoever leaves early, or fails, has said nothing to remember.
        """
        async with aclosing(events):
            async for event in events:
                yield Done(await self._kept(event.answer, resumed, scope)) if isinstance(event, Done) else event

    async def _kept(self, answer: Answer, resumed: Resumed, scope: Scope) -> Answer:
        notes = resumed.notes
        if self._store.keeps:
            try:
                saved = await asyncio.to_thread(self._store.save, answer.session, scope, resumed.revision, self._wall())
            except StorageError as error:
                notes = (*notes, f"session: this turn is not remembered ({error.code}); send the session along")
            else:
                notes = notes if saved else (*notes, OVERTAKEN)
        if not notes:
            return answer
        return replace(answer, trace=replace(answer.trace, notes=(*answer.trace.notes, *notes)))
