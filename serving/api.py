"""The HTTP surface: wire to domain, domain to wire; what is in between, asking.py has for every route.

`create_app` needs a Service and nothing else, so the same application runs in a Ray gateway, in a test and in an
evaluation. Errors leave through edge.py, streams through sse.py; what bodies look like is schemas.py.
"""

import asyncio

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from domain.errors import NotReady
from domain.types import Done, Mode
from serving import schemas, wire
from serving.admission import is_operator
from serving.asking import Asking
from serving.auth import Right
from serving.compat_cohere import cohere_routes
from serving.compat_embeddings import embedding_routes
from serving.compat_openai import openai_routes
from serving.documents_http import document_routes
from serving.edge import Edge, json_response, read_body
from serving.feedback import Feedback
from serving.mcp import mcp_routes
from serving.outcomes_http import outcome_routes
from serving.pages import page_routes
from serving.releases_http import release_routes
from serving.rollout_wire import uncounted
from serving.service import Service
from serving.sse import failed_response
from serving.telemetry import CONTENT_TYPE
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
        *openai_routes(api.asking),
        *embedding_routes(api.asking),
        *cohere_routes(api.asking),
        *mcp_routes(api.asking),
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
        self.asking = Asking(service)
        self.pointer, self.observer = self.asking.pointer, self.asking.observer

    # ------------------------------------------------------------------------------------------ answers

    async def answers(self, request: Request) -> Response:
        """One question answered, as one JSON body or as a stream of events."""
        service, asking, started = self.service, self.asking, self.service.clock()
        scope = service.authenticate(request.headers, Right.ASK)
        body = schemas.read_answer(
            await read_body(request, service.limits), service.limits, service.rules.max_question_chars
        )
        carried, named = schemas.session_of(body.session, service.new_id()), bool(body.session and body.session.id)
        asked = await asking.resumed(request, body.question, carried, scope, named=named, k=body.k, deeper=body.deeper)
        if body.stream:
            return asking.stream(request, asked, started)
        terminal = await asking.outcome(request, asked)
        if isinstance(terminal, Done):
            trace = terminal.answer.trace
            headers = asking.headers(trace.version, dict(trace.stage_ms), started)
            return json_response(wire.answer_json(terminal.answer), 200, headers)
        stage_ms = dict(terminal.trace.stage_ms) if terminal.trace else {}
        headers = asking.headers(asked.ask.version, stage_ms, started)
        return failed_response(terminal, request.state.request_id, headers)

    # ------------------------------------------------------------------------------------------ search

    async def search(self, request: Request) -> Response:
        """Hits without an answer. Nothing degrades here: what was asked for and failed is a failure."""
        service, started = self.service, self.service.clock()
        scope = service.authenticate(request.headers, Right.SEARCH)
        body = schemas.read_search(
            await read_body(request, service.limits), service.limits, service.rules.max_question_chars
        )
        found, stage_ms = await self.asking.searched(request, body.query, scope, body.k, Mode(body.mode), body.rerank)
        told = wire.found_json(found, stage_ms, service.naming)
        return json_response(told, 200, self.asking.headers(found.version, stage_ms, started))

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
