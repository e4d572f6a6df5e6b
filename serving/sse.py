"""An answer as server-sent events: `meta`, `delta`, `citation`, then exactly one `done` or `error`.

The response begins with the first visible text, not before. Until then a failure is still an ordinary HTTP error with
its status and Retry-After, and a proxy may still send the question to another gateway when this one dies.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from domain.types import Cited, Done, Event, Failed, Started, TextDelta
from serving.edge import json_response, unless_gone
from serving.statuses import kind_of, retry_headers, status_of
from serving.wire import FailureShape, answer_json, citation_json, failed_json, failure_json, rewrite_json

log = logging.getLogger("tidegate.serving")

HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
KEEP_ALIVE = b": still working\n\n"


class EventStream(Response):
    """Streams the events of one answer. `headers_for` gives the headers known when the first of them is shown;
    `frame_of` and `shape` are how events and errors look to another vendor's client.

    A client that leaves cancels the answer upstream, also while it is silent.
    """

    def __init__(
        self,
        events: AsyncGenerator[Event, None],
        request_id: str,
        keep_alive_s: float,
        headers_for: Callable[[str], Mapping[str, str]],
        ended: Callable[[Done | Failed], None],
        frame_of: Callable[[Event], bytes] | None = None,
        shape: FailureShape = failure_json,
    ) -> None:
        self.events, self.request_id, self.keep_alive_s = events, request_id, keep_alive_s
        self.headers_for, self.ended, self.shape = headers_for, ended, shape
        self.frame_of = frame_of or partial(own_frame, request_id=request_id)
        self.begun = False
        self.version = ""
        self.background = None
        self.status_code = 200

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the whole stream, or an ordinary error when there is nothing to stream."""
        await unless_gone(receive, self._run(scope, receive, send))

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        held = b""  # `meta`, until there is something to show with it
        terminal: Done | Failed | None = None
        try:
            async for event in with_silence(self.events, self.keep_alive_s):
                if event is None:
                    await self._send(send, held + KEEP_ALIVE)
                    held = b""
                elif isinstance(event, Started):
                    self.version = event.version
                    held = self.frame_of(event)
                elif isinstance(event, Failed) and not self.begun:
                    terminal = event
                    await failed_response(event, self.request_id, shape=self.shape)(scope, receive, send)
                    break
                else:
                    await self._send(send, held + self.frame_of(event))
                    held = b""
                    if isinstance(event, Done | Failed):
                        terminal = event
                        break
            if terminal is None:
                raise RuntimeError("An answer ended without a terminal event: this is a bug in domain/answering.py.")
        except Exception:
            if not self.begun:
                raise
            log.exception("request %s failed while streaming", self.request_id)
            terminal = Failed("internal", "The answer broke off here: the operator finds why in the log.", True)
            await self._send(send, self.frame_of(terminal))
        finally:
            if terminal is not None:
                self.ended(terminal)
        if self.begun:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send, body: bytes) -> None:
        if not self.begun:
            self.begun = True
            headers = {**HEADERS, **self.headers_for(self.version)}
            raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
            await send({"type": "http.response.start", "status": 200, "headers": raw})
        await send({"type": "http.response.body", "body": body, "more_body": True})


async def with_silence(events: AsyncGenerator[Event, None], silence_s: float) -> AsyncGenerator[Event | None, None]:
    """The events, with a None whenever nothing came for `silence_s` seconds. Closing it closes them."""
    pending: asyncio.Future[Event] | None = None
    try:
        while True:
            if pending is None:
                pending = asyncio.ensure_future(anext(events))
            await asyncio.wait((pending,), timeout=silence_s)
            if not pending.done():
                yield None
                continue
            try:
                event = pending.result()
            except StopAsyncIteration:
                return
            pending = None
            yield event
    finally:
        if pending is not None and not pending.done():
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)
        await events.aclose()


def frame(name: str, payload: Any) -> bytes:  # Any: JSON
    """One server-sent event. JSON by orjson never holds a line end, so one data line is enough."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(payload))


def own_frame(event: Event, request_id: str) -> bytes:
    """An event as we write it."""
    if isinstance(event, TextDelta):
        return frame("delta", {"text": event.text})
    if isinstance(event, Cited):
        return frame("citation", citation_json(event.citation))
    if isinstance(event, Done):
        return frame("done", answer_json(event.answer))
    if isinstance(event, Failed):
        return frame("error", failed_json(event, request_id) | {"partial": event.partial})
    return frame("meta", _meta(event, request_id))


def _meta(event: Started, request_id: str) -> dict[str, Any]:
    rewrite = rewrite_json(event.rewrite)
    return {"trace_id": event.trace_id, "request_id": request_id, "index_version": event.version, "rewrite": rewrite}


def failed_response(
    failed: Failed, request_id: str, headers: Mapping[str, str] | None = None, shape: FailureShape = failure_json
) -> Response:
    """The reply to an answer that failed before anything of it was shown."""
    status = status_of(kind_of(failed))
    retry = retry_headers(status, failed.retry_after_s)
    return json_response(failed_json(failed, request_id, shape), status, {**(headers or {}), **retry})
