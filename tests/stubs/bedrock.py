"""A Bedrock runtime on loopback: Converse and ConverseStream with scripted replies, spoken to by the real boto3.

    with BedrockStub([Reply(("Forty bar ", "[S1]."))]) as stub:
        client = stub.client()

Replies are used up in order, one per request; the last one repeats. `stub.requests` keeps what was asked.
"""

import json
import select
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import boto3

from generation.bedrock_calls import client_config


@dataclass(frozen=True)
class Reply:
    """One scripted reply.

    `chunks` come one event each, `pause_s` apart, then `stop_reason` and `usage`. `refuse` = (HTTP status, error code)
    answers before the first byte instead. `breaks` ends the stream after the chunks in another way: "close" cuts the
    connection, "silence" says nothing more until the caller leaves, anything else is sent as an exception event.
    `delay_s` passes before anything is sent.
    """

    chunks: tuple[str, ...] = ()
    stop_reason: str = "end_turn"
    usage: tuple[tuple[str, int], ...] = (("inputTokens", 10), ("outputTokens", 5), ("totalTokens", 15))
    refuse: tuple[int, str] | None = None
    retry_after: str | None = None
    breaks: str = ""
    delay_s: float = 0.0
    pause_s: float = 0.0


@dataclass
class BedrockStub:
    """The server and its script; use it as a context manager."""

    replies: Sequence[Reply]
    requests: list[dict[str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    left_early: threading.Event = field(default_factory=threading.Event)  # a caller closed before the end

    def __enter__(self) -> "BedrockStub":
        from moto.core.eventstream import EventStreamEncoder  # takes seconds to import: before anybody is kept waiting

        self.encoder = EventStreamEncoder()
        handler = type("Handler", (_Handler,), {"stub": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._lock = threading.Lock()
        self.closing = threading.Event()
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

    @contextmanager
    def client(self, attempts: int = 1, read_timeout_s: float = 5.0, credentials: bool = True) -> Iterator[Any]:
        """A real boto3 client that talks to this stub with made-up credentials, or without any."""
        known = {"aws_access_key_id": "made-up-id", "aws_secret_access_key": "made-up-secret"} if credentials else {}
        client = (_session() if credentials else boto3.session.Session()).client(
            "bedrock-runtime",
            region_name="eu-central-1",
            endpoint_url=self.url,
            config=client_config(attempts, 1.0, read_timeout_s),
            **known,
        )
        try:
            yield client
        finally:
            client.close()

    def next_reply(self, body: bytes, path: str) -> Reply:
        with self._lock:
            reply = self.replies[min(len(self.requests), len(self.replies) - 1)]
            self.requests.append({"path": path, **json.loads(body)})
            self.bodies.append(body)
        return reply


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # closing the stub waits for every reply, so that no thread outlives its test
    request_queue_size = 128  # the default of 5 drops callers who come together


@lru_cache(maxsize=1)
def _session() -> boto3.session.Session:
    """One session for all tests: it reads the service description once, which takes longer than a whole test."""
    return boto3.session.Session()


class _Handler(BaseHTTPRequestHandler):
    stub: BedrockStub
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = unquote(self.path)
        reply = self.stub.next_reply(body, path)
        self.close_connection = True  # threads must end with the test
        if reply.delay_s and self._caller_left(reply.delay_s):
            return
        if reply.refuse:
            self._refuse(*reply.refuse, reply.retry_after)
        elif path.endswith("/converse-stream"):
            self._stream(reply)
        else:
            self._converse(reply)

    def _refuse(self, status: int, code: str, retry_after: str | None) -> None:
        headers = {"x-amzn-ErrorType": code} | ({"Retry-After": retry_after} if retry_after else {})
        self._json(status, {"message": "refused for arn:aws:iam::123456789012:user/made-up-id"}, headers)

    def _converse(self, reply: Reply) -> None:
        content = [{"text": "".join(reply.chunks)}]
        message = {"role": "assistant", "content": content}
        usage = dict(reply.usage)
        self._json(
            200,
            {
                "output": {"message": message},
                "stopReason": reply.stop_reason,
                "usage": usage,
                "metrics": {"latencyMs": 1},
            },
            {},
        )

    def _json(self, status: int, payload: dict[str, Any], headers: dict[str, str]) -> None:
        data = json.dumps(payload).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")  # or the caller's next request may meet a connection just being closed
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.amazon.eventstream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            self._events(reply)
        except OSError:
            self.stub.left_early.set()

    def _events(self, reply: Reply) -> None:
        self._event("messageStart", {"role": "assistant"})
        for text in reply.chunks:
            self._event("contentBlockDelta", {"delta": {"text": text}, "contentBlockIndex": 0})
            if reply.pause_s and self._caller_left(reply.pause_s):
                return
        if reply.breaks == "close":
            return  # without the last chunk: the body is cut
        if reply.breaks == "silence":
            self._caller_left(60.0)
            return
        if reply.breaks:
            self._event(reply.breaks, {"message": "slow down, account 123456789012"}, "exception")
        else:
            self._event("contentBlockStop", {"contentBlockIndex": 0})
            self._event("messageStop", {"stopReason": reply.stop_reason})
            self._event("metadata", {"usage": dict(reply.usage), "metrics": {"latencyMs": 1}})
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, name: str, payload: dict[str, Any], kind: str = "event") -> None:
        headers = {f":{kind}-type": name, ":content-type": "application/json", ":message-type": kind}
        frame = self.stub.encoder.encode_message(headers, json.dumps(payload).encode())
        self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
        self.wfile.flush()

    def _caller_left(self, wait_s: float) -> bool:
        """Waits; True (and noted) as soon as the caller closes its end."""
        until = time.monotonic() + wait_s
        while time.monotonic() < until and not self.stub.closing.is_set():
            if select.select([self.connection], [], [], 0.02)[0]:
                self.stub.left_early.set()
                return True
        return self.stub.closing.is_set()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: tests speak for themselves."""
