"""An S3 server on the loopback interface: moto behind HTTP, with what S3 promises and moto does not, and with faults.

moto looks at a condition and writes in two steps, so writes come one at a time here. A fault is a function of a request
that says what becomes of it; see `Fault`. Started once for all tests and ended with them.
"""

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import boto3
from botocore.config import Config
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

REGION = "eu-central-1"
LOST = "lost"  # it happens, and the reply never arrives
DROPPED = "dropped"  # it never happens, and no reply arrives
UNCONDITIONAL = "unconditional"  # it happens whatever its condition says


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a fault sees it. `nth` counts the requests since the fault began, from 1."""

    method: str
    key: str
    query: str
    conditional: bool
    nth: int


Fault = Callable[[Asked], str | int | None]  # one of these, a status instead of the reply, or None: go on


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing."""


class S3Server:
    """The server. `requests` are those that arrived, in order."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._writing, self._counting = Lock(), Lock()
        self._fault: Fault | None = None
        self._count = 0
        self.requests: list[Asked] = []
        self._clients: dict[int, Any] = {}
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @contextmanager
    def fault(self, fault: Fault) -> Iterator[None]:
        """Requests meet this fault while the block runs."""
        self._fault, self._count = fault, 0
        self.requests.clear()
        try:
            yield
        finally:
            self._fault = None

    def client(self, attempts: int = 2) -> Any:  # boto3
        """A client of this server alone, that calls so often at most; the same one, because making it takes long."""
        if attempts not in self._clients:
            self._clients[attempts] = client_of(self.url, attempts)
        return self._clients[attempts]

    def bucket(self) -> str:
        """A new bucket."""
        name = f"harbour-{uuid4().hex[:12]}"
        self.client().create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        return name

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        asked = self._noted(environ)
        what = self._fault(asked) if self._fault else None
        if what == DROPPED:
            return self._hung_up(environ)
        if isinstance(what, int):
            start_response(f"{what} Fault", [("Content-Length", "0")])
            return [b""]
        if what == UNCONDITIONAL:
            environ.pop("HTTP_IF_NONE_MATCH", None)
            environ.pop("HTTP_IF_MATCH", None)
        writes = environ["REQUEST_METHOD"] not in ("GET", "HEAD")
        if writes:
            with self._writing:
                reply = list(self._moto(environ, start_response))
        else:
            reply = self._moto(environ, start_response)
        if what == LOST:
            return self._hung_up(environ)
        return reply

    def _noted(self, environ: dict[str, Any]) -> Asked:
        with self._counting:
            self._count += 1
            key = unquote(environ["PATH_INFO"]).lstrip("/").partition("/")[2]
            conditional = "HTTP_IF_MATCH" in environ or environ.get("HTTP_IF_NONE_MATCH") == "*"
            asked = Asked(environ["REQUEST_METHOD"], key, environ["QUERY_STRING"], conditional, self._count)
            self.requests.append(asked)
            return asked

    def _hung_up(self, environ: dict[str, Any]) -> Iterable[bytes]:
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        raise ConnectionAbortedError("a fault hangs up")


def client_of(url: str, attempts: int) -> Any:  # boto3
    """A client of the server at an address, for other processes too."""
    return boto3.client(
        "s3",
        region_name=REGION,
        endpoint_url=url,
        aws_access_key_id="harbour",
        aws_secret_access_key="not a secret",
        config=Config(
            connect_timeout=5,
            read_timeout=20,
            retries={"total_max_attempts": attempts, "mode": "standard"},
            s3={"addressing_style": "path"},
            max_pool_connections=20,
        ),
    )
