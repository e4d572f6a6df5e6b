"""Progress is for people: a bar on a terminal, a line per step in a log, and never anything on stdout."""

import os
import pty
import subprocess
import sys

import pytest

from tidegate.progress import progress

STEPS = """
from tidegate.progress import progress
with progress() as report:
    for done in range(101):
        report("reading", done, 100)
    report("writing", 0, 0)
    print("a result")
"""


def test_a_log_gets_one_line_per_step(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as report:
        for done in range(101):
            report("reading", done, 100)
        report("writing", 0, 0)
    assert capsys.readouterr() == ("", "reading ...\nwriting ...\n")


def test_a_terminal_gets_a_bar_and_stdout_only_the_result() -> None:
    ours, terminal = pty.openpty()
    command = [sys.executable, "-c", STEPS]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=terminal, timeout=60, check=True)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    os.close(terminal)
    assert done.stdout == b"a result\n"
    assert "100/100" in shown
    assert "writing" in shown
    assert "a result" not in shown


def test_a_closed_stderr_is_no_reason_to_write_to_stdout() -> None:
    command = ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, STEPS]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True)
    assert done.stdout == b"a result\n"
