"""The blocking model client seen from an event loop: threads, time limits and cancellation.

boto3 is synchronous. One call or one event of a stream is fetched per thread hop, which bounds what is read ahead to
one event. What an error means is bedrock_errors.py; calling again is efforts.py.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

from domain.errors import StageTimeout
from generation.bedrock_errors import translated
from generation.bedrock_line import Line
from generation.efforts import Deadline, too_late

STAGE = "generate"
T = TypeVar("T")


def client_config(connect_timeout_s: float, read_timeout_s: float, connections: int = 64) -> Any:  # botocore
    """A botocore Config for the client to be passed in.

    Its own retries are off: attempts are counted in one place (efforts.py). `connections` bounds the calls in flight.
    """
    from botocore.config import Config

    return Config(
        connect_timeout=connect_timeout_s,
        read_timeout=read_timeout_s,
        max_pool_connections=connections,
        retries={"total_max_attempts": 1, "mode": "standard"},
    )


async def call(executor: Executor, function: Callable[[], T], limit_s: float, model_id: str, stage: str = STAGE) -> T:
    """What `function` returns, run in a thread; StageTimeout after `limit_s` seconds, else errors as `translated`.

    When it is given up, its connection is closed, so that the vendor stops; its thread is free at once.
    """
    line = Line()
    future = asyncio.get_running_loop().run_in_executor(executor, line.carry, function)
    try:
        # Not wait_for: before Python 3.12 it returns as if nobody had left when the result comes at that very moment.
        async with asyncio.timeout(limit_s):
            return await asyncio.shield(future)
    except TimeoutError:
        _leave(line, future)
        raise _silent(model_id, limit_s, stage) from None
    except asyncio.CancelledError:
        _leave(line, future)
        raise
    except Exception as error:
        raise translated(error, model_id, begun=False, stage=stage) from error


def _leave(line: Line, future: "asyncio.Future[Any]") -> None:
    future.add_done_callback(_discard)  # an answer that crossed our leaving is closed
    line.hang_up()


async def events(
    executor: Executor, stream: Any, limit_s: float, model_id: str, deadline: Deadline
) -> AsyncGenerator[dict[str, Any], None]:
    """The events of a boto3 event stream; StageTimeout when nothing comes for `limit_s` seconds, or at the deadline.

    However this ends, the connection is closed, so that the vendor stops generating.
    """
    loop = asyncio.get_running_loop()
    following = partial(next, iter(stream), None)
    try:
        while True:
            try:
                pending = loop.run_in_executor(executor, following)
                async with asyncio.timeout(min(limit_s, deadline.left())):
                    event = await asyncio.shield(pending)
            except TimeoutError:
                pending.add_done_callback(_discard)
                raise _late(model_id, limit_s, deadline) from None
            except asyncio.CancelledError:
                pending.add_done_callback(_discard)
                raise
            except Exception as error:
                raise translated(error, model_id, begun=True, stage=STAGE) from error
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


def _silent(model_id: str, limit_s: float, stage: str) -> StageTimeout:
    return StageTimeout(f"Model {model_id} said nothing for {limit_s:g} s: try again.", stage)


def _late(model_id: str, limit_s: float, deadline: Deadline) -> StageTimeout:
    if deadline.left():
        return _silent(model_id, limit_s, STAGE)
    return too_late(model_id, deadline)


def _discard(future: "asyncio.Future[Any]") -> None:
    """Takes the result nobody waits for any more, and closes it when it is a stream."""
    if future.cancelled() or future.exception() is not None:
        return
    result = future.result()
    if isinstance(result, dict) and "stream" in result:
        _wake(result["stream"])
        _close(result["stream"])
