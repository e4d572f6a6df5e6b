"""Documents over HTTP, for admins: taken out of every version at once, given back, or given other readers.

None of it waits for the gate, because it acts only on what versions hold already. A reply leaves when every replica has
had the time to hear of it (`Service.settle_s`), so that what is acknowledged is so; who did it and why is on record.
Documents come in by builds, and by uploads_http.py.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from domain.amending import Amending
from domain.errors import BadRequest, Forbidden
from serving import schemas
from serving.admission import Admin, admitted
from serving.edge import json_response, read_body
from serving.service import Service

LONGEST_REASON = 1000  # characters
T = TypeVar("T")


def document_routes(service: Service) -> list[Route]:
    """The routes of documents that are there already. An id may hold slashes."""
    of = _Documents(service)
    return [
        Route("/v1/documents/{id:path}/groups", of.set_readers, methods=["PUT"]),
        Route("/v1/documents/{id:path}/restore", of.restore, methods=["POST"]),
        Route("/v1/documents/{id:path}", of.forget, methods=["DELETE"]),
    ]


class _Documents:
    """The endpoints over one Service."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def forget(self, request: Request) -> Response:
        """No version returns the document any more."""
        admin, reason = await admitted(request, self.service), _reason(request)
        doc_id = request.path_params["id"]
        done = await self._made(lambda of: of.forget([doc_id], admin.who, reason, admin.tenant))
        return json_response({"id": doc_id, "forgotten": True, "changed": bool(done)})

    async def restore(self, request: Request) -> Response:
        """Versions that hold the document return it again."""
        admin, reason = await admitted(request, self.service), _reason(request)
        doc_id = request.path_params["id"]
        done = await self._made(lambda of: of.restore([doc_id], admin.who, reason, admin.tenant))
        return json_response({"id": doc_id, "forgotten": False, "changed": bool(done)})

    async def set_readers(self, request: Request) -> Response:
        """Exactly these groups read the document; null: those it was built with."""
        admin: Admin = await admitted(request, self.service)
        body = schemas.read_groups(await read_body(request, self.service.limits), self.service.limits)
        doc_id, groups = request.path_params["id"], None if body.groups is None else frozenset(body.groups)
        await self._made(lambda of: of.set_readers(doc_id, groups, admin.who, body.reason, admin.tenant))
        return json_response({"id": doc_id, "groups": None if groups is None else sorted(groups)})

    async def _made(self, change: Callable[[Amending], T]) -> T:
        amending = self.service.amending
        if amending is None:
            raise Forbidden("This service cannot change documents: use the command line on its machine.")
        made = await asyncio.to_thread(change, amending)
        await asyncio.sleep(self.service.settle_s)
        return made


def _reason(request: Request) -> str:
    """Why, as the address has it: a DELETE bears no body."""
    reason = request.query_params.get("reason", "")
    if len(reason) > LONGEST_REASON:
        raise BadRequest(
            f"'reason' has {len(reason):,} characters: at most {LONGEST_REASON:,} are put on record.", "reason"
        )
    return reason
