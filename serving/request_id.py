"""The id of a request: the caller's own where it can be logged and sent back as it is, else a fresh one."""

from starlette.types import ASGIApp, Receive, Scope, Send

HEADER = b"x-request-id"
MAX_CHARS = 200


def chosen_id(scope: Scope) -> str:
    """The id that the caller chose; empty when there is none, several, or one that is long, odd or not ASCII."""
    values = [value for name, value in scope["headers"] if name == HEADER]
    text = values[0].decode("latin-1") if len(values) == 1 else ""
    return text if len(text) <= MAX_CHARS and text.isascii() and text.isprintable() else ""


class CleanRequestId:
    """ASGI middleware for outside Ray Serve's own, which logs and sends back whatever it is given."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs one request without the id that it should not have, so that it gets a fresh one."""
        if scope["type"] == "http" and not chosen_id(scope):
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] != HEADER]
        await self.app(scope, receive, send)
