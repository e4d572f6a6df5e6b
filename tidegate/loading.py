"""Settings from four layers: defaults < YAML file < TIDEGATE_* variables < --set. All of it, or all problems at once.

The file is the one named by --config, else by TIDEGATE_CONFIG, else tidegate.yaml in the working directory, else none.
Paths written in the file are relative to the file's folder; paths in variables and --set to the working directory;
the default data folder lies beside the file, or in the working directory when there is none.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from domain.errors import ConfigError
from tidegate import gatelist, keys, yamlfile
from tidegate.effective import leaves
from tidegate.settings import Settings

FILE_NAME = "tidegate.yaml"
PREFIX = "TIDEGATE_"
NOT_SETTINGS = {
    "TIDEGATE_CONFIG": "the settings file to read when --config is not given",
    "TIDEGATE_DATA": "the folder of public test collections; read by tests only",
}
# Kubernetes gives every pod these variables for a service called `tidegate` or `tidegate-...`; nobody typed them.
_SERVICE_LINK = re.compile(
    r"TIDEGATE_([A-Z0-9]+_)*(SERVICE_(HOST|PORT(_[A-Z0-9]+)*)|PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?)"
)
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend: where it stands, which key, what was got and is wanted, the nearest valid spelling if any."""

    place: str
    key: str
    text: str
    nearest: str = ""

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return ": ".join(part for part in (self.place, self.key, self.text) if part) + hint


class InvalidSettings(ConfigError):
    """The settings as given cannot be used; `problems` has all of them. The operator acts."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = f"{count} problems in the settings:\n  " if count > 1 else ""
        super().__init__(head + "\n  ".join(map(str, self.problems)))


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings in force; `origins` says for every key path who set it: `default`, `FILE:LINE`, a variable, `--set`."""

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Given:
    value: object
    origin: str
    places: gatelist.Places = ()  # of the gates in a list of gates


_Layer = dict[str, _Given]


def load(path: Path | None, env: Mapping[str, str], overrides: Mapping[str, object], cwd: Path | None = None) -> Loaded:
    """The settings in force. Raises InvalidSettings with every problem of every layer.

    `overrides` maps key paths (`serving.port`) to values; text is read as a variable's would be.
    """
    cwd = cwd or Path.cwd()
    problems: list[Problem] = []
    file = _find(path, env, cwd, problems)
    base = file.parent if file else cwd
    given = {key: _Given(value, "default") for key, value in leaves(Settings())}
    given["data_dir"] = _Given(base / Settings().data_dir, "default")
    notes: list[str] = []
    if file:
        given = _over(given, _from_file(file, _label(file, cwd), problems, notes))
    given = _over(given, _from_env(env, cwd, problems))
    given = _over(given, _from_overrides(overrides, cwd, problems))
    given = _with_amended_gates(given)
    settings = _validated(given, problems)
    if problems or settings is None:
        raise InvalidSettings(sorted(problems, key=_in_reading_order))
    origins = {key: given[key].origin for key, _ in leaves(settings)}
    return Loaded(settings, origins, file, tuple(notes))


def _over(given: _Layer, layer: _Layer) -> _Layer:
    """The layer on top: its values win, and a list of gates also over every amendment from below."""
    replaced = keys.GATES in layer
    return {key: one for key, one in given.items() if not (replaced and _amends(key))} | layer


def _with_amended_gates(given: _Layer) -> _Layer:
    amendments = {key: one for key, one in given.items() if _amends(key)}
    if not amendments:
        return given
    base = given[keys.GATES]
    rows = gatelist.amend(base.value, {key[len(keys.GATES) + 1 :]: one.value for key, one in amendments.items()})
    return given | {keys.GATES: _Given(rows, next(reversed(amendments.values())).origin, base.places)}


def _amends(key: str) -> bool:
    return key.startswith(f"{keys.GATES}.")


# ---------------------------------------------------------------------------------------------- the file


def _find(path: Path | None, env: Mapping[str, str], cwd: Path, problems: list[Problem]) -> Path | None:
    if path is not None:
        return cwd / path
    if "TIDEGATE_CONFIG" in env:
        if env["TIDEGATE_CONFIG"].strip():
            return cwd / env["TIDEGATE_CONFIG"]
        problems.append(Problem("TIDEGATE_CONFIG", "", "is empty, wanted the path of a file; unset it to use none"))
        return None
    if os.path.lexists(cwd / FILE_NAME):
        return cwd / FILE_NAME
    if os.path.lexists(cwd / "tidegate.yml"):
        text = f"is not read by itself: rename it to {FILE_NAME} or give it with --config"
        problems.append(Problem("tidegate.yml", "", text))
    return None


def _from_file(file: Path, label: str, problems: list[Problem], notes: list[str]) -> _Layer:
    text = _text(file, label, problems)
    if text is None:
        return {}
    if not text.strip():
        # A blank file is far more often a write that failed than a wish for the defaults.
        way_out = "write `{}` for the defaults, or start from examples/tidegate.yaml"
        problems.append(Problem(label, "", f"is empty: {way_out}"))
        return {}
    entries, faults = yamlfile.read(text)
    problems.extend(Problem(f"{label}:{fault.line}" if fault.line else label, "", fault.text) for fault in faults)
    if not entries and not faults:
        notes.append(f"{label} sets nothing: every value is a default, a variable or --set.")
    return dict(_entries(entries, "", label, file.parent, problems))


def _text(file: Path, label: str, problems: list[Problem]) -> str | None:
    try:
        with file.open("rb") as handle:
            content = handle.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            problems.append(Problem(label, "", "is larger than 1 MiB, wanted a settings file"))
            return None
        return content.decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        problems.append(Problem(label, "", f"cannot be read ({reason}), wanted a settings file"))
    except UnicodeDecodeError as error:
        problems.append(Problem(label, "", f"is not UTF-8 text (byte {error.start}), wanted a settings file"))
    except ValueError:  # a NUL character in the name
        problems.append(Problem(label, "", "is not a file name"))
    return None


def _entries(
    entries: tuple[yamlfile.Entry, ...], under: str, label: str, base: Path, problems: list[Problem]
) -> Iterator[tuple[str, _Given]]:
    """The (key path, given) of everything below `under`; what stands where it cannot becomes a problem."""
    for entry in entries:
        key, place, value = f"{under}{entry.key}", f"{label}:{entry.line}", keys.plain(entry.value)
        field = keys.field_of(key)
        if "." in entry.key:
            section, _, name = entry.key.rpartition(".")
            problems.append(Problem(place, key, f"has a dot in it, wanted `{section}:` with `{name}:` below it"))
        elif field and not (key == keys.GATES and value and isinstance(entry.value, tuple)):  # below it are amendments
            places = gatelist.places(entry.value, label) if key == keys.GATES else ()
            yield key, _Given(keys.from_yaml(field, value, base), place, places)
        elif isinstance(entry.value, tuple) and entry.value:  # a section; in an unknown one each lost value is named
            yield from _entries(entry.value, f"{key}.", label, base, problems)
        elif not keys.children(key) or value:  # a section with nothing below it sets nothing, and that is fine
            problems.append(_unknown(place, key, value))


def _label(file: Path, cwd: Path) -> str:
    return str(file.relative_to(cwd) if file.is_relative_to(cwd) else file)


# ---------------------------------------------------------------------------------------------- variables and --set


def _variable(key: str) -> str:
    return PREFIX + key.replace(".", "__").upper()


def _from_env(env: Mapping[str, str], cwd: Path, problems: list[Problem]) -> _Layer:
    layer: _Layer = {}
    for name in sorted(env):
        if not name.upper().startswith(PREFIX) or name in NOT_SETTINGS or _is_service_link(name, env[name]):
            continue
        key = name[len(PREFIX) :].lower().replace("__", ".")
        if keys.field_of(key) and name == _variable(key):
            layer |= _text_layer(key, env[name], name, cwd, problems)
        else:
            unknown = _unknown(name, key, env[name])
            nearest = _variable(unknown.nearest) if unknown.nearest else ""
            problems.append(replace(unknown, key="", nearest=nearest))
    return layer


def _is_service_link(name: str, value: str) -> bool:
    return bool(_SERVICE_LINK.fullmatch(name)) or (name.endswith("_PORT") and value.startswith("tcp://"))


def _from_overrides(overrides: Mapping[str, object], cwd: Path, problems: list[Problem]) -> _Layer:
    layer: _Layer = {}
    for key, value in overrides.items():
        field = keys.field_of(key)
        if not field:
            problems.append(_unknown("--set", key, value))
        elif isinstance(value, str):
            layer |= _text_layer(key, value, "--set", cwd, problems)
        else:
            layer[key] = _Given(keys.from_yaml(field, value, cwd), "--set")
    return layer


def _text_layer(key: str, text: str, place: str, cwd: Path, problems: list[Problem]) -> _Layer:
    field = keys.field_of(key)
    if field is None:
        raise KeyError(f"{key} is not a setting; the caller should have looked: this is a bug")
    try:
        return {key: _Given(keys.from_text(field, text, cwd), place)}
    except keys.Unreadable:
        got, near = keys.printable(key, text), keys.nearest_word(field, text)
        problems.append(Problem(place, key, f"got {got}, wanted {keys.wanted(field)}", near))
        return {}


# ---------------------------------------------------------------------------------------------- all together


def _validated(given: _Layer, problems: list[Problem]) -> Settings | None:
    tree: dict[str, Any] = {}  # Any: nested as pydantic takes it
    for key, one in given.items():
        if _amends(key):
            continue  # in the list by now
        *above, name = key.split(".")
        node = tree
        for section in above:
            node = node.setdefault(section, {})
        node[name] = one.value
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            problems.extend(_problems(detail, given))
    return None


def _problems(detail: ErrorDetails, given: _Layer) -> Iterator[Problem]:
    under = ".".join(str(part) for part in detail["loc"] if part != "[key]")
    if detail["type"] == "contradiction":
        for key, want in detail["ctx"]["found"]:
            path = f"{under}.{key}" if under else key
            one = given.get(path) or _below(path, given)
            yield Problem(one.origin, path, f"got {keys.printable(path, one.value)}, wanted {want}")
        return
    if under.startswith(f"{keys.GATES}."):
        yield _gate_problem(detail, given)
        return
    path = under
    while path not in given:  # an item of a list is its key's, and so is each field of an item
        path = path.rpartition(".")[0]
    field, one = keys.field_of(path), given[path]
    if detail["loc"][-1] == "[key]" or field is None:
        yield _unknown(one.origin, path, one.value)
    else:
        text = f"got {keys.printable(path, one.value)}, wanted {keys.wanted(field)}"
        yield Problem(one.origin, path, text, keys.nearest_word(field, one.value))


def _gate_problem(detail: ErrorDetails, given: _Layer) -> Problem:
    """A problem of one gate, wherever that key was amended, else at its line."""
    one, index = given[keys.GATES], int(detail["loc"][2])
    name, text, near = gatelist.explain(detail, one.value)
    there = one.places[index] if index < len(one.places) else {}
    amended = given.get(f"{keys.GATES}.{gatelist.amendable(one.value, index)}.{name}")
    place = amended.origin if amended else there.get(name) or there.get("", one.origin)
    return Problem(place, f"{keys.GATES}[{index + 1}]" + (f".{name}" if name else ""), text, near)


def _below(section: str, given: _Layer) -> _Given:
    """What is given below a section, with the origin of whoever set something there last."""
    inside = {key: one for key, one in given.items() if key.startswith(f"{section}.")}
    origins = [one.origin for one in inside.values() if one.origin != "default"]
    return _Given({key.removeprefix(f"{section}."): one.value for key, one in inside.items()}, [*origins, "default"][0])


def _unknown(place: str, key: str, value: object) -> Problem:
    name = key if key.isprintable() else ascii(key)
    if below := keys.children(key):
        return Problem(
            place, name, f"is a section (got {keys.printable(key, value)}), wanted a key below it: {', '.join(below)}"
        )
    return Problem(place, name, f"is not a setting (got {keys.printable(key, value)})", keys.nearest_key(key))


def _in_reading_order(problem: Problem) -> tuple[str, int]:
    label, _, line = problem.place.rpartition(":")
    return (label, int(line)) if line.isdecimal() else (problem.place, 0)
