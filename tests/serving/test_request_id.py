"""An id is the caller's own only where it can be logged and sent back as it is."""

import pytest
from starlette.types import Receive, Scope, Send

from serving.request_id import CleanRequestId, chosen_id


def scope(*ids: bytes) -> Scope:
    return {"type": "http", "headers": [(b"host", b"here"), *((b"x-request-id", value) for value in ids)]}


def test_an_ordinary_id_is_kept() -> None:
    assert chosen_id(scope(b"trace-7/a")) == "trace-7/a"


ODD = [(), (b"",), (b"a" * 201,), (b"a\tb",), (b"\xff",), ("\u20ac".encode(),), (b"a", b"b")]


@pytest.mark.parametrize("ids", ODD)
async def test_an_odd_id_goes_no_further(ids: tuple[bytes, ...]) -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    await CleanRequestId(app)(scope(*ids), None, None)  # type: ignore[arg-type]  # nothing is received or sent
    assert chosen_id(scope(*ids)) == ""
    assert seen[0]["headers"] == [(b"host", b"here")]
