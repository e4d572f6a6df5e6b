"""The tools with the official client of the Model Context Protocol, over real HTTP, in both eras of its handshakes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from domain.errors import StageFailed
from domain.naming import Naming
from domain.types import Scope
from serving.keyring import KeyRing, encoded_keys, new_key
from serving.service import Service
from tests.fakes import FakeRetriever, ScriptedGenerator, chunk, hits
from tests.serving.service import BELL, TIDE, Leaver, Served, SilentGenerator, get, post, service, soon

ERAS = ("legacy", "auto")


@asynccontextmanager
async def talking(of: Service, mode: Any = "auto", **headers: str) -> AsyncIterator[Client]:
    """The official client of a service on a real port."""
    async with (
        Served(of) as url,
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def said(result: Any) -> str:
    return "".join(part.text for part in result.content)


@pytest.mark.parametrize("mode", ERAS)
async def test_the_tools_are_told_with_their_schemas(mode: str) -> None:
    async with talking(service(), mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"search", "answer"}
    assert tools["search"].input_schema["required"] == ["query"]
    assert tools["answer"].input_schema["properties"]["k"]["maximum"] == 100
    assert all(tool.output_schema and tool.annotations for tool in tools.values())


@pytest.mark.parametrize("mode", ERAS)
async def test_an_answer_comes_as_text_and_as_data_with_its_citations(mode: str) -> None:
    async with talking(service(), mode) as client:
        told = await client.call_tool("answer", {"question": "When does the gate open?"})
    assert not told.is_error
    assert said(told).startswith("The gate opens at high water [S1].")
    assert "[S1] Tide table, https://library.example/tides" in said(told)
    [citation] = told.structured_content["citations"]
    assert (citation["marker"], citation["chunk_id"], citation["title"]) == ("S1", "tides#0", "Tide table")
    assert (told.structured_content["status"], told.structured_content["index_version"]) == ("complete", "v1")


@pytest.mark.parametrize("mode", ERAS)
async def test_a_search_gives_passages_best_first(mode: str) -> None:
    async with talking(service(), mode) as client:
        told = await client.call_tool("search", {"query": "gate", "k": 2})
    assert [hit["chunk_id"] for hit in told.structured_content["hits"]] == ["tides#0", "bells#0"]
    assert said(told).index(TIDE.text) < said(told).index(BELL.text)


@pytest.mark.parametrize(
    ("tool", "arguments", "wanted"),
    [
        ("search", {"query": "gate", "k": 1000}, "'k' is 1000: a whole number from 1 to 100 is wanted"),
        ("search", {"query": " "}, "'query' is blank"),
        ("search", {"query": "gate", "groups": ["finance"]}, "'groups' is not an argument of search"),
        ("answer", {}, "'question' is missing"),
        ("answer", {"question": "gate?", "session": {"id": "s"}}, "'session' is not an argument of answer"),
    ],
)
async def test_bad_arguments_are_told_to_the_model(tool: str, arguments: Any, wanted: str) -> None:
    async with talking(service()) as client:
        told = await client.call_tool(tool, arguments)
    assert told.is_error
    assert wanted in said(told)


async def test_a_tool_that_is_not_there_is_an_error_of_the_protocol() -> None:
    async with talking(service()) as client:
        with pytest.raises(MCPError, match="there are search and answer"):
            await client.call_tool("delete", {})


@pytest.mark.parametrize("tool", ["search", "answer"])
async def test_a_failed_search_never_looks_like_an_empty_one(tool: str) -> None:
    broken = FakeRetriever(error=StageFailed("The retriever died twice.", "retriever"))
    async with talking(service(retriever=broken)) as client:
        told = await client.call_tool(tool, {"search": {"query": "gate"}, "answer": {"question": "gate?"}}[tool])
    assert told.is_error
    assert "The retriever died twice." in said(told)


async def test_a_bug_is_told_without_its_text() -> None:
    broken = FakeRetriever(error=ValueError("the secret"))  # type: ignore[arg-type]  # no error of ours
    async with talking(service(retriever=broken)) as client:
        told = await client.call_tool("search", {"query": "gate"})
    assert told.is_error
    assert "Something went wrong" in said(told)
    assert "secret" not in said(told)


def ring(path: Path, *rights: Any, groups: frozenset[str] = frozenset({"public"})) -> tuple[KeyRing, dict[str, str]]:
    key, text = new_key("one", Scope("harbour", groups), rights, "")
    path.write_bytes(encoded_keys((key,)))
    return KeyRing(path), {"Authorization": f"Bearer {text}"}


@pytest.mark.parametrize("mode", ERAS)
async def test_a_key_sees_and_calls_the_tools_of_its_scopes_alone(tmp_path: Path, mode: str) -> None:
    keys, shown = ring(tmp_path / "keys.json", "search")
    async with talking(service(authenticate=keys), mode, **shown) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search"]
        assert not (await client.call_tool("search", {"query": "gate"})).is_error
        refused = await client.call_tool("answer", {"question": "When does the gate open?"})
    assert refused.is_error
    assert "needs scope ask" in said(refused)


async def test_without_a_key_nobody_comes_in(tmp_path: Path) -> None:
    keys, _ = ring(tmp_path / "keys.json", "search")
    reply = await post(service(authenticate=keys), "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "unauthenticated")


async def test_a_reader_gets_what_he_may_read(tmp_path: Path) -> None:
    pay = chunk("pay#0", "The keeper is paid in May.", groups=("finance",))
    keys, shown = ring(tmp_path / "keys.json", "search")
    of = service(authenticate=keys, retriever=FakeRetriever(hits(pay, TIDE)))
    async with talking(of, **shown) as client:
        told = await client.call_tool("search", {"query": "keeper"})
    assert [hit["chunk_id"] for hit in told.structured_content["hits"]] == ["tides#0"]
    assert "paid" not in said(told)


async def test_a_forbidden_term_is_in_no_result_and_in_no_error() -> None:
    of = service(naming=Naming(("Tide table",)))
    async with talking(of) as client:
        for name, arguments in (
            ("answer", {"question": "When does the gate open?"}),
            ("search", {"query": "gate"}),
            ("search", {"query": "gate", "Tide table": 1}),
        ):
            told = await client.call_tool(name, arguments)
            assert "Tide table" not in told.model_dump_json()


async def test_pages_of_other_sites_are_refused() -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    reply = await post(service(), "/mcp", body, Origin="https://elsewhere.example")
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "forbidden")


async def test_there_is_no_stream_to_open_and_nothing_to_delete() -> None:
    assert (await get(service(), "/mcp", Accept="text/event-stream")).status_code == 405


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"jsonrpc": "2.0"}', b'{"jsonrpc":"2.0","id":1,"method":"made/up"}'])
async def test_nonsense_is_an_error_of_the_protocol_and_no_crash(body: bytes) -> None:
    reply = await post(service(), "/mcp", body, Accept="application/json, text/event-stream")
    assert reply.status_code < 500
    assert "error" in reply.json()


async def test_a_client_that_leaves_cancels_the_answer() -> None:
    generator, leaver = SilentGenerator(("The gate ",)), Leaver(accept=b"application/json, text/event-stream")
    call = {"name": "answer", "arguments": {"question": "When does the gate open?"}}
    import asyncio

    asking = asyncio.create_task(
        leaver.ask(
            service(generator=generator), "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        )
    )
    assert await soon(generator.started.is_set, 10)
    leaver.leave()
    await asking
    assert await soon(generator.closed.is_set)


async def test_an_unwell_generator_is_a_failed_answer() -> None:
    broken = ScriptedGenerator((), error=StageFailed("The generator died.", "generator"))
    async with talking(service(generator=broken)) as client:
        told = await client.call_tool("answer", {"question": "When does the gate open?"})
    assert told.is_error
    assert "The generator died." in said(told)
