"""Whether an answer helped, as its reader says: counted, and while a canary runs kept for whoever weighs the canary.

A reader may say it once per answer; what else comes for the same answer is accepted and changes nothing.
"""

from collections import OrderedDict

from starlette.requests import Request
from starlette.responses import Response

from domain.releases import FEEDBACK, Observation, Rollout
from serving import schemas
from serving.auth import Right
from serving.edge import json_response, read_body
from serving.observing import NEITHER, Observer
from serving.pointer import Pointer
from serving.service import Service
from serving.telemetry import FEEDBACK as COUNTED

REMEMBERED = 10_000  # answers a gateway remembers to have heard about


class Feedback:
    """The endpoint over one Service."""

    def __init__(self, service: Service, pointer: Pointer, observer: Observer) -> None:
        self._service, self._pointer, self._observer = service, pointer, observer
        self._heard: OrderedDict[str, None] = OrderedDict()
        self._kept = (0, 0)  # the revision with which the canary began, and how many were kept for it

    async def give(self, request: Request) -> Response:
        """202, whether there is a canary to weigh or not."""
        service = self._service
        service.authenticate(request.headers, Right.ASK)
        body = schemas.read_feedback(await read_body(request, service.limits), service.limits)
        if self._first(body.trace_id):
            service.telemetry.add(COUNTED, 1, str(body.helpful).lower())
            rollout = await self._pointer.rollout()
            if self._room(rollout):
                values = {FEEDBACK: float(body.helpful)}
                # Which version answered is known to whoever observed the answer, under the same trace id.
                self._observer.keep(rollout, Observation(body.trace_id, service.wall(), NEITHER, values))
        return json_response({"status": "accepted"}, 202)

    def _first(self, trace_id: str) -> bool:
        if trace_id in self._heard:
            return False
        self._heard[trace_id] = None
        while len(self._heard) > REMEMBERED:
            self._heard.popitem(last=False)
        return True

    def _room(self, rollout: Rollout) -> bool:
        began, count = self._kept
        count = count + 1 if began == rollout.began else 1
        self._kept = (rollout.began, count)
        return rollout.canary is not None and count <= self._service.limits.max_feedback
