"""Waiting for how far another thread has come, not for seconds: a busy machine takes as long as it takes."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any


def wait_until_main_is_in(function: Callable[..., Any], knows: str, within_s: float = 60.0) -> None:
    """Comes back when the main thread runs `function` and its variable `knows` has a value."""
    deadline = time.monotonic() + within_s
    while not _main_is_in(function, knows):
        if time.monotonic() > deadline:
            raise AssertionError(f"the main thread did not come to {function.__name__} within {within_s:g} s")
        time.sleep(0.01)


def _main_is_in(function: Callable[..., Any], knows: str) -> bool:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and frame.f_code is not function.__code__:
        frame = frame.f_back
    return frame is not None and knows in frame.f_locals
