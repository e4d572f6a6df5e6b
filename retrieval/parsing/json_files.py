"""JSON files: records where it looks like lines of a .jsonl, otherwise values under their paths."""

import json
from collections.abc import Iterator
from typing import Any

from retrieval.parsing.decoding import text_of
from retrieval.parsing.parsed import Draft, Limits, Parsed, Refused, one_line

Json = Any  # whatever a file holds

STATED = frozenset({"id", "_id", "doc_id", "groups", "acl", "tenant"})


def parse(content: bytes, limits: Limits) -> Parsed:
    """The values in order, a line each: "pump.limits[2].bar: 40". Entries of the outermost list are marked."""
    text, remarks = text_of(content)
    try:
        value = json.loads(text)
    except RecursionError:
        raise Refused("damaged", "is JSON nested deeper than anybody reads") from None
    except ValueError as error:
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise Refused("damaged", f"is not JSON{where}: mend it, or name it .txt") from None
    if records := _records(value):
        return Parsed("", records=records, remarks=remarks)
    draft = Draft(limits)
    entries = value if isinstance(value, list) else [value]
    for number, item in enumerate(entries, 1):
        if isinstance(value, list):
            draft.mark(f"entry {number}")
        apart = "\n\n"
        for path, told in leaves(item):
            draft.block(f"{path}: {told}" if path else told, apart)
            apart = "\n"
    title = value.get("title") if isinstance(value, dict) else None
    return draft.parsed({"title": title if isinstance(title, str) else ""}, remarks)


def _records(value: Json) -> tuple[Json, ...]:
    """The objects of a list, or the one object, where they are records: with a text, and an id or readers of their own.

    One that looks like a record makes the file one of records: its readers must not be lost among values.
    """
    entries = value if isinstance(value, list) else [value]
    objects = [entry for entry in entries if isinstance(entry, dict)]
    stated = any("text" in entry and not STATED.isdisjoint(entry) for entry in objects)
    return tuple(objects) if stated and len(objects) == len(entries) else ()


def leaves(value: Json) -> Iterator[tuple[str, str]]:
    """Every value that is no list or object, with its path; text keeps its own lines."""
    stack: list[tuple[str, Json]] = [("", value)]
    while stack:
        path, at = stack.pop()
        if isinstance(at, dict):
            stack += [(f"{path}.{name}" if path else one_line(name), inner) for name, inner in reversed(at.items())]
        elif isinstance(at, list):
            if at and all(isinstance(inner, str | int | float) for inner in at) and sum(len(str(x)) for x in at) < 200:
                yield path, ", ".join(map(str, at))
            else:
                stack += [(f"{path}[{i}]", inner) for i, inner in reversed(list(enumerate(at)))]
        elif at is not None:
            yield path, json.dumps(at) if isinstance(at, bool) else str(at)
