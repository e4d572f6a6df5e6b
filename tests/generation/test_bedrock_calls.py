"""Blocking calls seen from the event loop: who leaves is heard at any moment, and what came for them is closed."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from generation.bedrock_calls import call, events
from generation.efforts import Deadline


class ByHand(Executor):
    """Runs nothing: each call is answered when `answer` says so."""

    def __init__(self) -> None:
        self.pending: list[Future[Any]] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.pending.append(future)
        if getattr(function, "__name__", "") == "_close":
            future.set_result(function(*arguments, **named))
        return future

    def answer(self, value: object) -> None:
        self.pending[0].set_result(value)


class Stream:
    """A stream of the vendor that says nothing, and knows whether it was closed."""

    closed = False

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> dict[str, int]:
        raise AssertionError("nobody reads by hand")

    def close(self) -> None:
        self.closed = True


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("between", range(6))
async def test_who_leaves_as_the_reply_comes_has_left_and_the_reply_is_closed(between: int) -> None:
    threads, stream = ByHand(), Stream()
    task = asyncio.create_task(call(threads, dict, 5.0, "m"))
    await turns(3)
    threads.answer({"stream": stream})
    await turns(between)
    if task.cancel():  # False: it had ended before anybody left
        with pytest.raises(asyncio.CancelledError):
            await task
        await turns(3)
        assert stream.closed
    else:
        assert task.result() == {"stream": stream}


@pytest.mark.parametrize("between", range(6))
async def test_who_leaves_as_an_event_comes_has_left_and_the_stream_is_closed(between: int) -> None:
    threads, stream = ByHand(), Stream()
    reading = events(threads, stream, 5.0, "m", Deadline(5.0))
    task = asyncio.ensure_future(anext(reading))
    await turns(3)
    threads.answer({"piece": 1})
    await turns(between)
    if task.cancel():
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stream.closed
    else:
        assert task.result() == {"piece": 1}
        await reading.aclose()


async def test_at_least_one_of_those_moments_is_the_one_at_which_both_happen() -> None:
    left, ended = 0, 0
    for between in range(6):
        threads = ByHand()
        task = asyncio.create_task(call(threads, dict, 5.0, "m"))
        await turns(3)
        threads.answer({})
        await turns(between)
        left, ended = left + task.cancel(), ended + task.done()
        await asyncio.gather(task, return_exceptions=True)
    assert left >= 2
    assert ended >= 1
