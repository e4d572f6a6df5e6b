"""A small steady load over HTTP, which remembers every reply that was not the right one."""

import http.client
import json
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

QUESTIONS = (
    ("/v1/answers", {"question": "When does the gate open?"}),
    ("/v1/answers", {"question": "How does it open, gently?"}),  # a replica dies while it is writing this
    ("/v1/search", {"query": "When does the gate open?"}),
)


@dataclass
class Load:
    """`clients` threads asking and searching in turn, each over its own kept-alive connection, until the block ends."""

    url: str
    clients: int = 4
    failures: list[str] = field(default_factory=list)
    ok: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._ask_on) for _ in range(self.clients)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def _ask_on(self) -> None:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        count = 0
        while not self._over.is_set():
            path, body = QUESTIONS[count % len(QUESTIONS)]
            count += 1
            try:
                connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
                reply = connection.getresponse()
                text = reply.read()
                wrong = "" if reply.status == 200 else f"{path} {reply.status} {text[:300]!r}"
            except (OSError, http.client.HTTPException) as error:
                wrong = f"{path} {type(error).__name__}: {error}"
                connection.close()
            with self._lock:
                if wrong:
                    self.failures.append(f"{time.monotonic():.2f} {wrong}")
                else:
                    self.ok += 1
            time.sleep(0.002)
        connection.close()
