"""What may be written where: the keys there are, what each one takes, and the nearest valid spelling of a wrong one.

Everything is derived from the models in settings.py. A key is a path with dots: `retrieval.k1`. The gate list is a
value, and its gates over all questions are sections too, so that one bound can be amended:
`evaluation.gates.recall@6.floor`.
"""

import difflib
import json
import math
import os
import re
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from eval.gates import CLOSED
from tidegate import yamlfile
from tidegate.effective import shown
from tidegate.section import Section
from tidegate.settings import Settings
from tidegate.settings_release import DEFAULT_GATES, PLAIN, RANKED, GateLine

GATES = "evaluation.gates"
AMENDABLE = ("floor", "max_drop", "min_items", "advisory")  # metric and slice are what a gate is found by
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class Unreadable(Exception):
    """A text is not of the kind its key takes. Never leaves this ring: loading.py turns it into a problem."""


# ---------------------------------------------------------------------------------------------- the keys there are


def field_of(key: str) -> FieldInfo | None:
    """The field a value may be written to, or None for a section and for what does not exist."""
    gate, _, name = key.rpartition(".")
    if gate.startswith(f"{GATES}.") and name in AMENDABLE and _is_metric(gate.removeprefix(f"{GATES}.")):
        return GateLine.model_fields[name]
    return _fields().get(key)


def children(key: str) -> tuple[str, ...]:
    """The names that may stand below a section (`""` is the top); empty for anything else."""
    if key.startswith(f"{GATES}.") and _is_metric(key.removeprefix(f"{GATES}.")):
        return AMENDABLE
    return _sections().get(key, ())


def nearest_key(key: str) -> str:
    """The existing key most like a wrong one, or "": among its siblings, by whole path, by last name."""
    *above, name = key.split(".")
    if key.startswith(f"{GATES}."):
        return _nearest_amendment(key)
    every = [*_fields(), *(f"{GATES}.{gate.metric}.floor" for gate in DEFAULT_GATES if gate.floor is not None)]
    siblings = children(".".join(above))
    if near := difflib.get_close_matches(name, siblings, n=1):
        return ".".join([*above, near[0]])
    if near := difflib.get_close_matches(key, every, n=1, cutoff=0.8):
        return near[0]
    by_name = {path.rpartition(".")[2]: path for path in reversed(every)}
    by_name |= {gate.metric: f"{GATES}.{gate.metric}.floor" for gate in DEFAULT_GATES if gate.floor is not None}
    near = difflib.get_close_matches(name, by_name, n=1, cutoff=0.55)
    return by_name[near[0]] if near else ""


def _nearest_amendment(key: str) -> str:
    """The amendment of a gate most like a wrong one, or "" when not even its metric is near to one there is."""
    metric, _, name = key.removeprefix(f"{GATES}.").partition(".")
    near = metric if _is_metric(metric) else nearest_metric(metric)
    names = difflib.get_close_matches(name, AMENDABLE, n=1) or ["floor"]
    return f"{GATES}.{near}.{names[0]}" if near else ""


def nearest_metric(name: str) -> str:
    """The metric most like a wrong one, or ""."""
    there = (*(f"{ranked}@{name.partition('@')[2] or 6}" for ranked in RANKED), *PLAIN, *sorted(CLOSED))
    return next(iter(difflib.get_close_matches(name, filter(_is_metric, there), n=1)), "")


def _is_metric(name: str) -> bool:
    return name in PLAIN or name in CLOSED or bool(re.fullmatch(rf"({'|'.join(RANKED)})@[1-9][0-9]{{0,3}}", name))


@cache
def _fields() -> Mapping[str, FieldInfo]:
    return dict(_walk(Settings, ""))


@cache
def _sections() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for key in _fields():
        parts = key.split(".")
        for depth in range(len(parts)):
            above = ".".join(parts[:depth])
            found[above] = tuple(dict.fromkeys((*found.get(above, ()), parts[depth])))
    return found


def _walk(section: type[Section], under: str) -> Iterator[tuple[str, FieldInfo]]:
    for key, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from _walk(kind, f"{under}{key}.")
        else:
            yield f"{under}{key}", field


# ---------------------------------------------------------------------------------------------- what a key takes


def wanted(field: FieldInfo) -> str:
    """What a field takes, as words for a person: `a whole number from 1 to 65535`."""
    kind, notes, optional = _kind(field)
    if typing.get_origin(kind) is Literal:
        text = f"one of {', '.join(typing.get_args(kind))}"
    elif kind in (int, float):
        low, high = (n.ge for n in notes if isinstance(n, Ge)), (n.le for n in notes if isinstance(n, Le))
        text = f"a {'whole ' if kind is int else ''}number from {next(low)} to {next(high)}"
    else:
        text = {bool: "true or false", Path: "a path"}.get(kind) or next(n for n in notes if isinstance(n, str))
    return f"{text}, or null" if optional else text


def from_yaml(field: FieldInfo, value: object, base: Path) -> object:
    """The value as the model takes it: `yes` and `off` become booleans, texts become paths below `base`.

    Whatever does not fit is handed on unchanged, for the model to refuse.
    """
    kind, _, _ = _kind(field)
    if kind is bool and isinstance(value, str) and value.lower() in TRUE + FALSE:
        return value.lower() in TRUE
    if kind is Path and isinstance(value, str | Path) and str(value).strip() and "\0" not in str(value):
        return Path(os.path.abspath(base / os.path.expanduser(value)))  # noqa: PTH100, PTH111 - `..` goes, links stay
    return value


def from_text(field: FieldInfo, text: str, base: Path) -> object:
    """A variable's or option's text as the model takes it; what it means depends on the field. Raises Unreadable."""
    kind, _, optional = _kind(field)
    bare = text.strip()
    if not bare:
        raise Unreadable
    if optional and bare == "null":
        return None
    if kind in (int, float):
        return _number(bare)
    if kind is bool:
        if bare.lower() not in TRUE + FALSE:
            raise Unreadable
        return bare.lower() in TRUE
    if kind is tuple:
        return _list(bare)
    return from_yaml(field, text, base)


def nearest_word(field: FieldInfo, value: object) -> str:
    """The choice most like a wrong word, or ""."""
    kind, _, _ = _kind(field)
    if not isinstance(value, str):
        return ""
    choices = typing.get_args(kind) if typing.get_origin(kind) is Literal else (*TRUE, *FALSE) if kind is bool else ()
    return next(iter(difflib.get_close_matches(value.lower(), choices, n=1)), "")


def printable(key: str, value: object) -> str:
    """The value on one line of at most 80 characters, masked where it is secret, safe for any terminal."""
    if value is None:
        return "nothing"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else f"{'-' if value < 0 else ''}.inf"
    text = json.dumps(shown(key, value), ensure_ascii=True, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _kind(field: FieldInfo) -> tuple[Any, tuple[object, ...], bool]:
    """(bare type, constraints, may be null). `tuple` stands for a list of anything."""
    kind: Any = field.annotation  # Any: pydantic's own word for a type expression
    notes: tuple[object, ...] = tuple(field.metadata)
    optional = False
    if typing.get_origin(kind) in (Union, types.UnionType):
        (kind,), optional = (arm for arm in typing.get_args(kind) if arm is not type(None)), True
    if typing.get_origin(kind) is Annotated:
        kind, *more = typing.get_args(kind)
        inner = [part for note in more for part in (note.metadata if isinstance(note, FieldInfo) else [note])]
        notes += tuple(inner)
    return (tuple if typing.get_origin(kind) is tuple else kind), notes, optional


def _number(text: str) -> object:
    try:
        value = yamlfile.scalar(text)
    except ValueError:  # more digits than Python converts
        raise Unreadable from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable
    return value


def _list(text: str) -> object:
    if not text.startswith("["):
        return [item.strip() for item in text.split(",")]
    entries, faults = yamlfile.read(f"list: {text}")
    if faults or len(entries) != 1:
        raise Unreadable
    return plain(entries[0].value)


def plain(value: object) -> object:
    """What a YAML file holds without its line numbers: mappings, lists and scalars."""
    if isinstance(value, tuple):
        return {entry.key: plain(entry.value) for entry in value}
    return [plain(item) for item in value] if isinstance(value, list) else value
