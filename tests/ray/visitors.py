"""People who come at a steady rate, each a stranger with one question, and what every one of them was told."""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Visit:
    """When somebody asked, in seconds since 1970, which version answered, and what was wrong, if anything."""

    asked_at: float
    version: str
    wrong: str


@dataclass
class Visitors:
    """`rate` of them a second while the block runs, but no more than `inside` at once: this is no load test, and what a
    busy machine turns away would say nothing about a release.

    Each has a session and a connection of its own. `name` tells the sessions of one block from those of another.
    """

    url: str
    questions: Sequence[str]
    name: str
    rate: float = 10.0
    inside: int = 24
    visits: list[Visit] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._come()))
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()

    async def _come(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        async with aiohttp.ClientSession(
            self.url, connector=connector, timeout=aiohttp.ClientTimeout(total=PATIENCE_S)
        ) as http:
            began, asking = time.monotonic(), set[asyncio.Task[None]]()
            number = 0
            while not self._over.is_set():
                await asyncio.sleep(max(0.0, began + number / self.rate - time.monotonic()))
                if len(asking) >= self.inside:
                    await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
                asking.add(task := asyncio.create_task(self._visit(http, number)))
                task.add_done_callback(asking.discard)
                number += 1
            await asyncio.gather(*asking)

    async def _visit(self, http: aiohttp.ClientSession, number: int) -> None:
        question = self.questions[number % len(self.questions)]
        asked_at, version = time.time(), ""
        try:
            body = {"question": question, "session": {"id": f"{self.name} {number}"}}
            async with http.post("/v1/answers", json=body) as reply:
                text, version = await reply.text(), reply.headers.get("X-Index-Version", "")
                wrong = "" if reply.status == 200 else f"{reply.status} {text[:300]}"
        except (aiohttp.ClientError, TimeoutError) as error:
            wrong = f"{type(error).__name__}: {error}"
        self.visits.append(Visit(asked_at, version, wrong))
