"""A thousand clients who leave an answer, over a real uvicorn, real sockets and the real client of the hosted model.

Whoever leaves closes the model's connection, is counted once, and leaves nothing behind: no descriptor, no task, no
thread, no object, no memory.
"""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import orjson
import psutil
import pytest

from domain.types import Mode, Query, Retrieval, Scope, Trace
from generation.bedrock import BedrockGenerator
from generation.efforts import Effort
from serving.telemetry import Prometheus
from tests.bedrock_stub import BedrockStub, Reply
from tests.fakes import FakeRetriever, hits
from tests.serving.service import TIDE, Served, service, soon
from tests.serving.test_sessions import MemorySessions

WAVE, WAVES = 20, 50  # a thousand, twenty of them at once
WARMED_UP = 5  # waves until every pool, cache and thread that is kept is there
MID_STREAM = Reply(("The gate opens at high water, as every sailor knows. ",), breaks="silence")
NOT_BEGUN = Reply(delay_s=60.0)


class Counting(BedrockStub):
    """A Bedrock that keeps nothing of what it is asked, so that whatever grows is not its own."""

    asked_times = 0

    def asked(self, body: bytes, path: str) -> dict[str, Any]:
        with self._lock:
            self.asked_times += 1
        return {"path": path, **orjson.loads(body)}


class Forgetful(FakeRetriever):
    """As its kind, without a memory of who asked."""

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        self.asked.clear()
        return await super().retrieve(query, scope, version, n, mode)


@dataclass
class Traces:
    """A TraceSink that counts."""

    kept: list[Trace] = field(default_factory=list)

    def write(self, trace: Trace, _: Scope) -> None:
        self.kept.append(trace)


@dataclass(frozen=True)
class Belongings:
    """What this process holds."""

    descriptors: int
    tasks: int
    threads: int
    objects: int
    resident_mb: float

    @classmethod
    def now(cls) -> "Belongings":
        gc.collect()
        process = psutil.Process()
        return cls(
            process.num_fds(),
            len(asyncio.all_tasks()),
            threading.active_count(),
            len(gc.get_objects()),
            process.memory_info().rss / 2**20,
        )


@dataclass
class House:
    """The service, what it counts, and the model behind it."""

    url: str
    stub: Counting
    telemetry: Prometheus
    traces: Traces
    sessions: MemorySessions

    def counted(self) -> dict[str, float]:
        """Every counter and gauge that is not zero, by name and labels."""
        lines = self.telemetry.exposition().decode().splitlines()
        told = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        counts = {
            name: float(value) for name, value in told.items() if "_created" not in name and "seconds" not in name
        }
        return {name: value for name, value in counts.items() if value}


@pytest.fixture
def tired() -> Iterator[None]:
    """Garbage of other tests is not ours."""
    gc.collect()
    yield
    gc.collect()


@asynccontextmanager
async def house(reply: Reply) -> AsyncIterator[House]:
    with Counting([reply]) as stub, stub.client(read_timeout_s=60.0) as client:
        generator = BedrockGenerator(client, "eu.amazon.nova-lite-v1:0", effort=Effort(attempts=1), streams=WAVE)
        telemetry, traces, sessions = Prometheus(), Traces(), MemorySessions()
        kept = {"telemetry": telemetry, "traces": traces, "sessions": sessions}
        of = service(generator=generator, retriever=Forgetful(hits(TIDE)), **kept)
        async with Served(of) as url:
            yield House(url, stub, telemetry, traces, sessions)


async def _leaves(url: str, body: bytes, until: bytes) -> None:
    """One client: asks, reads up to `until` where that is anything, and closes its connection."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = b"POST /v1/answers HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    try:
        writer.write(head % len(body) + body)
        await writer.drain()
        if until:
            await reader.readuntil(until)
        else:
            await asyncio.Event().wait()  # until cancelled
    finally:
        writer.close()


async def _wave(of: House, body: bytes, until: bytes) -> None:
    """Twenty clients who leave; comes back when no model's connection is open any more, which has to be within 2 s."""
    asked = of.stub.asked_times
    leaving = [asyncio.create_task(_leaves(of.url, body, until)) for _ in range(WAVE)]
    if until:
        await asyncio.gather(*leaving)
    else:
        assert await soon(lambda: of.stub.asked_times == asked + WAVE and of.stub.open == WAVE, 20.0)
        for client in leaving:
            client.cancel()
    assert await soon(lambda: of.stub.open == 0, 2.0), f"{of.stub.open} upstream connections are open after 2 s"
    await asyncio.gather(*leaving, return_exceptions=True)
    del leaving


def _grown(before: Belongings, after: Belongings, over: int) -> list[str]:
    """What has grown with the number of clients who left."""
    return [
        told
        for told, wrong in (
            (f"descriptors: {before.descriptors} to {after.descriptors}", after.descriptors > before.descriptors),
            (f"tasks: {before.tasks} to {after.tasks}", after.tasks > before.tasks),
            (f"threads: {before.threads} to {after.threads}", after.threads > before.threads),
            (f"objects: {before.objects} to {after.objects}", after.objects - before.objects > over // 4),
            (f"MiB: {before.resident_mb:.1f} to {after.resident_mb:.1f}", after.resident_mb - before.resident_mb > 8),
        )
        if wrong
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("tired")
@pytest.mark.parametrize(
    ("reply", "streamed", "until", "status"),
    [
        pytest.param(MID_STREAM, True, b"event: delta", "200", id="mid-stream"),
        pytest.param(NOT_BEGUN, True, b"", "499", id="before the first text"),
        pytest.param(MID_STREAM, False, b"", "499", id="of an answer that is not streamed"),
    ],
)
async def test_a_thousand_who_leave_close_the_model_within_two_seconds_and_leave_nothing(
    reply: Reply, streamed: bool, until: bytes, status: str
) -> None:
    body = orjson.dumps({"question": "When does the gate open?", "stream": streamed})
    async with house(reply) as of:
        for _ in range(WARMED_UP):
            await _wave(of, body, until)
        at_rest = Belongings.now()
        for _ in range(WAVES):
            await _wave(of, body, until)
        assert await soon(lambda: not _grown(at_rest, Belongings.now(), WAVE * WAVES)), _grown(
            at_rest, Belongings.now(), WAVE * WAVES
        )
        everybody = float(WAVE * (WARMED_UP + WAVES))
        requests = f'tidegate_requests_total{{route="/v1/answers",status="{status}"}}'
        assert of.counted() == {requests: everybody, "tidegate_disconnects_total": everybody}
        assert of.stub.asked_times == everybody
        assert (of.traces.kept, of.sessions.kept) == ([], {})
