"""A Service over fakes, and clients for it: httpx2's for ordinary requests, a bare ASGI one for clients that leave."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import orjson
import uvicorn

from domain.naming import Naming
from domain.ports import Stages
from domain.releases import Decision, IndexVersion, Move, Rollout
from domain.types import Usage
from serving.api import create_app
from serving.auth import OpenTo
from serving.service import Service
from tests.fakes import PUBLIC, RULES, FakeRetriever, FakeRewriter, ScriptedGenerator, chunk, hits

TIDE = chunk("tides#0", "The gate opens at high water.", title="Tide table")
BELL = chunk("bells#0", "The bell rings twice a day.", title="Bell book")


@dataclass
class FakeRegistry:
    """Remembers a pointer; fails when told to."""

    pointer: Rollout = field(default_factory=lambda: Rollout(stable="v1", revision=1))
    ids: tuple[str, ...] = ("v0", "v1")
    error: Exception | None = None
    reads: int = 0

    def rollout(self) -> Rollout:
        self.reads += 1
        if self.error:
            raise self.error
        return self.pointer

    def versions(self) -> tuple[IndexVersion, ...]:
        return tuple(IndexVersion(i, None, "fixed", "a1", "hash-256", 2, 2, "2026-01-01T00:00:00Z") for i in self.ids)

    def ledger(self) -> tuple[Move, ...]:
        return ()

    def decisions(self, version: str) -> tuple[Decision, ...]:
        return ()


def service(**changes: Any) -> Service:
    """A Service whose library knows TIDE and BELL and whose generator cites the first of them."""
    stages = Stages(
        FakeRewriter(),
        FakeRetriever(hits(TIDE, BELL)),
        None,
        ScriptedGenerator(("The gate opens ", "at high water [S1]."), usage=Usage(10, 5)),
    )
    ids = iter(range(10_000))
    whole = Service(
        stages,
        RULES,
        Naming(()),
        FakeRegistry(),  # type: ignore[arg-type]  # the surface only reads the registry
        OpenTo(PUBLIC),
        new_id=lambda: f"id{next(ids)}",
    )
    stage_changes = {name: changes.pop(name) for name in Stages.__slots__ if name in changes}
    return replace(whole, stages=replace(stages, **stage_changes), **changes)


def client(of: Service) -> httpx2.AsyncClient:
    """An HTTP client of the application, without a socket in between."""
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=create_app(of)), base_url="http://tidegate")


async def post(of: Service, path: str, body: Any, **headers: str) -> httpx2.Response:
    """One JSON request. Bytes are sent as they are."""
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    named = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
    async with client(of) as http:
        return await http.post(path, content=content, headers=named)


async def get(of: Service, path: str, **headers: str) -> httpx2.Response:
    """One GET."""
    async with client(of) as http:
        return await http.get(path, headers=headers)


class Served:
    """An application on a real port, in this event loop."""

    def __init__(self, of: Service) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(create_app(of), log_level="error", lifespan="off"))

    async def __aenter__(self) -> str:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        return self.url

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        await self._task
        self._listener.close()


def events(text: str) -> list[tuple[str, Any]]:
    """(name, payload) of every server-sent event in a body; comments are left out."""
    frames = [f for f in text.split("\n\n") if f and not f.startswith(":")]
    pairs = [dict(line.split(": ", 1) for line in frame.split("\n")) for frame in frames]
    return [(pair["event"], orjson.loads(pair["data"])) for pair in pairs]


@dataclass
class Leaver:
    """A client over bare ASGI which reads as it likes and leaves when `leave` is called."""

    sent: list[dict[str, Any]] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    accept: bytes = b"*/*"
    _body_read: bool = False

    async def ask(self, of: Service, path: str, body: Any) -> None:
        """Runs the request to its end; what the application sends is in `sent`."""
        await self.ask_app(create_app(of), path, body)

    async def ask_app(self, app: Any, path: str, body: Any) -> None:
        """As `ask`, of an application that others use too."""
        self._body = orjson.dumps(body)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"content-type", b"application/json"), (b"host", b"tidegate"), (b"accept", self.accept)],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        await app(scope, self._receive, self._send)

    def leave(self) -> None:
        """Closes the connection."""
        self.left.set()

    async def _receive(self) -> dict[str, Any]:
        if not self._body_read:
            self._body_read = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def text(self) -> str:
        """Everything sent so far."""
        return b"".join(m.get("body", b"") for m in self.sent).decode()


@dataclass
class SilentGenerator:
    """Writes `pieces`, then nothing for a long time. `closed` says that somebody cancelled it."""

    pieces: tuple[str, ...] = ()
    started: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def generate(self, plan: Any) -> AsyncGenerator[Any, None]:
        from domain.types import Delta

        try:
            for piece in self.pieces:
                yield Delta(piece)
            self.started.set()
            await asyncio.sleep(3600)
        finally:
            self.closed.set()


async def soon(claim: Callable[[], bool], within_s: float = 2.0) -> bool:
    """True as soon as the claim holds, False when it does not within the time."""
    deadline = asyncio.get_running_loop().time() + within_s
    while not claim():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True
