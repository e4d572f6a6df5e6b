"""The client against small applications and sockets: what is an answer, what is a Failure, what is refused."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from domain.errors import BadRequest, ConfigError
from domain.types import Role, Scope, Turn
from eval.client import Client, Failure
from serving.address import free_port
from serving.auth import TrustedHeaders
from serving.service import Service
from tests.fakes import PUBLIC
from tests.serving.service import service as fake_service

ANSWER: dict[str, Any] = {
    "answer": "At nine [S1].",
    "status": "complete",
    "grounding": "grounded",
    "index_version": "v1",
    "citations": [{"marker": "S1", "doc_id": "d1", "title": "Tides", "quote": "High water is at nine."}],
    "consulted": [],
    "usage": {"input_tokens": 900, "output_tokens": 40, "cache_read_tokens": 0, "cache_write_tokens": 0},
}
FOUND = {"hits": [{"doc_id": "d1"}], "index_version": "v1"}
Reply = Callable[[Request], Response]


def app(reply: Reply) -> Starlette:
    async def endpoint(request: Request) -> Response:
        await request.body()
        return reply(request)

    return Starlette(routes=[Route("/v1/{what}", endpoint, methods=["POST"])])


def always(body: Any, status: int = 200) -> Starlette:
    """Answers every request with this: text as it is, anything else as JSON."""
    return app(lambda _: PlainTextResponse(body, status) if isinstance(body, str) else JSONResponse(body, status))


async def asked(of: Any, scope: Scope = PUBLIC, version: str | None = None) -> Any:
    async with Client.in_process(of, version) as client:
        return await client.ask("When?", scope)


async def searched(of: Any) -> Any:
    async with Client.in_process(of) as client:
        return await client.search("When?", 7, PUBLIC, rerank=False)


# ---------------------------------------------------------------------------------------------- what is sent


async def test_a_question_goes_out_with_its_history_reader_and_version() -> None:
    seen: list[tuple[str, Any, Any]] = []

    async def endpoint(request: Request) -> Response:
        seen.append((request.url.path, json.loads(await request.body()), request.headers))
        return JSONResponse(ANSWER if request.url.path == "/v1/answers" else FOUND)

    of = Starlette(routes=[Route("/v1/{what}", endpoint, methods=["POST"])])
    async with Client.in_process(of, "v1") as client:
        history = (Turn(Role.USER, "Is there a tide?"), Turn(Role.ASSISTANT, "Yes."))
        assert await client.ask("When?", Scope("harbour", frozenset({"staff", "public"})), history) == ANSWER
        assert await client.search("tide", 7, PUBLIC, rerank=True) == FOUND
    (answers, body, headers), (search, query, _) = seen
    assert (answers, search) == ("/v1/answers", "/v1/search")
    turns = [{"role": "user", "text": "Is there a tide?"}, {"role": "assistant", "text": "Yes."}]
    assert body == {"question": "When?", "session": {"turns": turns}}
    assert query == {"query": "tide", "k": 7, "rerank": True}
    assert (headers["x-index-version"], headers["x-tidegate-groups"]) == ("v1", "public,staff")


@pytest.mark.parametrize(
    "scope",
    [
        Scope("harbour", frozenset({"public"})),
        Scope("Häfen, Werften & Co", frozenset({"Küche", "night shift", "a;b", "x" * 200})),
        Scope("港", frozenset({"public", "会計"})),
    ],
)
async def test_the_service_reads_back_exactly_the_scope_that_asked(scope: Scope) -> None:
    read: list[Scope] = []

    def reply(request: Request) -> Response:
        read.append(TrustedHeaders()(request.headers))
        return JSONResponse(ANSWER)

    assert await asked(app(reply), scope) == ANSWER
    assert read == [scope]


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        (Scope("harbour", frozenset({"staff,admins"})), "Group 'staff,admins' has a comma"),
        (Scope("harbour", frozenset({"public", "a\ud800"})), "has half a character"),
        (Scope("harbour", frozenset({"a\r\nX-Tidegate-Groups: b"})), "control characters"),
        (Scope("harbour", frozenset({" staff"})), "blanks at its ends"),
        (Scope("harbour", frozenset({"staff\u00a0"})), "blanks at its ends"),
        (Scope("harbour", frozenset({""})), "is empty"),
        (Scope("", frozenset({"public"})), "is empty"),
    ],
)
async def test_a_scope_that_headers_would_change_is_refused_before_anything_is_sent(scope: Scope, said: str) -> None:
    def reply(_: Request) -> Response:
        raise AssertionError("nothing may be sent under another scope")

    with pytest.raises(BadRequest, match=said):
        await asked(app(reply), scope)


async def test_a_reader_without_groups_is_refused_by_the_service_itself() -> None:
    failure = await asked(in_service(fake_service(authenticate=TrustedHeaders())), Scope("harbour", frozenset()))
    assert isinstance(failure, Failure)
    assert failure.code == "unauthenticated"


# ---------------------------------------------------------------------------------------------- what comes back


def in_service(of: Service) -> Starlette:
    from serving.api import create_app

    return create_app(of)


async def test_the_real_surface_gives_bodies_that_can_be_measured() -> None:
    of = in_service(fake_service())
    answer, found = await asked(of), await searched(of)
    assert (answer["status"], answer["citations"][0]["doc_id"]) == ("complete", "tides")
    assert [hit["doc_id"] for hit in found["hits"]] == ["tides", "bells"]


async def test_an_error_of_the_service_keeps_its_code_and_words() -> None:
    async with Client.in_process(in_service(fake_service())) as client:
        failure = await client.ask("  ", PUBLIC)
    assert failure == Failure("bad_request", "'question' is blank: write at least one character.")


@pytest.mark.parametrize(
    ("body", "status", "code", "said"),
    [
        ("<html>Bad gateway</html>", 502, "http_502", "<html>Bad gateway</html>"),
        ({"detail": "no"}, 404, "http_404", '{"detail":"no"}'),
        ({"error": "boom"}, 500, "http_500", '{"error":"boom"}'),
        ({"error": {"code": 7}}, 500, "http_500", '{"error":{"code":7}}'),
        (["error"], 503, "http_503", '["error"]'),
        ("", 504, "http_504", "Gateway Timeout"),
        ({"error": {"code": "overloaded"}}, 503, "overloaded", ""),
        ("moved", 307, "http_307", "moved"),
        ("[" * 100_000, 500, "http_500", "[" * 200),
    ],
)
async def test_whatever_is_not_200_is_a_failure_with_the_best_code_there_is(
    body: Any, status: int, code: str, said: str
) -> None:
    assert await asked(always(body, status)) == Failure(code, said)


@pytest.mark.parametrize(
    ("body", "lacking"),
    [
        ("<html>Welcome</html>", "no JSON object"),
        ("", "no JSON object"),
        ([ANSWER], "no JSON object"),
        (None, "no JSON object"),
        ({}, "it lacks answer, status, grounding, index_version, citations, consulted"),
        (ANSWER | {"answer": None}, "it lacks answer:"),
        (ANSWER | {"citations": {}}, "it lacks citations:"),
        (ANSWER | {"usage": {"input_tokens": 1}}, "it lacks usage:"),
        (ANSWER | {"usage": dict.fromkeys(ANSWER["usage"], -1)}, "it lacks usage:"),
        (ANSWER | {"citations": [{"doc_id": "d1"}], "consulted": ["d1"]}, "it lacks citations, consulted:"),
    ],
)
async def test_a_200_with_nonsense_is_a_failure_that_says_what_is_missing(body: Any, lacking: str) -> None:
    failure = await asked(always(body))
    assert isinstance(failure, Failure)
    assert failure.code == "bad_reply"
    assert lacking in failure.message


async def test_a_search_without_hits_in_its_body_is_a_failure_and_one_that_found_nothing_is_not() -> None:
    assert await searched(always(FOUND | {"hits": []})) == FOUND | {"hits": []}
    for body in ({"index_version": "v1"}, FOUND | {"hits": None}, FOUND | {"hits": [{"doc_id": 1}]}):
        failure = await searched(always(body))
        assert isinstance(failure, Failure)
        assert "it lacks hits" in failure.message


async def test_an_answer_from_another_version_than_the_pinned_one_is_a_failure() -> None:
    other = always(ANSWER | {"notes": ["Version v2 is not open here yet; v1 answered."]})
    assert await asked(other, version="v2") == Failure(
        "wrong_version", "Version v1 answered, not v2. Version v2 is not open here yet; v1 answered."
    )
    assert isinstance(await asked(other, version="v1"), dict)
    assert isinstance(await asked(other), dict)


# ---------------------------------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8000", "localhost", "ftp://host", "http://", "http://[::1", "http://a:b", "http://a:99999"]
)
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(BadRequest, match=r"is no address.*write it like http://127\.0\.0\.1:8000"):
        Client.to_url(url)


async def test_an_address_where_nothing_listens_is_a_mistake_of_the_settings() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with Client.to_url(url) as client:
        with pytest.raises(ConfigError, match=f"Nothing answers at {url}"):
            await client.ask("When?", PUBLIC)


async def test_a_version_that_no_header_can_carry_is_refused() -> None:
    for version in ("v\n1", "v\ud800", " v1"):
        with pytest.raises(BadRequest, match="version"):
            Client.in_process(always(ANSWER), version)


async def socket_reply(reply: bytes, wait: bool = False, timeout_s: float = 5.0) -> Any:
    """What the client makes of a server that sends these bytes and closes, or keeps silent."""

    served = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        if wait:
            await reader.read()  # until the client gives up
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        served.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        # Not the environment's proxy: this is about sockets.
        http = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=timeout_s, trust_env=False)
        async with Client(http) as client:
            answer = await client.ask("When?", PUBLIC)
        await served.wait()
    return answer


async def test_a_server_that_keeps_silent_is_a_timeout() -> None:
    failure = await socket_reply(b"", wait=True, timeout_s=0.2)
    assert isinstance(failure, Failure)
    assert failure.code == "timeout"


@pytest.mark.parametrize("reply", [b"", b"220 mail ready\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"])
async def test_a_connection_that_breaks_is_a_failure_of_the_connection(reply: bytes) -> None:
    failure = await socket_reply(reply)
    assert isinstance(failure, Failure)
    assert failure.code == "connection"
    assert failure.message
