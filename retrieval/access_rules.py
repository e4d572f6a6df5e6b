"""Who may read a file that does not say it itself: a note beside it, a note in its folder, a rule of the settings.

    report.pdf.access.yaml    groups: [hr, board]    of that file alone
    access.yaml               groups: [staff]        of the files in that folder and below, up to the next such note

The nearest word counts: what a document says of itself, then its own note, then its folder's, then the first rule whose
path fits, then the default. A note that cannot be understood leaves its files out, because guessing could show them to
the wrong people; so does one whose name is all but right, because whoever wrote it takes it to be heard. Notes say
nothing of tenants.
"""

import re
import unicodedata
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
    _notes: dict[Path, "_Notes"] = field(default_factory=dict, init=False)

    def groups_of(self, path: Path, name: str) -> frozenset[str] | None:
        """The groups that are said of a file, None where nothing is. Raises BadNote."""
        own = self._said(path.parent, path.name + OF_FILE)
        if own is not None:
            return own
        folder = self._folder(path.parent)
        return ruled(name, self.rules) if folder is None else folder

    def is_about_nothing(self, note: Path) -> bool:
        """True for the note of a file that is not there, under no spelling of its name."""
        if _alike(note.name) == OF_FOLDER:
            return False
        return not self._in(note.parent).heard_by_any(note.name)

    def _folder(self, folder: Path) -> frozenset[str] | None:
        if folder not in self._folders:
            own = self._said(folder, OF_FOLDER)
            above = own is None and folder != self.root and self.root in folder.parents
            self._folders[folder] = self._folder(folder.parent) if above else own
        return self._folders[folder]

    def _said(self, folder: Path, name: str) -> frozenset[str] | None:
        """What the note of this name says, None where there is none. Raises BadNote for one that is nearly named so."""
        found = self._in(folder).like(name)
        if not found:
            return None
        if len(found) > 1 or _nfc(found[0]) != _nfc(name):
            raise BadNote(f"{', '.join(map(_nfc, found))}: a note about access must be one file named {_nfc(name)}")
        return _note(folder / found[0])

    def _in(self, folder: Path) -> "_Notes":
        if folder not in self._notes:
            self._notes[folder] = _Notes.of(folder)
        return self._notes[folder]


@dataclass(frozen=True, slots=True)
class _Notes:
    """The notes of one folder by what their names are like, and all names there as they are written."""

    by_likeness: Mapping[str, tuple[str, ...]]
    there: frozenset[str]

    @staticmethod
    def of(folder: Path) -> "_Notes":
        """Those that lie in a folder. Raises BadNote when it cannot be listed."""
        try:
            names = sorted(path.name for path in folder.iterdir())
        except OSError as error:
            raise BadNote(
                f"{folder.name} may hold notes about access and cannot be listed: {error.strerror}"
            ) from error
        found: dict[str, tuple[str, ...]] = {}
        for name in filter(is_note, names):
            found[_alike(name)] = (*found.get(_alike(name), ()), name)
        return _Notes(found, frozenset(map(_nfc, names)) if found else frozenset())

    def like(self, name: str) -> list[str]:
        """The notes that may be meant by this name; none that is right for another file, of another spelling."""
        found = self.by_likeness.get(_alike(name), ())
        return [note for note in found if _nfc(note) == _nfc(name) or not self._of_another(note, _target(name))]

    def _of_another(self, note: str, file: str) -> bool:
        return _alike(note) != OF_FOLDER and _target(note) in self.there - {file}

    def heard_by_any(self, note: str) -> bool:
        """Whether a file is there that this note may mean."""
        return any(_alike(name + OF_FILE) == _alike(note) for name in self.there)


def is_note(name: str) -> bool:
    """True for the name of a file that says who may read others, or would if it were spelled right."""
    last = _alike(name.rpartition("/")[2])
    return last == OF_FOLDER or last.endswith(OF_FILE)


def _nfc(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _alike(name: str) -> str:
    """What names have in common that differ in case, in how accents are written, or in the ending of YAML."""
    folded = _nfc(_nfc(name).casefold())
    return f"{folded[:-4]}.yaml" if folded.endswith(".yml") else folded


def _target(note: str) -> str:
    """The file that a note is about: its own name without what makes it a note."""
    return re.sub(r"\.access\.ya?ml$", "", _nfc(note), flags=re.IGNORECASE)


def ruled(name: str, rules: Iterable[Rule]) -> frozenset[str] | None:
    """The groups of the first rule whose path fits, None when none does."""
    return next((rule.groups for rule in rules if _pattern(_nfc(rule.path)).fullmatch(name)), None)


def _note(path: Path) -> frozenset[str]:
    try:
        if not path.is_file():
            raise BadNote(f"{path.name} says who may read it and is no file, or a link to none")
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
