"""One question or one search on its way through this gateway, whatever the route that it came by.

Assigns the version, has a canary observed, holds a place among the requests in flight, counts how it ended and keeps
the trace. What requests and replies look like is the routes'; how an answer is made is domain/answering.py alone.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from domain.answering import answer, outcome
from domain.errors import BadRequest, Overloaded, TidegateError
from domain.ports import Stages, TraceSink
from domain.searching import search
from domain.types import Ask, Done, Event, Failed, Mode, Query, Retrieval, Scope, Session, Trace
from serving.edge import log, unless_gone
from serving.observing import Observer, Watched
from serving.pointer import Pointer
from serving.service import Service
from serving.sessions import Conversations, Resumed
from serving.sse import EventStream
from serving.telemetry import (
    ANSWERS,
    DEGRADED,
    FAILURES,
    FIRST_SECONDS,
    IN_FLIGHT,
    REFUSED,
    STAGE_SECONDS,
    TOKENS,
    TRACES_LOST,
)
from serving.wire import FailureShape, failure_json


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its version. `kept` False: the client carries the conversation, and no store is told of it."""

    ask: Ask
    resumed: Resumed
    watched: Watched | None
    kept: bool = True


class Asking:
    """Questions and searches over one Service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.pointer = Pointer(service.registry, service.clock, service.pointer_ttl_s, service.pinnable)
        self.observer = Observer(service)
        self.conversations = Conversations(service.sessions, service.wall, service.new_id)
        self._in_flight = 0
        self._writing: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------------------------------ answers

    async def resumed(
        self,
        request: Request,
        question: str,
        carried: Session,
        scope: Scope,
        *,
        named: bool,
        k: int | None,
        deeper: bool,
    ) -> Asked:
        """The question in the conversation that a store remembers, or the client carries."""
        resumed = await self.conversations.resume(carried, scope, named=named)
        return await self._assigned(request, question, resumed, scope, resumed.session.id, k, deeper, kept=True)

    async def carried(
        self,
        request: Request,
        question: str,
        session: Session,
        scope: Scope,
        affinity: str,
        *,
        k: int | None = None,
        deeper: bool = False,
    ) -> Asked:
        """The question in a conversation of which nothing is remembered; equal `affinity` gets an equal version."""
        return await self._assigned(request, question, Resumed(session), scope, affinity, k, deeper, kept=False)

    async def _assigned(
        self,
        request: Request,
        question: str,
        resumed: Resumed,
        scope: Scope,
        affinity: str,
        k: int | None,
        deeper: bool,
        *,
        kept: bool,
    ) -> Asked:
        version, rollout = await self.pointer.assign(affinity, _pinned(request))
        ask = Ask(question, resumed.session, scope, version, self.service.new_id(), k, deeper)
        return Asked(ask, resumed, self.observer.watch(ask, rollout, _measuring(request)), kept)

    async def outcome(self, request: Request, asked: Asked) -> Done | Failed:
        """How the answer ended, with a place held until then. Raises ClientGone when nobody waits for it any more."""
        with self.place():
            terminal = await unless_gone(request.receive, outcome(self.events(asked, streamed=False)))
        self.ended(terminal, asked)
        return terminal

    def stream(
        self,
        request: Request,
        asked: Asked,
        started: float,
        frame_of: Callable[[Event], bytes] | None = None,
        shape: FailureShape = failure_json,
    ) -> Response:
        """The answer as server-sent events, with a place held until the last of them."""

        def headers_for(version: str) -> Mapping[str, str]:
            self.service.telemetry.observe(FIRST_SECONDS, self.service.clock() - started)
            return self.headers(version or asked.ask.version, {}, started)

        stream = EventStream(
            self.events(asked, streamed=True),
            request.state.request_id,
            self.service.limits.keep_alive_s,
            headers_for,
            lambda terminal: self.ended(terminal, asked),
            frame_of,
            shape,
        )
        return Placed(stream, self.place)

    def events(self, asked: Asked, *, streamed: bool) -> AsyncGenerator[Event, None]:
        """The events of the answer. Whoever takes them holds a `place`, and says how it `ended`."""
        service, stages = self.service, self.service.stages
        if service.writer is not None and not streamed:
            stages = replace(stages, generator=service.writer)
        if asked.watched is not None:
            stages = asked.watched.stages(stages)
        events = answer(asked.ask, stages, service.rules, service.naming, service.clock)
        if asked.kept:
            events = self.conversations.remember(events, asked.resumed, asked.ask.scope)
        return events if asked.watched is None else asked.watched.events(events)

    def ended(self, terminal: Done | Failed, asked: Asked) -> None:
        """Counts how an answer ended, keeps its trace, and has it observed."""
        if asked.watched is not None:
            asked.watched.ended(terminal)
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
            telemetry.add(FAILURES, 1, asked.ask.version, terminal.code)
        if trace is None:
            return
        for stage, ms in trace.stage_ms:
            telemetry.observe(STAGE_SECONDS, ms / 1000, stage)
        if trace.notes:
            telemetry.add(DEGRADED, 1)
        if (sink := self.service.traces) is not None:
            task = asyncio.create_task(self._keep(sink, trace, asked.ask.scope))
            self._writing.add(task)  # the loop holds tasks weakly
            task.add_done_callback(self._writing.discard)

    async def _keep(self, sink: TraceSink, trace: Trace, scope: Scope) -> None:
        try:
            await asyncio.to_thread(sink.write, trace, scope)
        except Exception:
            log.exception("trace %s was lost", trace.id)
            self.service.telemetry.add(TRACES_LOST, 1)

    # ------------------------------------------------------------------------------------------ searches

    async def searched(
        self, request: Request, query: str, scope: Scope, k: int, mode: Mode, rerank: bool | None
    ) -> tuple[Retrieval, dict[str, float]]:
        """Hits and the milliseconds of each stage. A missing `rerank` means: as answers are served."""
        service = self.service
        version = await self.assigned(request)
        stages = self._searching(rerank)
        try:
            with self.place():
                searching = search(
                    Query(query), scope, version, k, mode, stages, service.rules.rerank_depth, service.clock
                )
                found, stage_ms = await unless_gone(request.receive, searching)
        except TidegateError as error:
            service.telemetry.add(FAILURES, 1, version, error.code)
            raise
        for stage, ms in stage_ms.items():
            service.telemetry.observe(STAGE_SECONDS, ms / 1000, stage)
        return found, stage_ms

    async def assigned(self, request: Request) -> str:
        """The version of a request that belongs to no conversation, or to the one it names."""
        session_id = request.headers.get("x-session-id") or self.service.new_id()
        version, _ = await self.pointer.assign(session_id, _pinned(request))
        return version

    def _searching(self, rerank: bool | None) -> Stages:
        if rerank and self.service.stages.reranker is None:
            raise BadRequest("'rerank' is true, and this service has no reranker: leave it out.", "rerank")
        return self.service.stages if rerank is not False else replace(self.service.stages, reranker=None)

    # ------------------------------------------------------------------------------------------ both

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place among the requests in flight. Raises Overloaded when all are taken: a queue only delays it."""
        limit, telemetry = self.service.limits.max_in_flight, self.service.telemetry
        if self._in_flight >= limit:
            telemetry.add(REFUSED, 1)
            raise Overloaded(f"{limit} requests are being worked on, which is the limit: try again.", "gateway", 1.0)
        self._in_flight += 1
        telemetry.add(IN_FLIGHT, 1)
        try:
            yield
        finally:
            self._in_flight -= 1
            telemetry.add(IN_FLIGHT, -1)

    def headers(self, version: str, stage_ms: Mapping[str, float], started: float) -> dict[str, str]:
        """Which version answered, and how long it took since `started` on the service's clock."""
        total = (self.service.clock() - started) * 1000
        times = ", ".join(f"{stage}={ms:.3f}" for stage, ms in (*stage_ms.items(), ("total", total)))
        return {"X-Index-Version": version, "X-Stage-Ms": times}


class Placed(Response):
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
