"""The library as two tools of the Model Context Protocol over streamable HTTP: `search` and `answer`.

The protocol is the official package's; each POST is an exchange of its own, so any gateway answers any of them and
nothing runs beside the requests. A tool does what the route of its name does, for the reader whose request it is. What
a tool refuses is told to the model as the tool's error; who may not come in at all gets the HTTP error of every route.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from domain.errors import BadRequest, Forbidden, TidegateError
from domain.types import Done, Failed, Mode, Session
from serving import schemas, wire
from serving.asking import Asking
from serving.auth import Right
from serving.edge import log, read_body, unless_gone
from serving.wire import Json

Context = Any  # the package's ServerRequestContext, of types that mean nothing here

TEXT: Json = {"type": "string"}
CITED: Json = {
    "type": "object",
    "properties": dict.fromkeys(("marker", "chunk_id", "doc_id", "title", "uri", "place", "quote"), TEXT),
    "required": ["marker", "chunk_id", "title", "quote"],
}
HIT: Json = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("chunk_id", "doc_id", "title", "text", "uri", "place"), TEXT),
        "score": {"type": "number"},
        "rank": {"type": "integer"},
    },
    "required": ["chunk_id", "title", "text", "rank"],
}


@dataclass(frozen=True, slots=True)
class _Tool:
    """One tool: what a model is told of it, which right it takes, and what it does."""

    title: str
    description: str
    right: Right
    arguments: Json
    required: str
    result: Json
    call: Callable[["_Tools", Request, Json], Awaitable[CallToolResult]]

    def told(self, name: str, max_k: int) -> Tool:
        """The tool as the protocol tells it."""
        taken = {**self.arguments, "k": {"type": "integer", "minimum": 1, "maximum": max_k}}
        schema = {"type": "object", "properties": taken, "required": [self.required], "additionalProperties": False}
        result = {"type": "object", "properties": self.result, "required": list(self.result)}
        return Tool(
            name=name,
            title=self.title,
            description=self.description,
            input_schema=schema,
            output_schema=result,
            annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
        )


def mcp_routes(asking: Asking) -> list[Route]:
    """The one route. There is no GET: nothing is ever sent that was not asked for."""
    return [Route("/mcp", _Tools(asking).exchange, methods=["POST"])]


class _Tools:
    """The tools over one gateway's questions."""

    def __init__(self, asking: Asking) -> None:
        self.asking, self.service = asking, asking.service

    async def exchange(self, request: Request) -> Response:
        """One message of the protocol, and what it is answered with."""
        self.service.authenticate(request.headers)
        _check_origin(request)
        return _Exchange(self, await read_body(request, self.service.limits))

    async def list_tools(self, context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        """The tools that this reader may use."""
        max_k = self.service.limits.max_k
        allowed = [tool.told(name, max_k) for name, tool in TOOLS.items() if self._may(context.request, tool.right)]
        return ListToolsResult(tools=allowed)

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """What a tool gives, or why it does not."""
        tool, arguments = TOOLS.get(params.name), params.arguments or {}
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool of this name: there are {' and '.join(TOOLS)}.")
        request = Request(context.request.scope, _never)  # the exchange around it sees when the client leaves
        try:
            known = (*tool.arguments, "k")
            if unknown := [name for name in arguments if name not in known]:
                raise BadRequest(f"{unknown[0][:80]!r} is not an argument of {params.name}: {', '.join(known)} are.")
            return await tool.call(self, request, arguments)
        except TidegateError as error:
            return self._refusal(error.code, str(error))
        except Exception:
            log.exception("request %s failed in tool %s", request.state.request_id, params.name)
            return self._refusal("internal", f"Something went wrong here: request {request.state.request_id}.")

    async def search(self, request: Request, arguments: Json) -> CallToolResult:
        """Passages, best first."""
        service = self.service
        scope = service.authenticate(request.headers, Right.SEARCH)
        body = schemas.read_search(orjson.dumps(arguments), service.limits, service.rules.max_question_chars)
        found, stage_ms = await self.asking.searched(request, body.query, scope, body.k, Mode(body.mode), None)
        told = wire.found_json(found, stage_ms, service.naming)
        passages = [_passage(hit["rank"], hit, hit["text"]) for hit in told["hits"]]
        return _result("\n\n".join(passages) or "Nothing was found.", told, TOOLS["search"])

    async def answer(self, request: Request, arguments: Json) -> CallToolResult:
        """An answer with its sources."""
        service = self.service
        scope = service.authenticate(request.headers, Right.ASK)
        body = schemas.read_answer(orjson.dumps(arguments), service.limits, service.rules.max_question_chars)
        session = Session(service.new_id())
        affinity = request.headers.get("x-session-id") or session.id
        asked = await self.asking.carried(
            request, body.question, session, scope, affinity, k=body.k, deeper=body.deeper
        )
        terminal = await self.asking.outcome(request, asked)
        if isinstance(terminal, Failed):
            return self._refusal(terminal.code, terminal.message)
        assert isinstance(terminal, Done)
        told = wire.answer_json(terminal.answer)
        sources = [_passage(cited["marker"], cited, cited["quote"]) for cited in told["citations"]]
        return _result("\n\n".join((told["answer"], *sources)), told, TOOLS["answer"])

    def _may(self, request: Request, right: Right) -> bool:
        try:
            self.service.authenticate(request.headers, right)
        except Forbidden:
            return False
        return True

    def _refusal(self, code: str, message: str) -> CallToolResult:
        text = self.service.naming.scrub(f"{code}: {message}")
        return CallToolResult(content=[TextContent(text=text)], is_error=True)


class _Exchange(Response):
    """One POST through the protocol's package, which is given the body and nothing to wait for. A client that leaves
    cancels it.
    """

    def __init__(self, tools: _Tools, body: bytes) -> None:
        self.body, self.background = body, None
        self._server = Server(
            "tidegate",
            title=tools.service.naming.scrub(tools.service.title),
            on_list_tools=tools.list_tools,
            on_call_tool=tools.call_tool,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await unless_gone(receive, self._run(scope, send))

    async def _run(self, scope: Scope, send: Send) -> None:
        # A manager for each exchange: one for all would need a task of its own, which Serve gives no place to run in.
        manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)
        waiting: list[Message] = [{"type": "http.request", "body": bytes(self.body), "more_body": False}]

        async def receive() -> Message:
            return waiting.pop() if waiting else await _never()

        async with manager.run():
            await manager.handle_request(scope, receive, send)


async def _never() -> Message:
    await asyncio.Event().wait()
    raise RuntimeError("An event that nobody sets was set: this is a bug in serving/mcp.py.")


def _check_origin(request: Request) -> None:
    """Raises Forbidden for a page of another site, as the protocol demands."""
    origin = request.headers.get("origin")
    if origin and urlsplit(origin).netloc != request.headers.get("host"):
        raise Forbidden("Pages of other sites may not use this address: ask from a program, or from the same site.")


def _passage(mark: object, told: Json, text: str) -> str:
    place = ", ".join(part for part in (told["title"], told["place"], told["uri"]) if part)
    return f"[{mark}] {place}\n{text}"


def _result(text: str, told: Json, tool: _Tool) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(text=text)], structured_content={name: told[name] for name in tool.result}
    )


NOTES: Json = {"type": "array", "items": TEXT}
TOOLS = {
    "search": _Tool(
        "Search the library",
        "Find passages of the private library on a query, best first, as far as you may read them.",
        Right.SEARCH,
        {
            "query": {"type": "string", "description": "What to look for; a question or words."},
            "mode": {"type": "string", "enum": [mode.value for mode in Mode]},
        },
        "query",
        {"hits": {"type": "array", "items": HIT}, "index_version": TEXT, "notes": NOTES},
        _Tools.search,
    ),
    "answer": _Tool(
        "Ask the library",
        "Answer a question from the private library alone. Sentences carry markers like [S1], each of which is among "
        "the citations with the passage that it rests on.",
        Right.ASK,
        {
            "question": {"type": "string", "description": "A question that stands alone."},
            "deeper": {"type": "boolean", "description": "Look a second time, more widely."},
        },
        "question",
        {
            "answer": TEXT,
            "citations": {"type": "array", "items": CITED},
            "status": TEXT,
            "grounding": TEXT,
            "index_version": TEXT,
            "trace_id": TEXT,
            "notes": NOTES,
        },
        _Tools.answer,
    ),
}
