"""Whether an answer helped: heard once per answer, kept while there is a canary to weigh, and no way to flood a log."""

import asyncio
from typing import Any

import pytest

from domain.releases import Rollout
from serving.auth import TrustedHeaders
from serving.schemas import Limits
from serving.telemetry import Prometheus
from tests.fakes import FakeObservations
from tests.serving.service import FakeRegistry, client, post, service, soon

CANARY = Rollout("v1", "v2", 0.5, revision=7, began=5)


async def give(body: Any, **changes: Any) -> tuple[Any, FakeObservations]:
    kept = FakeObservations()
    reply = await post(service(observations=kept, wall=lambda: 1000.0, **changes), "/v1/feedback", body)
    return reply, kept


@pytest.mark.parametrize(("helpful", "value"), [(True, 1.0), (False, 0.0)])
async def test_feedback_is_kept_for_the_canary_under_its_answer(helpful: bool, value: float) -> None:
    reply, kept = await give({"trace_id": "id7", "helpful": helpful}, registry=FakeRegistry(CANARY))
    assert (reply.status_code, reply.json()) == (202, {"status": "accepted"})
    assert await soon(lambda: ("v2", 5) in kept.log)
    (seen,) = kept.log["v2", 5]
    assert (seen.trace_id, seen.at, seen.version, seen.values) == ("id7", 1000.0, "", {"feedback": value})


async def test_without_a_canary_feedback_is_accepted_and_counted() -> None:
    telemetry = Prometheus()
    reply, kept = await give({"trace_id": "id7", "helpful": False}, telemetry=telemetry)
    await asyncio.sleep(0.02)
    assert (reply.status_code, kept.log) == (202, {})
    assert b'tidegate_feedback_total{helpful="false"} 1.0' in telemetry.exposition()


async def test_an_answer_is_heard_about_once() -> None:
    kept, telemetry = FakeObservations(), Prometheus()
    of = service(observations=kept, registry=FakeRegistry(CANARY), telemetry=telemetry)
    async with client(of) as http:
        for helpful in (True, False, True):
            reply = await http.post("/v1/feedback", json={"trace_id": "id7", "helpful": helpful})
            assert reply.status_code == 202
    assert await soon(lambda: len(kept.log.get(("v2", 5), ())) == 1)
    await asyncio.sleep(0.02)
    assert [seen.values for seen in kept.log["v2", 5]] == [{"feedback": 1.0}]
    assert b'tidegate_feedback_total{helpful="false"}' not in telemetry.exposition()


async def test_only_so_much_is_kept_per_canary_and_the_next_canary_begins_anew() -> None:
    kept, registry = FakeObservations(), FakeRegistry(CANARY)
    of = service(observations=kept, registry=registry, pointer_ttl_s=0.0, limits=Limits(max_feedback=3))
    async with client(of) as http:
        for number in range(5):
            await http.post("/v1/feedback", json={"trace_id": f"id{number}", "helpful": True})
        registry.pointer = Rollout("v1", "v2", 0.5, revision=9, began=9)
        await http.post("/v1/feedback", json={"trace_id": "new", "helpful": True})
    assert await soon(lambda: ("v2", 9) in kept.log)
    assert [seen.trace_id for seen in kept.log["v2", 5]] == ["id0", "id1", "id2"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"trace_id": "id7"}, "helpful"),
        ({"trace_id": "id7", "helpful": 1}, "helpful"),
        ({"trace_id": "id7", "helpful": True, "comment": "good"}, "comment"),
        ({"trace_id": "", "helpful": True}, "trace_id"),
        ({"trace_id": "what somebody wrote", "helpful": True}, "trace_id"),
        ({"trace_id": "x" * 65, "helpful": True}, "trace_id"),
        ({"trace_id": 7, "helpful": True}, "trace_id"),
    ],
)
async def test_feedback_that_cannot_be_meant_is_refused_by_field(body: Any, field: str) -> None:
    reply, kept = await give(body, registry=FakeRegistry(CANARY))
    assert (reply.status_code, reply.json()["error"]["field"]) == (400, field)
    assert kept.log == {}


async def test_feedback_needs_the_reader_that_answers_need() -> None:
    reply, _ = await give({"trace_id": "id7", "helpful": True}, authenticate=TrustedHeaders())
    assert reply.status_code == 401
