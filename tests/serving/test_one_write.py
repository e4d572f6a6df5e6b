"""A reply leaves the gateway in one piece, over a real uvicorn and a real socket."""

import asyncio
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from serving.one_write import OneWrite


async def plain(_: Request) -> Response:
    return PlainTextResponse("x" * 1000)


async def streamed(_: Request) -> Response:
    async def pieces():
        yield "first "
        await asyncio.sleep(0.05)
        yield "second"

    return StreamingResponse(pieces())


async def empty(_: Request) -> Response:
    return Response(status_code=204)


async def first_reads(path: str, times: int, *, close: bool = False) -> list[bytes]:
    """What the first read on the socket gave, for every one of some requests, with the reply read to its end."""
    app = OneWrite(Starlette(routes=[Route("/plain", plain), Route("/streamed", streamed), Route("/empty", empty)]))
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    reads: list[bytes] = []
    try:
        for _ in range(times):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(f"GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode())
            reads.append(await reader.read(65536))
            await reader.read()
            writer.close()
            await writer.wait_closed()
    finally:
        server.should_exit = True
        await serving
        listener.close()
    return reads


async def test_head_and_body_arrive_together() -> None:
    for read in await first_reads("/plain", 20):
        head, _, body = read.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert body == b"x" * 1000


async def test_a_stream_keeps_its_rhythm_after_the_first_piece() -> None:
    [read] = await first_reads("/streamed", 1)
    assert b"first " in read
    assert b"second" not in read


async def test_a_reply_without_a_body_is_sent_too() -> None:
    [read] = await first_reads("/empty", 1)
    assert read.startswith(b"HTTP/1.1 204")


async def test_without_uvicorn_below_nothing_changes() -> None:
    sent = []

    async def send(message: object) -> None:
        sent.append(message)

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "GET", "path": "/plain", "headers": [], "query_string": b""}
    await OneWrite(PlainTextResponse("here"))(scope, receive, send)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
