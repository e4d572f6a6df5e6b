"""The blocking model client seen from an event loop: threads, time limits, cancellation, and errors by who must act.

boto3 is synchronous. One call or one event of a stream is fetched per thread hop, which bounds what is read ahead to
one event. Messages never repeat the vendor's: they may hold account numbers and keys.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

from domain.errors import StageFailed, StageTimeout, Throttled, UpstreamDenied, UpstreamInterrupted

STAGE = "generate"
T = TypeVar("T")


def client_config(attempts: int, connect_timeout_s: float, read_timeout_s: float, connections: int = 64) -> Any:
    """A botocore Config for the client to be passed in.

    `attempts` is the number of model calls per request, the first one included, over all layers together: nothing in
    this package retries on its own. botocore backs off with jitter between them. Once a stream has begun, nothing is
    repeated. `connections` bounds the calls in flight.
    """
    from botocore.config import Config

    return Config(
        connect_timeout=connect_timeout_s,
        read_timeout=read_timeout_s,
        max_pool_connections=connections,
        retries={"total_max_attempts": attempts, "mode": "standard"},
    )


async def call(executor: Executor, function: Callable[[], T], limit_s: float, model_id: str, stage: str = STAGE) -> T:
    """What `function` returns, run in a thread; StageTimeout after `limit_s` seconds, else errors as `translated`.

    When given up, the thread runs on to its own timeout; a stream that it opens after all is closed.
    """
    future = asyncio.get_running_loop().run_in_executor(executor, function)
    try:
        return await asyncio.wait_for(asyncio.shield(future), limit_s)
    except TimeoutError:
        future.add_done_callback(_discard)
        raise _silent(model_id, limit_s, stage) from None
    except asyncio.CancelledError:
        future.add_done_callback(_discard)
        raise
    except Exception as error:
        raise translated(error, model_id, begun=False, stage=stage) from error


async def events(
    executor: Executor, stream: Any, limit_s: float, model_id: str
) -> AsyncGenerator[dict[str, Any], None]:
    """The events of a boto3 event stream; StageTimeout when nothing comes for `limit_s` seconds.

    However this ends, the connection is closed, so that the vendor stops generating.
    """
    loop = asyncio.get_running_loop()
    following = partial(next, iter(stream), None)
    try:
        while True:
            try:
                pending = loop.run_in_executor(executor, following)
                event = await asyncio.wait_for(asyncio.shield(pending), limit_s)
            except TimeoutError:
                pending.add_done_callback(_discard)
                raise _silent(model_id, limit_s, STAGE) from None
            except asyncio.CancelledError:
                pending.add_done_callback(_discard)
                raise
            except Exception as error:
                raise translated(error, model_id, begun=True) from error
            if event is None:
                return
            yield event
    finally:
        _wake(stream)
        executor.submit(_close, stream)


def _wake(stream: Any) -> None:
    """Ends a read that another thread waits in; close() alone would wait for that thread."""
    with contextlib.suppress(AttributeError, ValueError, RuntimeError, OSError):  # read to its end, or closed before
        stream._raw_stream.shutdown()  # botocore.eventstream.EventStream keeps urllib3's response there


def _close(stream: Any) -> None:
    """Closes the connection of a stream; one that was read to its end stays usable for the next call."""
    with contextlib.suppress(OSError, ValueError):
        stream.close()


def translated(error: Exception, model_id: str, begun: bool, stage: str = STAGE) -> StageFailed:
    """A vendor's error as ours, by who must act. `begun`: the reply had started, so it must not be repeated."""
    from botocore import exceptions as vendor
    from urllib3.exceptions import HTTPError
    from urllib3.exceptions import TimeoutError as SocketTimeout

    if isinstance(error, vendor.ClientError):  # EventStreamError included
        return _by_code(error, model_id, begun, stage)
    if isinstance(error, vendor.ReadTimeoutError | vendor.ConnectTimeoutError | SocketTimeout):
        return StageTimeout(f"Model {model_id} did not answer in time: try again.", stage)
    if isinstance(error, _denials(vendor)):
        name = type(error).__name__
        return UpstreamDenied(
            f"Model {model_id} cannot be called ({name}): set the cloud credentials and generation.region.", stage
        )
    if begun and isinstance(error, vendor.BotoCoreError | HTTPError | OSError):
        return UpstreamInterrupted(f"The reply of model {model_id} broke off half-way: ask again.", stage)
    if isinstance(error, vendor.BotoCoreError | HTTPError | OSError):
        return StageFailed(f"Model {model_id} cannot be reached ({type(error).__name__}): try again.", stage)
    raise error  # not the vendor's: a bug, and it must be seen


def _by_code(error: Any, model_id: str, begun: bool, stage: str) -> StageFailed:
    code = str(error.response.get("Error", {}).get("Code", "unknown"))
    kind = code.removesuffix("Exception").casefold()
    if kind in _THROTTLES:
        wait = _retry_after(error)
        return Throttled(f"Model {model_id} is throttled ({code}): try again a little later.", stage, wait)
    if kind in _TIMEOUTS:
        return StageTimeout(f"Model {model_id} did not answer in time ({code}): try again.", stage)
    if kind in _FAILS:
        if begun:
            return UpstreamInterrupted(f"The reply of model {model_id} broke off half-way ({code}): ask again.", stage)
        return StageFailed(f"Model {model_id} failed ({code}): try again.", stage, _retry_after(error))
    if begun and kind not in _REFUSES:
        return UpstreamInterrupted(f"The reply of model {model_id} broke off half-way ({code}): ask again.", stage)
    return UpstreamDenied(
        f"Model {model_id} refuses the call ({code}): check credentials, generation.region and generation.model_id.",
        stage,
    )


def _retry_after(error: Any) -> float | None:
    """Seconds the vendor asks to wait; None when it names none."""
    said = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("retry-after", "")
    return float(said) if said.replace(".", "", 1).isdigit() else None


def _denials(vendor: Any) -> tuple[type[Exception], ...]:
    return (
        vendor.NoCredentialsError,
        vendor.PartialCredentialsError,
        vendor.CredentialRetrievalError,
        vendor.TokenRetrievalError,
        vendor.UnauthorizedSSOTokenError,
        vendor.NoRegionError,
        vendor.InvalidRegionError,
        vendor.ParamValidationError,
    )


def _silent(model_id: str, limit_s: float, stage: str) -> StageTimeout:
    return StageTimeout(f"Model {model_id} said nothing for {limit_s:g} s: try again.", stage)


def _discard(future: "asyncio.Future[Any]") -> None:
    """Takes the result nobody waits for any more, and closes it when it is a stream."""
    if future.cancelled() or future.exception() is not None:
        return
    result = future.result()
    if isinstance(result, dict) and "stream" in result:
        _wake(result["stream"])
        _close(result["stream"])


_THROTTLES = {"throttling", "toomanyrequests", "servicequotaexceeded", "requestlimitexceeded", "slowdown"}
_TIMEOUTS = {"modeltimeout", "requesttimeout"}
_FAILS = {"internalserver", "serviceunavailable", "modelerror", "modelstreamerror", "modelnotready", "internalfailure"}
_REFUSES = {"accessdenied", "validation", "resourcenotfound", "unrecognizedclient", "expiredtoken"}
