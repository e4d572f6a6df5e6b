"""The edge of the command line: exit codes, what is printed where, and the options every verb shares.

Results go to stdout, everything else to stderr. Nothing here is coloured, so NO_COLOR has nothing to switch off, and
what a terminal cannot show is escaped instead of ending the program.
"""

import io
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, TextIO
from unicodedata import category

import typer

from domain.errors import AddressTaken, BadRequest, CannotCache, ConfigError, IncompatibleIndex, NotFound, TidegateError

if TYPE_CHECKING:  # pydantic takes a third of a second, and `--help` does not need it
    from tidegate.loading import Loaded


class Code(IntEnum):
    """How the program ends. A verb returns one of these, or nothing for DONE."""

    DONE = 0
    REFUSED = 1  # refused, or failed
    USAGE = 2  # the command line or the settings cannot be understood
    INCONCLUSIVE = 3
    NOT_MEASURED = 4
    PARTIAL = 5  # some files failed
    INTERRUPTED = 130


# A subclass inherits its parent's code.
EXIT_CODES: Mapping[type[Exception], Code] = {
    TidegateError: Code.REFUSED,
    BadRequest: Code.USAGE,
    NotFound: Code.REFUSED,
    ConfigError: Code.USAGE,
    IncompatibleIndex: Code.REFUSED,
    CannotCache: Code.REFUSED,
    AddressTaken: Code.REFUSED,
}


def exit_code(error: TidegateError) -> Code:
    """The code of an error's class, or of its nearest ancestor in the table."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


@dataclass(frozen=True, slots=True)
class Shared:
    """What was given before or after any verb: the settings file and the single values set."""

    config: Path | None
    overrides: Mapping[str, str]


def loaded(ctx: typer.Context) -> "Loaded":
    """The settings in force for this call; notes about them go to stderr. Raises InvalidSettings."""
    from tidegate.loading import load

    shared = ctx.find_object(Shared) or Shared(None, {})
    result = load(shared.config, os.environ, shared.overrides)
    for text in result.notes:
        note(text)
    return result


def say(text: str) -> None:
    """Print a result for a person."""
    _print(_safe(text))


def say_piece(text: str) -> None:
    """Print a piece of a result for a person at once, as it comes."""
    sys.stdout.write(_safe(text))
    sys.stdout.flush()


def say_json(value: object) -> None:
    """Print a result for a machine: one JSON document, ASCII only, NaN refused."""
    _print(json.dumps(value, ensure_ascii=True, allow_nan=False, indent=2))


def say_json_line(value: object) -> None:
    """As `say_json`, on one line: for results that come one a line."""
    _print(json.dumps(value, ensure_ascii=True, allow_nan=False))


def note(text: str) -> None:
    """Tell a person something beside the result."""
    _print(f"note: {_safe(text)}", sys.stderr)


def complain(text: str) -> None:
    """Say what went wrong: one line, unless several problems are listed."""
    _print(f"error: {_safe(text)}", sys.stderr)


def make_streams_safe() -> None:
    """Escape, on stdout and stderr, every character that their encoding cannot hold."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not when a test or a parent put something else there
            stream.reconfigure(errors="backslashreplace")


def silence_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not fail once more on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _print(text: str, stream: TextIO | None = None) -> None:
    # Not typer.echo: it answers an ASCII terminal in UTF-8.
    print(text, file=stream or sys.stdout)


def _safe(text: str) -> str:
    """Control characters escaped: what stands in a document or a setting must not steer the terminal.

    Blanks of every width stay, no-break and ideographic ones too: Python does not count them as printable.
    """
    return "".join(
        c if c in "\n\t" or c.isprintable() or category(c) == "Zs" else c.encode("unicode_escape").decode()
        for c in text
    )
