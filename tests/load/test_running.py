"""Whole runs of Locust against the HTTP surface on loopback: what each kind of user leaves, and that no stall hides."""

import asyncio
import csv
import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from domain.prompt import PromptPlan
from domain.types import Delta, Draft, Usage
from load.arrivals import due_times
from load.running import NotRun, Plan, command, is_loopback, run
from load.samples import percentile
from tests.fakes import ScriptedGenerator
from tests.serving.service import Served, service

QUICK = Plan("", Path(), users=3, seconds=2.0, think_s=0.05)


class Pausing(ScriptedGenerator):
    """Writes with a pause of 50 ms after each piece."""

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        async for said in super().generate(plan):
            yield said
            await asyncio.sleep(0.05)


def planned(url: str, folder: Path, **changes: Any) -> Plan:
    return dataclasses.replace(QUICK, url=url, folder=folder, **changes)


@pytest.mark.slow
async def test_every_kind_of_request_leaves_its_samples_and_its_series(tmp_path: Path) -> None:
    async with Served(
        service(generator=Pausing(("The gate opens ", "at high ", "water [S1]."), usage=Usage(10, 5)))
    ) as url:
        samples = await asyncio.to_thread(run, planned(url, tmp_path, seconds=5.0))
    assert [s for s in samples if s.failure] == []
    assert {s.kind for s in samples} == {"answer", "stream", "search", "follow_up"}
    streams = [s for s in samples if s.kind == "stream"]
    for one in streams:
        assert one.first_ms is not None
        assert one.token_ms is not None
        assert one.citations_ms is not None
        assert one.complete_ms is not None
        assert 0 < one.first_ms <= one.citations_ms <= one.complete_ms
        assert one.complete_ms - one.first_ms >= 90, "two pauses of 50 ms lie between the first text and the end"
        assert one.citations_complete
    assert {s.first_ms for s in samples if s.kind == "search"} == {None}
    with (tmp_path / "locust_stats.csv").open(newline="") as file:
        names = {row["Name"] for row in csv.DictReader(file)}
    assert {"stream", "stream: first visible text", "stream: time a token", "stream: citations", "answer"} <= names


@pytest.mark.slow
async def test_a_key_is_shown_with_every_request_and_stands_in_no_list_of_processes(tmp_path: Path) -> None:
    shown: list[str | None] = []

    async def search(request: web.Request) -> web.Response:
        shown.append(request.headers.get("Authorization"))
        return web.json_response({"hits": []})

    (tmp_path / "key").write_text("made-up-key\n")
    app = web.Application()
    app.add_routes([web.post("/v1/search", search)])
    async with TestServer(app) as server:
        plan = planned(str(server.make_url("")).rstrip("/"), tmp_path, mix="search", key_file=tmp_path / "key")
        await asyncio.to_thread(run, plan)
    assert set(shown) == {"Bearer made-up-key"}
    assert "made-up-key" not in " ".join(command(plan, tmp_path, tmp_path))


@pytest.mark.slow
async def test_failures_are_samples_with_a_reason_and_without_a_time(tmp_path: Path) -> None:
    closed = dataclasses.replace(service().limits, max_in_flight=0)
    async with Served(service(limits=closed)) as url:
        samples = await asyncio.to_thread(run, planned(url, tmp_path))
    assert samples
    assert {s.complete_ms for s in samples} == {None}
    assert {s.failure for s in samples} == {"HTTP 503 overloaded"}
    with (tmp_path / "locust_stats.csv").open(newline="") as file:
        total = next(row for row in csv.DictReader(file) if row["Name"] == "Aggregated")
    assert total["Request Count"] == total["Failure Count"]
    assert float(total["Average Response Time"]) == 0, "no time of a failed request is in Locust's figures either"


@pytest.mark.slow
async def test_a_stream_that_breaks_off_is_a_failure_and_no_quick_answer(tmp_path: Path) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        await reply.write(b'event: delta\ndata: {"text": "The gate"}\n\n')
        assert request.transport
        request.transport.abort()
        return reply

    app = web.Application()
    app.add_routes([web.post("/v1/answers", cut)])
    async with TestServer(app) as server:
        url = str(server.make_url("")).rstrip("/")
        samples = await asyncio.to_thread(run, planned(url, tmp_path, mix="stream"))
    assert samples
    assert all(s.failure.startswith(("cut: ", "the stream ended without")) for s in samples), samples
    assert {s.complete_ms for s in samples} == {None}


@pytest.mark.slow
def test_a_server_that_is_not_there_is_a_failure_of_every_request(tmp_path: Path) -> None:
    samples = run(planned("http://127.0.0.1:9", tmp_path))
    assert samples
    assert all(s.failure.startswith("no reply") for s in samples)


def test_a_run_that_makes_no_request_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(NotRun, match=r"made no request .*locust\.log"):
        run(planned("http://127.0.0.1:9", tmp_path, questions=tmp_path / "gone.jsonl"))


@dataclasses.dataclass
class Stalling:
    """A search that answers at once, but for 2 s in which nothing is answered: from 1 s after its first request.

    It keeps when each request came and was answered, by its own clock, in the order they came.
    """

    url: str = ""
    came: list[float] = dataclasses.field(default_factory=list)
    answered: dict[int, float] = dataclasses.field(default_factory=dict)

    async def search(self, _: web.Request) -> web.Response:
        clock = asyncio.get_running_loop().time
        number, now = len(self.came), clock()
        self.came.append(now)
        if 1.0 <= now - self.came[0] < 3.0:
            await asyncio.sleep(self.came[0] + 3.0 - now)
        self.answered[number] = clock()
        return web.json_response({"hits": []})


@pytest.fixture
async def stalling() -> AsyncIterator[Stalling]:
    stalls, app = Stalling(), web.Application()
    app.add_routes([web.post("/v1/search", stalls.search)])
    async with TestServer(app) as server:
        stalls.url = str(server.make_url("")).rstrip("/")
        yield stalls


@pytest.mark.slow
async def test_a_stall_of_two_seconds_shows_in_p99(stalling: Stalling, tmp_path: Path) -> None:
    rate, seconds = 25.0, 5.0
    plan = planned(stalling.url, tmp_path, mix="search", rate=rate, seconds=seconds)
    samples = await asyncio.to_thread(run, plan)
    due = due_times(rate, seconds, plan.seed)
    assert [s.due_s for s in samples] == due, "every arrival is there, also those of the stall"
    assert not [s for s in samples if s.failure]
    # What the server knows: when it answered each, against when that one was due. The run began when the arrival that
    # was least late says so: on a busy machine the very first ones are sent late, which is in their own times.
    began = min(came - at for came, at in zip(stalling.came, due[:20], strict=False))
    waited = [(stalling.answered[n] - began - at) * 1000 for n, at in enumerate(due)]
    wanted, measured = percentile(waited, 0.99), percentile([s.complete_ms or 0.0 for s in samples], 0.99)
    assert wanted is not None
    assert wanted >= 1900, "the stall itself: 2 s, less the gap to its first arrivals"
    assert measured == pytest.approx(wanted, rel=0.05)


@pytest.mark.slow
async def test_a_closed_loop_would_have_hidden_it(stalling: Stalling, tmp_path: Path) -> None:
    """Why there are arrivals: the same stall before two users who wait for it is two requests, and p95 sees none."""
    plan = planned(stalling.url, tmp_path, mix="search", users=2, seconds=5.0, think_s=0.02)
    samples = await asyncio.to_thread(run, plan)
    slow = [s for s in samples if (s.complete_ms or 0.0) > 1000]
    assert 1 <= len(slow) <= 2
    p95 = percentile([s.complete_ms or 0.0 for s in samples], 0.95)
    assert p95 is not None
    assert p95 < 1000


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://localhost:1", True),
        ("http://[::1]:8000", True),
        ("http://127.0.0.1.shore.example", False),
        ("http://10.0.0.1:8000", False),
        ("https://tidegate.example", False),
    ],
)
def test_an_address_on_this_machine_is_told_from_others(url: str, here: bool) -> None:
    assert is_loopback(url) is here
