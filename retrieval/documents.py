"""A corpus on disk as documents, read one at a time, with an account of what became of every file.

Nothing is left out without a word: whatever is not indexed is in `Corpus.outcomes` with its reason. What a record
must look like is in records.py; what happens to the documents next, in chunking.py.
"""

import gzip
import json
import os
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from domain.errors import ConfigError, CorpusError
from domain.types import Document
from retrieval.records import FileStatus, Raw, Unreadable, clean, decode, document_of


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """The fate of one file, or of one record of it when `path` ends in `:line`. `code` is stable, `reason` readable."""

    path: str
    status: FileStatus
    code: str
    reason: str


Reader = Callable[[Path, str], Iterator[Raw | Unreadable]]


@dataclass
class Corpus:
    """The documents under `root` in a fixed order; iterate to read them, then look at `outcomes`.

    `format` is "folder" (text, Markdown and JSON lines), "beir" (a folder with corpus.jsonl or corpus.jsonl.gz) or
    "auto". Documents that name no groups get `default_groups`; when those are empty, nobody may read them.
    Iterating raises CorpusError when the root cannot be read, and at the end when two records share an id.
    """

    root: Path
    format: str = "auto"
    default_groups: frozenset[str] = frozenset()
    tenant: str = "default"
    outcomes: list[FileOutcome] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.root = Path(self.root)
        self.default_groups = frozenset(self.default_groups)
        if self.format not in ("auto", "folder", "beir"):
            raise ConfigError(f"Corpus format '{self.format}' is not known: use auto, folder or beir.")

    def __iter__(self) -> Iterator[Document]:
        self.outcomes = []
        places: dict[str, str] = {}
        clashes: list[str] = []
        for path, name, reader in self._sources():
            for document, place in self._read(path, name, reader):
                if document.doc_id in places:
                    clashes.append(f"'{document.doc_id}' in {places[document.doc_id]} and in {place}")
                else:
                    places[document.doc_id] = place
                    yield document
        if clashes:
            more = f" and {len(clashes) - 5} more" if len(clashes) > 5 else ""
            raise CorpusError(
                f"Document ids must be unique in {self.root}, but there is {'; '.join(clashes[:5])}{more}: "
                "rename one of each pair."
            )

    def _read(self, path: Path, name: str, reader: Reader) -> Iterator[tuple[Document, str]]:
        """The documents of one file with their places; one outcome for the file and one per record left out."""
        indexed, records, remarks = 0, 0, Counter[str]()
        try:
            for raw in reader(path, name):
                records += 1
                try:
                    if isinstance(raw, Unreadable):
                        raise raw
                    document, found = document_of(raw, self.default_groups, self.tenant)
                except Unreadable as problem:
                    place = raw.place or name
                    self.outcomes.append(FileOutcome(place, problem.status, problem.code, problem.reason))
                    continue
                indexed += 1
                remarks.update(found)
                yield document, raw.place
        except Unreadable as problem:
            self.outcomes.append(FileOutcome(name, problem.status, problem.code, problem.reason))
            return
        except (OSError, EOFError, zlib.error) as error:
            reason = f"cannot be read to its end: {error}; {indexed} records before that were indexed"
            self.outcomes.append(FileOutcome(name, FileStatus.FAILED, "unreadable", reason))
            return
        if indexed and remarks:
            told = "; ".join(f"{text} ({n} records)" if n > 1 else text for text, n in remarks.most_common(3))
            more = f"; and {len(remarks) - 3} more remarks" if len(remarks) > 3 else ""
            self.outcomes.append(FileOutcome(name, FileStatus.WARNING, "remarks", told + more))
        elif indexed:
            self.outcomes.append(FileOutcome(name, FileStatus.INDEXED, "ok", f"{indexed} of {records} indexed"))
        elif not records:
            self.outcomes.append(FileOutcome(name, FileStatus.SKIPPED, "blank", "holds no record"))

    def _sources(self) -> Iterator[tuple[Path, str, Reader]]:
        """Every readable file with its name relative to the root; the rest become outcomes."""
        if not self.root.exists():
            raise CorpusError(f"Corpus {self.root} does not exist: name a folder of documents.")
        if file := collection_file(self.root, self.format):
            yield file, file.name, _json_lines
            return
        for path, name in self._walk():
            reader = next((read for ending, read in READERS.items() if name.lower().endswith(ending)), None)
            if reader:
                yield path, name, reader
            else:
                kinds = ", ".join(READERS)
                self._skip(name, "unknown_kind", f"'{path.suffix or path.name}' is not read here; known are {kinds}")

    def _walk(self) -> Iterator[tuple[Path, str]]:
        if self.root.is_file():
            yield self.root, _readable(self.root.name)
            return

        def unreadable(error: OSError) -> None:
            name = _readable(os.path.relpath(error.filename, self.root))
            self.outcomes.append(FileOutcome(name, FileStatus.FAILED, "unreadable", f"cannot be read: {error}"))

        top = self.root.resolve()
        for folder, folders, files in os.walk(self.root, onerror=unreadable):
            folders.sort()
            for entry in sorted([*files, *folders]):
                path = Path(folder, entry)
                name = _readable(path.relative_to(self.root).as_posix())
                try:
                    left_out = _left_out(path, entry in folders, top)
                except OSError as error:  # a folder whose names may be listed, but not what they stand for
                    unreadable(error)
                    continue
                if left_out:
                    self._skip(name, *left_out)
                elif entry not in folders:
                    yield path, name
            folders[:] = [entry for entry in folders if not entry.startswith(".")]

    def _skip(self, name: str, code: str, reason: str) -> None:
        self.outcomes.append(FileOutcome(name, FileStatus.SKIPPED, code, reason))


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
    target = Path(os.path.realpath(path))  # Path.resolve() raises for a link to itself
    if path.is_symlink() and not target.is_relative_to(top):
        return "outside", f"is a link that leaves the corpus, to {_readable(str(target))}"
    if path.is_symlink() and is_folder:
        return "link", "is a link to a folder that is read under its own name"
    if not is_folder and not path.is_file():
        return "not_a_file", "is a broken link" if path.is_symlink() else "is not a regular file"
    return None


# ---------------------------------------------------------------------------------------------- readers


def _text(path: Path, name: str) -> Iterator[Raw | Unreadable]:
    text, remarks = decode(path.read_bytes())
    yield Raw(name, {"id": name, "title": path.stem, "text": text}, remarks)


def _markdown(path: Path, name: str) -> Iterator[Raw | Unreadable]:
    """Markdown with optional front matter: title, groups, tenant, published, source, uri."""
    text, remarks = decode(path.read_bytes())
    text = clean(text)
    fields: dict[str, object] = {}
    front = re.match(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", text, re.DOTALL | re.MULTILINE)
    if front:
        try:
            stated = yaml.safe_load(front[1])
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            # Its groups cannot be known, so indexing it under the default groups could show it to the wrong people.
            why = " ".join(str(error).split())
            yield Unreadable("front_matter", f"the front matter is not YAML: {why}", place=name)
            return
        if isinstance(stated, dict):  # otherwise it was text between two rulers
            fields, text = stated, text[front.end() :]
    heading = re.search(r"^#[ \t]+(.+?)[ \t#]*$", text, re.MULTILINE)
    title = fields.get("title") or (heading[1] if heading else path.stem)
    yield Raw(name, {**_known(fields), "id": name, "title": title, "text": text}, remarks)


def _json_lines(path: Path, name: str) -> Iterator[Raw | Unreadable]:
    """One JSON object a line: id (or doc_id, _id), title, text, uri, source, published, groups (or acl), tenant."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            place = f"{name}:{number}"
            try:
                text, remarks = decode(line)
                if not text.strip():
                    continue
                stated = json.loads(text)
            except (Unreadable, ValueError, RecursionError) as error:
                yield Unreadable("not_json", f"is not JSON: {error}", place=place)
                continue
            if isinstance(stated, dict):
                yield Raw(place, _known(stated), remarks)
            else:
                yield Unreadable("not_json", f"must be an object, not {type(stated).__name__}", place=place)


def _known(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields under their one name; of several spellings the first that is stated counts."""
    spellings = {"id": ("id", "doc_id", "_id"), "groups": ("groups", "acl")}
    names = ("id", "title", "text", "uri", "source", "published", "groups", "tenant")
    found = {name: [fields[s] for s in spellings.get(name, (name,)) if fields.get(s) is not None] for name in names}
    return {name: values[0] for name, values in found.items() if values}


def _readable(name: str) -> str:
    """A file name as text: NFC, and bytes that are no UTF-8 shown as the replacement character."""
    return unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "replace"))


READERS: dict[str, Reader] = {
    ".txt": _text,
    ".md": _markdown,
    ".markdown": _markdown,
    ".jsonl": _json_lines,
    ".jsonl.gz": _json_lines,
}
