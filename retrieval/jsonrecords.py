"""Records as JSON in files: one file replaced whole, or lines only ever added. Both all or nothing, also when killed.

What writes here must be the only writer (registry.py holds the lock); reading takes no lock. What was acknowledged is
on disk. A last line without its end is a write that never returned: nobody reads it, and the next writer drops it.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from domain.errors import StorageError


def plain(record: Any) -> Any:  # a frozen dataclass of the domain, or a list of them
    """The record as what JSON knows."""
    kind: Any = type(record)
    return _adapter(kind).dump_python(record, mode="json")


def encoded(value: Any) -> bytes:  # whatever `plain` gives
    """One line of JSON without its end.

    Half a character, as a terminal of another encoding puts into a reason, becomes a question mark: no file can hold
    it, and no move may fail because of how its reason is spelled.
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode(errors="replace")


def decoded(kind: Any, place: object, content: bytes, remove: object = "it") -> Any:  # the caller knows the kind
    """A record of `kind`. Raises StorageError naming `place`, what is wrong there and what may be removed instead."""
    try:
        return _adapter(kind).validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise damaged(place, f"{where}: {first['msg']}", remove) from error


def damaged(place: object, why: str, remove: object = "it") -> StorageError:
    """What to tell an operator about a record that cannot be what was written."""
    return StorageError(f"{place} is damaged ({why}): restore it from a backup or remove {remove}.")


def read(path: Path) -> bytes | None:
    """The content of a file, None when there is none. Raises StorageError when it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"Cannot read {path} ({error.strerror}): let this user read it.") from error


def read_lines(path: Path) -> list[bytes]:
    """The whole lines of a file without their ends, none when there is no file."""
    return (read(path) or b"").split(b"\n")[:-1]


def replace_file(path: Path, content: bytes) -> None:
    """The file with new content, all or nothing. Raises OSError, which names the file."""
    fresh = path.with_name(f".{path.name}.new")
    with _naming(path):
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        sync_folder(path.parent)


def keep_record(path: Path, record: Mapping[str, Any]) -> None:
    """A JSON object as a file, all or nothing, in a folder that is made if need be. Raises StorageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(record, indent=1, allow_nan=False).encode() + b"\n")
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written ({error.strerror}): make room, or let this user write."
        ) from error


def append_line(path: Path, line: bytes) -> None:
    """One more line, on disk when this returns. Raises OSError, which names the file; earlier lines are safe."""
    with _naming(path):
        with path.open("a+b") as lines:
            lines.seek(0)
            lines.truncate(lines.read().rfind(b"\n") + 1)  # a torn line must not be glued to this one
            lines.write(line + b"\n")
            lines.flush()
            os.fsync(lines.fileno())
        sync_folder(path.parent)


def sync_tree(folder: Path) -> None:
    """Everything in a folder is on disk."""
    for parent, _, files in os.walk(folder, topdown=False):
        for name in files:
            with Path(parent, name).open("rb") as file:
                os.fsync(file.fileno())
        sync_folder(Path(parent))


def sync_folder(folder: Path) -> None:
    """The names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """The system names a file that cannot be opened, but not one that cannot be written to."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # pydantic: a record type to its JSON form
    return TypeAdapter(kind)
