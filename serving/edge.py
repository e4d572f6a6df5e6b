"""The outermost layer of every request: its id, its size, its headers, its one error shape, its count and time.

Whatever leaves the service as an error leaves through here, scrubbed, so no endpoint formats one itself. A route for
other vendors' clients leaves in the request's state how errors look to those.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import orjson
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from domain.errors import BadRequest, StageFailed, TidegateError, TooLong
from domain.naming import Naming
from serving.request_id import chosen_id
from serving.schemas import Limits
from serving.statuses import CLIENT_GONE, retry_headers, status_of
from serving.telemetry import DISCONNECTS, REQUESTS, SECONDS, Telemetry
from serving.wire import FailureShape, failure_json

log = logging.getLogger("tidegate.serving")
T = TypeVar("T")

FAILURE_SHAPE = "failure_shape"  # of a request's state: how errors of its route look, where they do not look like ours


class ClientGone(Exception):
    """The client closed its connection before the reply: nobody is left to tell."""


class Edge:
    """ASGI middleware around everything. `echo_id` False leaves the response's request id to whoever is outside."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        naming: Naming,
        telemetry: Telemetry,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        echo_id: bool = True,
    ) -> None:
        self.app, self.naming, self.telemetry, self.clock, self.new_id = app, naming, telemetry, clock, new_id
        self.echo_id = echo_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs one request; every exception but cancellation ends here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = self.clock(), 0
        request_id = chosen_id(scope) or self.new_id()
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Content-Type-Options"] = "nosniff"
                if self.echo_id:
                    headers["X-Request-Id"] = request_id
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except (ClientGone, ClientDisconnect):
            self.telemetry.add(DISCONNECTS, 1)
            status = status or CLIENT_GONE
        except Exception as error:
            response = self.reply(error, request_id, scope["state"].get(FAILURE_SHAPE, failure_json))
            if status:  # the reply has begun: cutting it off is all that is left to do
                raise
            await response(scope, receive, send_with_headers)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.telemetry.add(REQUESTS, 1, route, str(status or CLIENT_GONE))
            self.telemetry.observe(SECONDS, self.clock() - started, route)

    def reply(self, error: Exception, request_id: str, shape: FailureShape = failure_json) -> Response:
        """The response an exception becomes. What is not ours is logged with the request id and shown as `internal`."""
        if isinstance(error, TidegateError):
            wait = error.retry_after_s if isinstance(error, StageFailed) else None
            status = status_of(type(error))
            field = self.naming.scrub(getattr(error, "field", ""))
            body = shape(error.code, self.naming.scrub(str(error)), error.retryable, request_id, field)
            return json_response(body, status, retry_headers(status, wait))
        if isinstance(error, HTTPException):
            code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "bad_request")
            said = {404: "There is nothing at this address: see the documentation for those there are."}
            message = said.get(error.status_code, f"{error.detail}.")
            return json_response(shape(code, message, False, request_id), error.status_code, error.headers)
        log.error("request %s failed", request_id, exc_info=error)
        message = "Something went wrong here that should not: the operator finds it in the log under this request id."
        return json_response(shape("internal", message, False, request_id), 500)


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response by orjson."""
    return Response(orjson.dumps(body), status, headers, "application/json")


async def read_body(request: Request, limits: Limits) -> bytes:
    """The request's body. Raises BadRequest for one that is not JSON by its own account, TooLong beyond the limit."""
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        # Not pedantry: a browser sends any other type to any address without asking, this one only after a preflight.
        raise BadRequest(f"Content-Type is {kind[:80]!r}: send application/json.", "Content-Type")
    return await read_up_to(request, limits.max_body_bytes, limits.body_timeout_s)


async def read_up_to(request: Request, most: int, within_s: float) -> bytes:
    """The request's body, whatever it is. Raises TooLong beyond `most` bytes, BadRequest when it does not arrive."""
    announced = request.headers.get("content-length", "")
    too_long = TooLong(f"The body is larger than {most:,} bytes: send less in one request.", "body")
    if announced.isdigit() and int(announced) > most:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(within_s):
            async for piece in request.stream():
                body += piece
                if len(body) > most:
                    raise too_long
    except TimeoutError as error:
        raise BadRequest(f"The body did not arrive within {within_s:g} s: send it at once.") from error
    return bytes(body)


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T:
    """The result of `work`. When the client leaves first, `work` is cancelled, waited for, and ClientGone raised."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
