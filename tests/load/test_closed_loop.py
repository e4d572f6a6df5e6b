"""The closed loop: what it counts, what it keeps apart, and what it does not measure."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from load.closed_loop import Request, Result, run

GOOD, BAD = Request("/good", b"{}"), Request("/bad", b"{}")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A server that answers one path and fails on the other."""

    async def good(_: web.Request) -> web.Response:
        return web.json_response({})

    async def bad(_: web.Request) -> web.Response:
        return web.Response(status=503, text="busy")

    app = web.Application()
    app.add_routes([web.post("/good", good), web.post("/bad", bad)])
    async with TestServer(app) as server:
        yield str(server.make_url("/"))


def test_a_percentile_is_the_latency_that_so_many_did_not_exceed() -> None:
    result = Result(1, 2.0, [40.0, 10.0, 20.0, 30.0])
    assert [result.percentile(share) for share in (0.25, 0.5, 0.51, 1.0)] == [10.0, 20.0, 30.0, 40.0]
    assert result.requests_per_s == 2.0  # 4 requests in 2 s


def test_where_nothing_succeeded_there_is_no_percentile() -> None:
    assert Result(1, 2.0).percentile(0.5) is None


async def test_requests_that_fail_are_told_and_in_no_latency(url: str) -> None:
    result = await run(url, [BAD], 2, 0.1, warm_up_s=0.0)
    assert set(result.failures) == {"HTTP 503: b'busy'"}
    assert result.latencies_ms == []


async def test_the_warm_up_is_not_counted(url: str) -> None:
    result = await run(url, [GOOD], 1, 0.5, warm_up_s=0.1)
    assert result.failures == []
    assert 0 < sum(result.latencies_ms) <= 500  # one client is never in two requests of the 500 ms counted
    assert result.seconds == pytest.approx(0.5)


async def test_a_server_that_is_not_there_is_a_failure_of_every_request() -> None:
    result = await run("http://127.0.0.1:9", [GOOD], 1, 0.05, warm_up_s=0.0)
    assert result.latencies_ms == []
    assert result.failures[0].startswith("ClientConnectorError")


async def test_the_loop_ends_early_when_told(url: str) -> None:
    asked = iter((False, False, True))
    result = await run(url, [GOOD], 1, 60.0, warm_up_s=0.0, until=lambda: next(asked))
    assert len(result.latencies_ms) == 2
    assert result.seconds < 5
