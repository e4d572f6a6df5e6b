"""The connection that one blocking call of boto3 holds, so that another thread can hang up.

boto3 has no way to give up a call that waits for its answer, and a model that nobody listens to costs money. What is
used of botocore here is private to it: tests/generation/test_bedrock.py would see it go.
"""

import contextlib
import socket
from collections.abc import Callable
from threading import local
from typing import Any, TypeVar

T = TypeVar("T")
_thread = local()  # .line: the Line of the call that this thread makes


class Line:
    """One call; `hang_up` may come from any thread, at any time, any number of times."""

    def __init__(self) -> None:
        self._connection: Any = None  # urllib3
        self._left = False

    def carry(self, function: Callable[[], T]) -> T:
        """What `function` returns, its connection known to this line."""
        _thread.line = self
        try:
            return function()
        finally:
            _thread.line, self._connection = None, None

    def uses(self, connection: Any) -> None:  # urllib3
        """The call is made over this connection. Raises ConnectionAbortedError when nobody waits for it any more."""
        self._connection = connection
        if self._left:
            raise ConnectionAbortedError("nobody waits for this call any more")

    def hang_up(self) -> None:
        """Ends the call: its thread sees a broken connection at once."""
        self._left = True
        connection = self._connection
        with contextlib.suppress(AttributeError, OSError):  # not connected yet, or closed meanwhile
            connection.sock.shutdown(socket.SHUT_RDWR)


def hear(client: Any) -> None:  # boto3
    """From now on calls of `client` tell the line of their thread which connection they use."""
    from botocore.awsrequest import AWSHTTPConnectionPool, AWSHTTPSConnectionPool

    endpoint = getattr(client, "_endpoint", None)
    if endpoint is None:  # not a client of boto3
        return
    pools = endpoint.http_session._pool_classes_by_scheme
    for scheme, pool in (("http", AWSHTTPConnectionPool), ("https", AWSHTTPSConnectionPool)):
        heard = type("Heard", (_Heard, pool.ConnectionCls), {})
        pools[scheme] = type("HeardPool", (pool,), {"ConnectionCls": heard})


class _Heard:
    """Mixed into botocore's connections."""

    def request(self, *arguments: Any, **named: Any) -> Any:  # urllib3
        line: Line | None = getattr(_thread, "line", None)
        if line is not None:
            line.uses(self)
        return super().request(*arguments, **named)  # type: ignore[misc]  # of the connection that this is mixed into
