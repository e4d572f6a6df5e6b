"""A corpus on disk as documents, with an account of what became of every file.

Nothing is left out without a word: whatever is not indexed is in `Corpus.outcomes` with its reason. How one file is
read is reading.py; what happens to the documents next, chunking.py.
"""

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from domain.errors import ConfigError, CorpusError
from domain.ingestion import FileOutcome, FileStatus
from domain.types import Document
from retrieval.access_rules import Access, BadNote, Rule, is_note, ruled
from retrieval.parsing.parsed import DEFAULTS, Limits
from retrieval.reading import READERS, Reading, Source, read

T = TypeVar("T")


@dataclass
class Corpus:
    """The documents under `root` in a fixed order; iterate to read them, then look at `outcomes`.

    `format` is "folder" (every kind of READERS), "beir" (a folder with corpus.jsonl or corpus.jsonl.gz) or
    "auto". Documents that name no groups get those of a note beside them or of the first of `rules` that fits
    (access_rules.py), else `default_groups`; when those are empty, nobody may read them.
    Iterating raises CorpusError when the root cannot be read, and at the end when two records share an id.
    """

    root: Path
    format: str = "auto"
    default_groups: frozenset[str] = frozenset()
    tenant: str = "default"
    limits: Limits = DEFAULTS
    rules: tuple[Rule, ...] = ()
    outcomes: list[FileOutcome] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.root = Path(self.root)
        self.default_groups = frozenset(self.default_groups)
        if self.format not in ("auto", "folder", "beir"):
            raise ConfigError(f"Corpus format '{self.format}' is not known: use auto, folder or beir.")

    def __iter__(self) -> Iterator[Document]:
        return self.read(self.reading)

    def reading(self, source: Source) -> Iterator[Reading[Document]]:
        """What one file of it comes to, under the rules and the defaults of the corpus."""
        said = ruled(source.name, self.rules) if source.groups is None else None  # of a file that lies elsewhere
        return read(source, self.default_groups if said is None else said, self.tenant)

    def read(
        self, reading: Callable[[Source], Iterable[Reading[T]]], entries: Iterable[Source | FileOutcome] | None = None
    ) -> Iterator[T]:
        """What `reading` makes of every file's documents, in order, with the same account whoever reads.

        `reading` is asked once for each source of `entries`, in their order; left out, they are looked up now. The
        readings of a file may come from several of its ranges. Raises CorpusError as iterating does.
        """
        self.outcomes = []
        places: dict[str, str] = {}
        clashes: list[str] = []
        for entry in self.entries() if entries is None else entries:
            if isinstance(entry, FileOutcome):
                self.outcomes.append(entry)
                continue
            for doc_id, place, made in self._account(entry.name, reading(entry)):
                if doc_id in places:
                    clashes.append(f"'{doc_id}' in {places[doc_id]} and in {place}")
                else:
                    places[doc_id] = place
                    yield made
        if clashes:
            more = f" and {len(clashes) - 5} more" if len(clashes) > 5 else ""
            raise CorpusError(
                f"Document ids must be unique in {self.root}, but there is {'; '.join(clashes[:5])}{more}: "
                "rename one of each pair."
            )

    def _account(self, name: str, readings: Iterable[Reading[T]]) -> Iterator[tuple[str, str, T]]:
        """What was found in one file; one outcome for the file and one per record left out."""
        indexed, records, left_out, remarks = 0, 0, False, Counter[str]()
        for reading in readings:
            yield from reading.found
            indexed, records = indexed + len(reading.found), records + reading.records
            remarks.update(reading.remarks)
            self.outcomes += reading.left_out
            left_out = left_out or any(outcome.record for outcome in reading.left_out)
            if reading.trouble:
                before = f"; {indexed} records before that were indexed" if reading.trouble.code == "unreadable" else ""
                self.outcomes.append(replace(reading.trouble, reason=reading.trouble.reason + before))
                return
        if indexed and remarks:
            told = "; ".join(f"{text} ({n} records)" if n > 1 else text for text, n in remarks.most_common(3))
            more = f"; and {len(remarks) - 3} more remarks" if len(remarks) > 3 else ""
            self.outcomes.append(FileOutcome(name, FileStatus.WARNING, "remarks", told + more))
        elif indexed:
            self.outcomes.append(FileOutcome(name, FileStatus.INDEXED, "ok", f"{indexed} of {records} indexed"))
        elif not records:
            self.outcomes.append(FileOutcome(name, FileStatus.SKIPPED, "blank", "holds no record"))
        elif left_out:  # otherwise the file was its one record, and has its outcome
            self.outcomes.append(FileOutcome(name, FileStatus.FAILED, "no_record", f"0 of {records} indexed"))

    def entries(self) -> Iterator[Source | FileOutcome]:
        """Every readable file, and an outcome for whatever is not read, in a fixed order."""
        if not self.root.exists():
            raise CorpusError(f"Corpus {self.root} does not exist: name a folder of documents.")
        if file := collection_file(self.root, self.format):
            yield Source(file, file.name, collection=True, limits=self.limits)
            return
        access = Access(self.root, self.rules)
        for entry in self._walk():
            if isinstance(entry, Source) and is_note(entry.name):
                lost = access.is_about_nothing(entry.path)
                reason = "is about a file that is not there" if lost else "says who may read other files"
                yield _skipped(entry.name, "access_note", reason)
            elif isinstance(entry, Source) and entry.reader is None:
                kinds, kind = ", ".join(READERS), entry.path.suffix or entry.path.name
                yield _skipped(entry.name, "unknown_kind", f"'{kind}' is not read here; known are {kinds}")
            elif isinstance(entry, Source):
                try:
                    groups = access.groups_of(entry.path, entry.name)
                except BadNote as problem:
                    yield FileOutcome(entry.name, FileStatus.FAILED, "access", str(problem))
                    continue
                yield replace(entry, limits=self.limits, groups=groups)
            else:
                yield entry

    def _walk(self) -> Iterator[Source | FileOutcome]:
        if self.root.is_file():
            yield Source(self.root, _readable(self.root.name))
            return
        unreadable: list[FileOutcome] = []

        def note(error: OSError) -> None:
            name = _readable(os.path.relpath(error.filename, self.root))
            unreadable.append(FileOutcome(name, FileStatus.FAILED, "unreadable", f"cannot be read: {error}"))

        top = self.root.resolve()
        for folder, folders, files in os.walk(self.root, onerror=note):
            yield from unreadable
            unreadable.clear()
            folders.sort()
            inside, there = set(folders), Path(folder)
            above = "" if there == self.root else f"{there.relative_to(self.root).as_posix()}/"
            for entry in sorted([*files, *folders]):
                path = there / entry
                name = _readable(above + entry)
                try:
                    left_out = _left_out(path, entry in inside, top)
                except OSError as error:  # a folder whose names may be listed, but not what they stand for
                    note(error)
                    continue
                if left_out:
                    yield _skipped(name, *left_out)
                elif entry not in inside:
                    yield Source(path, name)
            folders[:] = [entry for entry in folders if not entry.startswith(".")]
        yield from unreadable


def _skipped(name: str, code: str, reason: str) -> FileOutcome:
    return FileOutcome(name, FileStatus.SKIPPED, code, reason)


def collection_file(root: Path, format: str) -> Path | None:
    """The one file of a BEIR collection that holds documents, or None when `root` is read as a folder of them.

    A collection also holds questions and judgements, which must not become documents; "auto" knows one by its qrels.
    Raises CorpusError when "beir" is asked for and no such file is there.
    """
    if format == "folder" or (format == "auto" and not (root / "qrels").is_dir()):
        return None
    places = [root] if root.is_file() else [root / "corpus.jsonl", root / "corpus.jsonl.gz"]
    found = next((path for path in places if path.is_file()), None)
    if found is None and format == "beir":
        raise CorpusError(f"{root} has no corpus.jsonl or corpus.jsonl.gz: name a BEIR folder or use --format folder.")
    return found


def _left_out(path: Path, is_folder: bool, top: Path) -> tuple[str, str] | None:
    """Why an entry is not looked into, as code and reason; None for plain files and folders."""
    if path.name.startswith("."):
        return "hidden", "the name begins with a dot"
    if not path.is_symlink():
        return None if is_folder or path.is_file() else ("not_a_file", "is not a regular file")
    target = Path(os.path.realpath(path))  # Path.resolve() raises for a link to itself
    if not target.is_relative_to(top):
        return "outside", f"is a link that leaves the corpus, to {_readable(str(target))}"
    if is_folder:
        return "link", "is a link to a folder that is read under its own name"
    return None if path.is_file() else ("not_a_file", "is a broken link")


def _readable(name: str) -> str:
    """A file name as text: NFC, and bytes that are no UTF-8 shown as the replacement character."""
    return unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "replace"))
