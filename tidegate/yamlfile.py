"""A YAML file as (key path, value, line): what was written, where, and every reason it cannot be read.

Scalars follow the YAML 1.2 core schema, so `on`, `no` and 012 stay text and 1e3 is a number; PyYAML alone follows
1.1, where `on:` is the key True and 1e3 is text. Repeated keys and aliases are refused: each hides a value.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import yaml

_TAG = "tag:yaml.org,2002:"
_RULES = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9]*)", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", list("-+.")),
)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012 - the parent's table of YAML 1.1 rules, emptied

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # PyYAML
            raise yaml.composer.ComposerError(
                problem="aliases are not used here: write the value out", problem_mark=mark
            )
        return super().compose_node(parent, index)


for _kind, _pattern, _first in _RULES:
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(rf"^(?:{_pattern})$"), _first)


@dataclass(frozen=True, slots=True)
class Entry:
    """One key as written: its path from the top, the line (from 1) and the value below it.

    A mapping's value is a tuple of entries, a sequence's is a list; scalars are str, int, float, bool or None.
    """

    key: str
    line: int
    value: object


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a piece of the file cannot be read. `line` is 0 when no line is to blame."""

    line: int
    text: str


def read(text: str) -> tuple[tuple[Entry, ...], tuple[Fault, ...]]:
    """The entries of the top mapping and all faults found. A file with only comments has no entries."""
    faults: list[Fault] = []
    try:
        root = yaml.compose(text, Loader=_Loader)
        if root is None:
            return (), ()
        if not isinstance(root, yaml.MappingNode):
            kind = "a list" if isinstance(root, yaml.SequenceNode) else "a single value"
            return (), (Fault(_line(root), f"the file holds {kind}, wanted `section:` with keys below it"),)
        return tuple(_entries(root, faults)), tuple(faults)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        return (), (Fault(mark.line + 1 if mark else 0, f"not YAML: {reason}"),)
    except yaml.YAMLError as error:  # unprintable characters
        return (), (Fault(0, f"not YAML: {' '.join(str(error).split())}"),)
    except RecursionError:
        return (), (Fault(0, "nested too deeply, wanted sections with keys below them"),)


def scalar(text: str) -> object:
    """What a YAML file would read from this plain text: a number, true, false, None or the text itself."""
    for kind, pattern, _ in _RULES:
        if re.fullmatch(pattern, text):
            return _constructed(kind, text)
    return text


def _entries(node: yaml.MappingNode, faults: list[Fault]) -> Iterator[Entry]:
    seen: dict[str, int] = {}
    for key_node, value_node in node.value:
        line = _line(key_node)
        if not isinstance(key_node, yaml.ScalarNode):
            faults.append(Fault(line, "a key is a list or a mapping, wanted a name"))
            continue
        key = key_node.value
        if key in seen:
            faults.append(Fault(line, f"key {key!r} is given twice, first on line {seen[key]}: keep one"))
            continue
        seen[key] = line
        yield Entry(key, line, _value(value_node, faults))


def _value(node: yaml.Node, faults: list[Fault]) -> object:
    if isinstance(node, yaml.MappingNode):
        return tuple(_entries(node, faults))
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, faults) for item in node.value]
    kind = node.tag.removeprefix(_TAG)
    try:
        return _constructed(kind, node.value)
    except (KeyError, ValueError):
        faults.append(Fault(_line(node), f"the tag {node.tag!r} does not fit its value: write a plain value"))
        return None


def _constructed(kind: str, text: str) -> object:
    """The value of one scalar; KeyError for a kind unknown here, ValueError for text that is not of its kind."""
    return _CONSTRUCTORS[kind](text)


def _float(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


_CONSTRUCTORS: Mapping[str, Callable[[str], object]] = {
    "null": lambda _: None,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "int": int,
    "float": _float,
    "str": str,
}
