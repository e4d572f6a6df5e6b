"""A bounded closed loop over HTTP: so many clients, each with one request in flight, for so many seconds.

Knows only HTTP, so it measures what a user gets. A closed loop tells capacity and the latency at a given number of
clients; it hides queueing that an arrival rate would show, which is why its figures are always named with the number
of clients. Failed requests are counted and kept out of the latencies.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import aiohttp


@dataclass(frozen=True, slots=True)
class Request:
    """One POST of JSON bytes to a path."""

    path: str
    body: bytes


@dataclass(slots=True)
class Result:
    """Latencies in milliseconds of the requests that succeeded, and every failure with its reason."""

    clients: int
    seconds: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def requests_per_s(self) -> float:
        """Successful requests a second."""
        return len(self.latencies_ms) / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float | None:
        """The latency that `share` (0..1) of the successful requests did not exceed; None when none succeeded."""
        if not self.latencies_ms:
            return None
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


async def run(
    base_url: str,
    requests: Sequence[Request],
    clients: int,
    seconds: float,
    *,
    warm_up_s: float = 1.0,
    headers: dict[str, str] | None = None,
    until: Callable[[], bool] = lambda: False,
) -> Result:
    """The result of `clients` clients cycling through `requests` for `seconds` after a warm-up that is not counted.

    Each client starts at its own place in the cycle, so that equal questions are not in flight together. A response
    that is not 200, or breaks off, is a failure. `until` ends the loop early.
    """
    result = Result(clients)
    opens = perf_counter() + warm_up_s
    closes = opens + seconds
    connector = aiohttp.TCPConnector(limit=clients, force_close=False)
    timeout = aiohttp.ClientTimeout(total=30)
    all_headers = {"Content-Type": "application/json", **(headers or {})}
    async with aiohttp.ClientSession(base_url, connector=connector, timeout=timeout, headers=all_headers) as session:

        async def client(number: int) -> None:
            turn = number * len(requests) // clients
            while perf_counter() < closes and not until():
                request = requests[turn % len(requests)]
                turn += 1
                started = perf_counter()
                failure = await _post(session, request)
                ended = perf_counter()
                if started < opens and not failure:
                    continue
                if failure:
                    result.failures.append(failure)
                elif ended <= closes:
                    result.latencies_ms.append((ended - started) * 1000)

        await asyncio.gather(*(client(number) for number in range(clients)))
    result.seconds = min(perf_counter(), closes) - opens
    return result


async def _post(session: aiohttp.ClientSession, request: Request) -> str:
    """An empty string when the response was whole and 200, otherwise what went wrong."""
    try:
        async with session.post(request.path, data=request.body) as response:
            body = await response.read()
            return "" if response.status == 200 else f"HTTP {response.status}: {body[:200]!r}"
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"{type(error).__name__}: {error}"
