"""An HTTP server on the loopback interface that a test scripts: what every model service of our own here is made of."""

import json
import select
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Loopback:
    """The server; use it as a context manager. `left_early` is set as soon as a caller closes before the end."""

    handler: type["Handler"]

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self.left_early = threading.Event()
        self.closing = threading.Event()
        self.open = 0  # replies being written now
        self._open_lock = threading.Lock()

    def __enter__(self) -> Self:
        self.closing.clear()
        bound = type("Bound", (self.handler,), {"stub": self})
        self._server = _Server(("127.0.0.1", self._port), bound)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def count(self, change: int) -> None:
        with self._open_lock:
            self.open += change


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # closing the stub waits for every reply, so that no thread outlives its test
    request_queue_size = 128  # the default of 5 drops callers who come together


class Handler(ABC, BaseHTTPRequestHandler):
    """One request; `reply` is the subclass's. A stream is a chunked body, and cut without its last, empty chunk."""

    stub: Any  # the Loopback whose handler this is
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        self.close_connection = True  # threads must end with the test
        if len(body) < length:
            self.stub.left_early.set()
            return
        self.stub.count(1)
        try:
            self.reply(body)
        except OSError:
            self.stub.left_early.set()
        finally:
            self.stub.count(-1)

    @abstractmethod
    def reply(self, body: bytes) -> None:
        """Write the whole reply to a request with this body."""

    def send_json(self, status: int, payload: object, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(payload).encode()
        self.send_response(status)
        sent = {"Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})}
        # Closed, or the caller's next request may meet a connection that is just being closed.
        for name, value in {**sent, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def begin_stream(self, content_type: str) -> None:
        self.send_response(200)
        for name, value in {
            "Content-Type": content_type,
            "Transfer-Encoding": "chunked",
            "Connection": "close",
        }.items():
            self.send_header(name, value)
        self.end_headers()

    def send_chunk(self, data: bytes) -> None:
        """A piece of the stream; an empty one ends it."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def caller_left(self, wait_s: float) -> bool:
        """Waits; True (and noted) as soon as the caller closes its end."""
        until = time.monotonic() + wait_s
        while time.monotonic() < until and not self.stub.closing.is_set():
            patience = min(0.02, max(0.0, until - time.monotonic()))
            if select.select([self.connection], [], [], patience)[0]:
                self.stub.left_early.set()
                return True
        return bool(self.stub.closing.is_set())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: tests speak for themselves."""
