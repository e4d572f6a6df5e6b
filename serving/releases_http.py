"""Releases over HTTP: the state of the rollout for readers, its reasons and its moves for who shows the admin key.

The key travels in a header that no page of another site can make a browser send. What a move demands is said in
domain/releasing.py, and nothing here may skip it; what the replies look like is rollout_wire.py.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from domain.canary import Advice
from domain.errors import Forbidden, StorageError, TidegateError
from domain.releases import Evidence, Move, Rollout
from domain.releasing import Releases
from domain.rollout import moved_meanwhile
from serving import schemas
from serving.admission import is_operator, operator
from serving.edge import json_response, read_body
from serving.pointer import Pointer
from serving.rollout_wire import for_reader, read_records, rollout_json
from serving.service import Service
from serving.wire import Json

LIVE_S = 1.0  # how old the evidence may be: weighing it again for every page that looks helps nobody

Live = tuple[Evidence, Advice] | None


def release_routes(service: Service, pointer: Pointer) -> list[Route]:
    """The routes of a rollout."""
    of = _Releases(service, pointer)
    return [
        Route("/v1/rollout", of.rollout),
        Route("/v1/rollout/canary", of.canary, methods=["POST"]),
        Route("/v1/rollout/promote", of.promote, methods=["POST"]),
        Route("/v1/rollout/rollback", of.rollback, methods=["POST"]),
    ]


class _Releases:
    """The endpoints over one Service."""

    def __init__(self, service: Service, pointer: Pointer) -> None:
        self.service, self.pointer = service, pointer
        self.live: Live = None
        self.live_error = ""
        self.looked_at = -LIVE_S
        self.looking = asyncio.Lock()

    async def rollout(self, request: Request) -> Response:
        """Pointer, ledger, decisions and live evidence, as they are now; who and why for the operator alone."""
        if is_operator(request, self.service):
            return json_response(await self._told())
        self.service.authenticate(request.headers)
        return json_response(for_reader(await self._told()))

    async def canary(self, request: Request) -> Response:
        """Begins a canary, or gives the one there is a larger share."""
        raw = await self._admitted(request)
        body = schemas.read_canary(raw, self.service.limits)
        share = self.service.canary_share if body.share is None else body.share

        def move(releases: Releases) -> Rollout:
            who, current = _who(request), releases.registry.rollout()
            if body.share is not None and current.canary == body.version:
                return releases.widen(share, who, body.reason, expected=current, force=body.force)
            return releases.begin(body.version, share, who, auto=body.auto, reason=body.reason, force=body.force)

        return await self._moved(move)

    async def promote(self, request: Request) -> Response:
        """Makes a version stable for everybody."""
        body = schemas.read_promotion(await self._admitted(request), self.service.limits)

        def move(releases: Releases) -> Rollout:
            shown = _as_shown(releases, body.revision)
            return releases.promote(body.version, _who(request), body.reason, expected=shown, force=body.force)

        return await self._moved(move)

    async def rollback(self, request: Request) -> Response:
        """Leaves the canary, or goes back to an earlier version."""
        body = schemas.read_rollback(await self._admitted(request), self.service.limits)

        def move(releases: Releases) -> Rollout:
            shown = _as_shown(releases, body.revision)
            return releases.roll_back(_who(request), body.reason, to=body.to, expected=shown)

        return await self._moved(move)

    async def _admitted(self, request: Request) -> bytes:
        """The body of a request that shows the admin key; it is not even read for another one."""
        await operator(request, self.service)
        return await read_body(request, self.service.limits)

    async def _moved(self, move: Callable[[Releases], Rollout]) -> Response:
        releases = self.service.releases
        if releases is None:
            raise Forbidden("This service cannot move the pointer: use the command line on its machine.")
        await asyncio.to_thread(move, releases)
        self.pointer.forget()
        self.looked_at = -LIVE_S
        return json_response(await self._told())

    async def _told(self) -> Json:
        records = await asyncio.to_thread(read_records, self.service.registry)
        live = await self._live()
        trouble = {"evidence_error": self.service.naming.scrub(self.live_error)} if self.live_error else {}
        return rollout_json(records, live, self.service.naming) | trouble

    async def _live(self) -> Live:
        """What is known live, looked at again at most every second."""
        if self.service.live is None:
            return None
        async with self.looking:
            if monotonic() - self.looked_at >= LIVE_S:
                try:
                    self.live, self.live_error = await asyncio.to_thread(self.service.live), ""
                except Exception as error:  # told in the reply: whoever looks may have to act without it
                    ours = isinstance(error, TidegateError)
                    bug = "" if ours else f"This is a bug in Tidegate: {type(error).__name__}: "
                    self.live, self.live_error = None, f"{bug}{error}"
                self.looked_at = monotonic()
        return self.live


def _as_shown(releases: Releases, revision: int | None) -> Rollout | None:
    """The pointer in force, None when no revision is asked for. Raises PointerMoved when it is at another one: a canary
    that was turned back while somebody read that it was well is not promoted by their late click.
    """
    if revision is None:
        return None
    current = releases.registry.rollout()
    if current.revision != revision:
        last: Sequence[Move] = ()
        with suppress(StorageError):  # a damaged record must not hide that the pointer moved
            last = releases.registry.ledger()[-1:]
        raise moved_meanwhile(replace(current, revision=revision), current, last[0] if last else None)
    return current


def _who(request: Request) -> str:
    return f"admin over HTTP ({request.state.request_id})"
