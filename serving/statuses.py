"""The one table from error classes to HTTP statuses. A class that is not in it has its parent's status."""

from collections.abc import Iterator
from math import ceil

from domain.errors import (
    BadRequest,
    Forbidden,
    NotAdmitted,
    NotFound,
    NotReady,
    Overloaded,
    PointerMoved,
    StageFailed,
    StageTimeout,
    StorageError,
    Throttled,
    TidegateError,
    TooLong,
    Unauthenticated,
)
from domain.types import Failed

STATUSES: dict[type[TidegateError], int] = {
    TidegateError: 500,
    BadRequest: 400,
    TooLong: 413,
    NotFound: 404,
    Unauthenticated: 401,
    Forbidden: 403,
    PointerMoved: 409,
    NotAdmitted: 409,
    StorageError: 503,
    StageFailed: 502,
    StageTimeout: 504,
    Throttled: 429,
    Overloaded: 503,
    NotReady: 503,
}
CLIENT_GONE = 499  # nobody reads it; it keeps the metrics honest


def status_of(kind: type[TidegateError]) -> int:
    """The HTTP status of an error class, or of the nearest parent that has one."""
    return next(STATUSES[parent] for parent in kind.__mro__ if parent in STATUSES)


def kind_of(failed: Failed) -> type[TidegateError]:
    """The error class behind a failed answer: the exception's own, or the one with the event's code."""
    if isinstance(failed.error, TidegateError):
        return type(failed.error)
    return next((kind for kind in _family(TidegateError) if kind.code == failed.code), TidegateError)


def retry_headers(status: int, retry_after_s: float | None) -> dict[str, str]:
    """`Retry-After` in whole seconds where waiting is the way out, and nothing elsewhere."""
    if retry_after_s is None and status not in (429, 503):
        return {}
    return {"Retry-After": str(max(1, ceil(retry_after_s or 1)))}


def _family(kind: type[TidegateError]) -> Iterator[type[TidegateError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _family(child)
