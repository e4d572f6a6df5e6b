"""Head and body of a reply in one write, so that a gateway dies before a reply or after it, never inside.

HAProxy sends a question to another gateway when one dies without having answered. uvicorn writes the head of a reply
and its body one after the other, and the first write wakes HAProxy: a gateway killed between the two leaves a head
without a body, which nobody can repair. This middleware stands directly above uvicorn and joins the two; the writing
object it borrows is uvicorn's own and not a public name, so where it is not found everything stays as it was.
"""

from typing import Any

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.request_id import CleanRequestId


class OneWrite:
    """ASGI middleware for the outermost place. Streams keep their rhythm after the first piece."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs one request with the first two messages of its reply joined."""
        reply: Any = getattr(send, "__self__", None)  # uvicorn's RequestResponseCycle
        if scope["type"] != "http" or not hasattr(reply, "transport"):
            await self.app(scope, receive, send)
            return
        head: Message | None = None

        async def send_joined(message: Message) -> None:
            nonlocal head
            if message["type"] == "http.response.start":
                head = message
                return
            if head is None:
                await send(message)
                return
            first, head = head, None
            wire = reply.transport
            joined = reply.transport = _Joined(wire)
            try:
                await send(first)
                await send(message)
            finally:
                reply.transport = wire
                joined.flush()

        await self.app(scope, receive, send_joined)


def middlewares() -> list[Middleware]:
    """What Ray Serve puts around the application in every gateway, innermost first; it knows this function by name."""
    return [Middleware(CleanRequestId), Middleware(OneWrite)]


class _Joined:
    """A transport that keeps what is written until it is asked for anything else."""

    def __init__(self, wire: Any) -> None:  # Any: asyncio.Transport
        self._wire, self._kept = wire, b""

    def write(self, piece: bytes) -> None:
        """Keeps a piece."""
        self._kept += piece

    def flush(self) -> None:
        """Writes everything kept at once."""
        kept, self._kept = self._kept, b""
        if kept:
            self._wire.write(kept)

    def __getattr__(self, name: str) -> Any:  # Any: whatever asyncio.Transport has
        self.flush()  # `close` and its like must come after what was written before them
        return getattr(self._wire, name)
