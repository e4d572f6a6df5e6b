"""What became of the files of a version, over HTTP: for the operator alone, because names of files tell what there is.

Readers get none of it, not even counts: they would say that something exists which they may not see.
"""

import asyncio
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from domain.errors import NotFound
from domain.ingestion import FileOutcome, counted, worst_first
from serving.admission import operator
from serving.edge import json_response
from serving.service import Service
from serving.wire import Json, scrubbed

TOLD = 1000  # outcomes in one reply; the report itself has them all


def outcome_routes(service: Service) -> list[Route]:
    """The one route."""

    async def outcomes(request: Request) -> Response:
        await operator(request, service)
        version = request.path_params["id"]
        if version not in {known.id for known in await asyncio.to_thread(service.registry.versions)}:
            raise NotFound("There is no such index version: GET /v1/versions lists them.", "version")
        reports = service.outcomes
        found = await asyncio.to_thread(reports.read, version) if reports is not None else None
        return json_response(scrubbed(outcomes_json(version, found), service.naming))

    return [Route("/v1/versions/{id}/outcomes", outcomes)]


def outcomes_json(version: str, outcomes: tuple[FileOutcome, ...] | None) -> Json:
    """Counts of all files, and of those that somebody should look at what became of them, the worst first.

    `files` is null where no report is, as for a version that another machine built: that is not known, not zero.
    """
    if outcomes is None:
        return {"version": version, "files": None, "outcomes": [], "more": 0}
    counts, told = counted(outcomes), worst_first(outcomes)
    return {
        "version": version,
        "files": asdict(counts) | {"total": counts.total},
        "outcomes": [asdict(outcome) for outcome in told[:TOLD]],
        "more": max(len(told) - TOLD, 0),
    }
