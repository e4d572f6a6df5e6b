"""Who may read a file that does not say it itself: a note beside it, a note in its folder, a rule of the settings.

    report.pdf.access.yaml    groups: [hr, board]    of that file alone
    access.yaml               groups: [staff]        of the files in that folder and below, up to the next such note

The nearest word counts: what a document says of itself, then its own note, then its folder's, then the first rule whose
path fits, then the default. A note that cannot be understood leaves its files out, because guessing could show them to
the wrong people. Notes say nothing of tenants.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import yaml

OF_FILE, OF_FOLDER = ".access.yaml", "access.yaml"
LARGEST = 64 << 10  # bytes of a note


@dataclass(frozen=True, slots=True)
class Rule:
    """Files whose path in the corpus fits `path` are read by `groups`. `**` stands for any folders, `*` for a name."""

    path: str
    groups: frozenset[str]


class BadNote(Exception):
    """A note about access that cannot be understood, with what is wrong with it."""


@dataclass
class Access:
    """The notes below `root` and the rules of the settings. Notes are read once; make another one to look again."""

    root: Path
    rules: tuple[Rule, ...] = ()
    _folders: dict[Path, frozenset[str] | None] = field(default_factory=dict, init=False)

    def groups_of(self, path: Path, name: str) -> frozenset[str] | None:
        """The groups that are said of a file, None where nothing is. Raises BadNote."""
        own = _note(path.with_name(path.name + OF_FILE))
        if own is not None:
            return own
        folder = self._folder(path.parent)
        return ruled(name, self.rules) if folder is None else folder

    def _folder(self, folder: Path) -> frozenset[str] | None:
        if folder not in self._folders:
            own = _note(folder / OF_FOLDER)
            above = own is None and folder != self.root and self.root in folder.parents
            self._folders[folder] = self._folder(folder.parent) if above else own
        return self._folders[folder]


def is_note(name: str) -> bool:
    """True for the name of a file that says who may read others."""
    last = name.rpartition("/")[2]
    return last == OF_FOLDER or last.endswith(OF_FILE)


def ruled(name: str, rules: Iterable[Rule]) -> frozenset[str] | None:
    """The groups of the first rule whose path fits, None when none does."""
    return next((rule.groups for rule in rules if _pattern(rule.path).fullmatch(name)), None)


def _note(path: Path) -> frozenset[str] | None:
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        said = yaml.safe_load(content) if len(content) <= LARGEST else None
    except (OSError, yaml.YAMLError, UnicodeError, ValueError, RecursionError) as error:
        first = " ".join(str(error).split())[:200]
        raise BadNote(f"{path.name} says who may read it and cannot be read: {first}") from error
    if not isinstance(said, Mapping) or set(said) != {"groups"}:
        raise BadNote(f"{path.name} must say `groups: [name, ...]` and nothing else")
    groups = [said["groups"]] if isinstance(said["groups"], str) else said["groups"]
    if not isinstance(groups, list) or not all(isinstance(each, str) and each.strip() for each in groups):
        raise BadNote(f"{path.name}: groups must be a name or a list of names; an empty list is nobody")
    return frozenset(each.strip() for each in groups)


@lru_cache(256)
def _pattern(path: str) -> re.Pattern[str]:
    """`hr/**` fits all below hr, `**/x.md` also x.md itself, `*` never a slash."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", path)
    return re.compile("".join(parts.get(piece, re.escape(piece)) for piece in pieces), re.DOTALL)
