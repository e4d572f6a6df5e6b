"""The HTTP surface: wire to domain, domain to wire, nothing in between.

`create_app` needs a Service and nothing else, so the same application runs in a Ray gateway, in a test and in an
evaluation. Errors leave through edge.py, streams through sse.py; what bodies look like is schemas.py.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from domain.answering import answer, outcome
from domain.errors import BadRequest, NotReady, Overloaded, TidegateError
from domain.ports import TraceSink
from domain.searching import search
from domain.types import Ask, Done, Event, Failed, Mode, Query, Scope, Trace
from serving import schemas, wire
from serving.admission import is_operator
from serving.auth import Right
from serving.documents_http import document_routes
from serving.edge import Edge, json_response, log, read_body, unless_gone
from serving.feedback import Feedback
from serving.observing import Observer, Watched
from serving.outcomes_http import outcome_routes
from serving.pages import page_routes
from serving.pointer import Pointer
from serving.releases_http import release_routes
from serving.rollout_wire import uncounted
from serving.service import Service
from serving.sessions import Conversations, Resumed
from serving.sse import EventStream, failed_response
from serving.telemetry import (
    ANSWERS,
    CONTENT_TYPE,
    DEGRADED,
    FAILURES,
    FIRST_SECONDS,
    IN_FLIGHT,
    REFUSED,
    STAGE_SECONDS,
    TOKENS,
    TRACES_LOST,
)
from serving.uploads_http import upload_routes


def create_app(service: Service, echo_request_id: bool = True) -> Starlette:
    """The application. `echo_request_id` False where the server outside already sends `X-Request-Id` back."""
    api = _Api(service)
    routes = [
        Route("/v1/answers", api.answers, methods=["POST"]),
        Route("/v1/search", api.search, methods=["POST"]),
        Route("/v1/versions", api.versions),
        Route("/v1/feedback", Feedback(service, api.pointer, api.observer).give, methods=["POST"]),
        *release_routes(service, api.pointer),
        *upload_routes(service),
        *document_routes(service),
        *outcome_routes(service),
        Route("/healthz", api.healthz),
        Route("/readyz", api.readyz),
        Route("/metrics", api.metrics),
        *page_routes(service),
    ]
    edge = Middleware(
        Edge,
        naming=service.naming,
        telemetry=service.telemetry,
        clock=service.clock,
        new_id=service.new_id,
        echo_id=echo_request_id,
    )
    app = Starlette(routes=routes, middleware=[edge], exception_handlers={404: _pass_on, 405: _pass_on})
    app.router.redirect_slashes = False  # it would send people to whatever host their request named
    return app


def _pass_on(_: Request, error: Exception) -> Response:
    """Starlette's own refusals go to the edge too, which gives them the one error shape."""
    raise error


class _Api:
    """The endpoints over one Service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.pointer = Pointer(service.registry, service.clock, service.pointer_ttl_s, service.pinnable)
        self.observer = Observer(service)
        self.conversations = Conversations(service.sessions, service.wall, service.new_id)
        self.in_flight = 0
        self.writing: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------------------------------ answers

    async def answers(self, request: Request) -> Response:
        """One question answered, as one JSON body or as a stream of events."""
        service, started = self.service, self.service.clock()
        scope = service.authenticate(request.headers, Right.ASK)
        body = schemas.read_answer(
            await read_body(request, service.limits), service.limits, service.rules.max_question_chars
        )
        carried, named = schemas.session_of(body.session, service.new_id()), bool(body.session and body.session.id)
        resumed = await self.conversations.resume(carried, scope, named=named)
        session = resumed.session
        version, rollout = await self.pointer.assign(session.id, _pinned(request))
        ask = Ask(body.question, session, scope, version, service.new_id(), body.k, body.deeper)
        watched = self.observer.watch(ask, rollout, _measuring(request))
        if body.stream:
            return self._stream(request, ask, resumed, watched, started)
        with self._place():
            events = self._events(ask, resumed, watched, streamed=False)
            terminal = await unless_gone(request.receive, outcome(events))
        self._ended(terminal, ask, watched)
        if isinstance(terminal, Done):
            trace = terminal.answer.trace
            headers = self._headers(trace.version, dict(trace.stage_ms), started)
            return json_response(wire.answer_json(terminal.answer), 200, headers)
        stage_ms = dict(terminal.trace.stage_ms) if terminal.trace else {}
        return failed_response(terminal, request.state.request_id, self._headers(version, stage_ms, started))

    def _stream(
        self, request: Request, ask: Ask, resumed: Resumed, watched: Watched | None, started: float
    ) -> Response:
        def headers_for(version: str) -> Mapping[str, str]:
            self.service.telemetry.observe(FIRST_SECONDS, self.service.clock() - started)
            return self._headers(version or ask.version, {}, started)

        stream = EventStream(
            self._events(ask, resumed, watched, streamed=True),
            request.state.request_id,
            self.service.limits.keep_alive_s,
            headers_for,
            lambda terminal: self._ended(terminal, ask, watched),
        )
        return _Placed(stream, self._place)

    def _events(
        self, ask: Ask, resumed: Resumed, watched: Watched | None, *, streamed: bool
    ) -> AsyncGenerator[Event, None]:
        service, stages = self.service, self.service.stages
        if service.writer is not None and not streamed:
            stages = replace(stages, generator=service.writer)
        if watched is not None:
            stages = watched.stages(stages)
        events = answer(ask, stages, service.rules, service.naming, service.clock)
        events = self.conversations.remember(events, resumed, ask.scope)
        return events if watched is None else watched.events(events)

    def _ended(self, terminal: Done | Failed, ask: Ask, watched: Watched | None) -> None:
        """Counts how an answer ended, keeps its trace, and has it observed."""
        if watched is not None:
            watched.ended(terminal)
        telemetry = self.service.telemetry
        trace = terminal.answer.trace if isinstance(terminal, Done) else terminal.trace
        if isinstance(terminal, Done):
            told = terminal.answer
            telemetry.add(ANSWERS, 1, told.trace.version, told.status.value, told.grounding.value)
            for kind in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
                telemetry.add(TOKENS, getattr(told.trace.usage, kind), kind)
            for kind in ("input_tokens", "output_tokens"):
                telemetry.add(TOKENS, getattr(told.trace.rewriting, kind), f"rewrite_{kind}")
        else:
            telemetry.add(FAILURES, 1, ask.version, terminal.code)
        if trace is None:
            return
        for stage, ms in trace.stage_ms:
            telemetry.observe(STAGE_SECONDS, ms / 1000, stage)
        if trace.notes:
            telemetry.add(DEGRADED, 1)
        if (sink := self.service.traces) is not None:
            task = asyncio.create_task(self._keep(sink, trace, ask.scope))
            self.writing.add(task)  # the loop holds tasks weakly
            task.add_done_callback(self.writing.discard)

    async def _keep(self, sink: TraceSink, trace: Trace, scope: Scope) -> None:
        try:
            await asyncio.to_thread(sink.write, trace, scope)
        except Exception:
            log.exception("trace %s was lost", trace.id)
            self.service.telemetry.add(TRACES_LOST, 1)

    # ------------------------------------------------------------------------------------------ search

    async def search(self, request: Request) -> Response:
        """Hits without an answer. Nothing degrades here: what was asked for and failed is a failure."""
        service, started = self.service, self.service.clock()
        scope = service.authenticate(request.headers, Right.SEARCH)
        body = schemas.read_search(
            await read_body(request, service.limits), service.limits, service.rules.max_question_chars
        )
        session_id = request.headers.get("x-session-id") or service.new_id()
        version, _ = await self.pointer.assign(session_id, _pinned(request))
        if body.rerank and service.stages.reranker is None:
            raise BadRequest("'rerank' is true, and this service has no reranker: leave it out.", "rerank")
        stages = service.stages if body.rerank is not False else replace(service.stages, reranker=None)
        query, mode, depth = Query(body.query), Mode(body.mode), service.rules.rerank_depth
        try:
            with self._place():
                searching = search(query, scope, version, body.k, mode, stages, depth, service.clock)
                found, stage_ms = await unless_gone(request.receive, searching)
        except TidegateError as error:
            service.telemetry.add(FAILURES, 1, version, error.code)
            raise
        for stage, ms in stage_ms.items():
            service.telemetry.observe(STAGE_SECONDS, ms / 1000, stage)
        told = {
            "hits": [wire.hit_json(hit, service.naming) for hit in found.hits],
            "index_version": found.version,
            "stage_ms": stage_ms,
            "notes": [service.naming.scrub(note) for note in found.notes],
        }
        return json_response(told, 200, self._headers(found.version, stage_ms, started))

    # ------------------------------------------------------------------------------------------ state of things

    async def versions(self, request: Request) -> Response:
        """All index versions, oldest first; how much is in them for the operator alone."""
        operator = is_operator(request, self.service)
        if not operator:
            self.service.authenticate(request.headers)
        versions = [wire.version_json(v) for v in await asyncio.to_thread(self.service.registry.versions)]
        told = {"versions": versions if operator else [uncounted(version) for version in versions]}
        return json_response(wire.scrubbed(told, self.service.naming))

    async def healthz(self, _: Request) -> Response:
        """This process answers; says nothing about the others."""
        return json_response({"status": "ok"})

    async def readyz(self, _: Request) -> Response:
        """Every stage answers and a version is admitted. Raises NotReady naming what is waited for."""
        stages = dict(await self.service.ready())
        stages["index"] = (await self.pointer.rollout()).stable is not None
        waiting = [stage for stage, there in stages.items() if not there]
        if waiting:
            raise NotReady(f"Waiting for {', '.join(waiting)}: try again in a moment.", waiting[0], 1.0)
        return json_response({"status": "ready", "stages": stages})

    async def metrics(self, _: Request) -> Response:
        """Prometheus text of all gateways on this machine."""
        text = await asyncio.to_thread(self.service.telemetry.exposition)
        return Response(text, media_type=None, headers={"Content-Type": CONTENT_TYPE})

    # ------------------------------------------------------------------------------------------ common

    @contextmanager
    def _place(self) -> Iterator[None]:
        """A place among the requests in flight. Raises Overloaded when all are taken: a queue only delays it."""
        limit, telemetry = self.service.limits.max_in_flight, self.service.telemetry
        if self.in_flight >= limit:
            telemetry.add(REFUSED, 1)
            raise Overloaded(f"{limit} requests are being worked on, which is the limit: try again.", "gateway", 1.0)
        self.in_flight += 1
        telemetry.add(IN_FLIGHT, 1)
        try:
            yield
        finally:
            self.in_flight -= 1
            telemetry.add(IN_FLIGHT, -1)

    def _headers(self, version: str, stage_ms: Mapping[str, float], started: float) -> dict[str, str]:
        total = (self.service.clock() - started) * 1000
        times = ", ".join(f"{stage}={ms:.3f}" for stage, ms in (*stage_ms.items(), ("total", total)))
        return {"X-Index-Version": version, "X-Stage-Ms": times}


class _Placed(Response):
    """A response that holds a place among the requests in flight until its last byte."""

    def __init__(self, inner: Response, place: Callable[[], AbstractContextManager[None]]) -> None:
        self.inner, self.place, self.background = inner, place, None

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        with self.place():
            await self.inner(scope, receive, send)


def _pinned(request: Request) -> str | None:
    """The version a measuring client insists on, if any."""
    return request.headers.get("x-index-version")


def _measuring(request: Request) -> bool:
    """True for a client that says that it measures, or that chose its version itself."""
    return _pinned(request) is not None or "x-tidegate-measuring" in request.headers
