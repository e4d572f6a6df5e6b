"""One file of a corpus as records, a block at a time, wherever it is read: here or by a worker of a cluster.

A pure function of the file: ids that clash with those of other files, and what is told about a file as a whole, are
documents.py. What a record must look like is records.py. Text, Markdown and JSON lines are read in this process, up to
the size that a file, or one line, may have; every other kind, which takes a library, in one of its own (parsing/).
"""

import gzip
import json
import re
import zlib
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

import yaml

from domain.ingestion import FileOutcome, FileStatus
from domain.types import Document
from retrieval.parsing.formats import PARSERS
from retrieval.parsing.parsed import DEFAULTS, Limits, Refused
from retrieval.records import Raw, Unreadable, clean, decode, document_of, is_encoded

T = TypeVar("T")
BLOCK = 256  # records read before anything is done with them
RANGE = 4 << 20  # bytes of a file of lines that one worker reads


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read under its name in the corpus, or the lines of it that begin in a range of bytes."""

    path: Path
    name: str
    start: int = 0
    end: int | None = None  # None: to the end of the file
    first_line: int = 1  # the number of the line at `start`
    collection: bool = False  # one record a line, whatever the name ends in
    groups: frozenset[str] | None = None  # said of it by what is not in it; None: nothing
    limits: Limits = DEFAULTS  # what it may take where it is read apart

    @property
    def reader(self) -> "Reader | None":
        """What reads this file, or None when nothing here does."""
        if self.collection:
            return _json_lines
        return next((reader for ending, reader in READERS.items() if self.name.lower().endswith(ending)), None)


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What some records of one file came to. `found` holds document id, place, and the document or what it became."""

    found: tuple[tuple[str, str, T], ...] = ()
    left_out: tuple[FileOutcome, ...] = ()  # records that are no documents
    records: int = 0
    remarks: tuple[str, ...] = ()
    trouble: FileOutcome | None = None  # the file could not be read any further


Reader = Callable[[Source], Iterator[Raw | Unreadable]]


def read(source: Source, default_groups: frozenset[str], tenant: str) -> Iterator[Reading[Document]]:
    """The records of a source in order, `BLOCK` at a time; at least one reading, also of an empty file.

    `default_groups` are of those that state none, in a source of which none are said either.
    """
    default_groups = default_groups if source.groups is None else source.groups
    block = _Block()
    try:
        for raw in source.reader(source) if source.reader else ():
            if block.records == BLOCK:
                yield block.reading()
                block = _Block()
            block.add(raw, source.name, default_groups, tenant)
    except Unreadable as problem:
        block.trouble = FileOutcome(source.name, problem.status, problem.code, problem.reason)
    except (OSError, EOFError, zlib.error) as error:
        reason = f"cannot be read to its end: {error}"
        block.trouble = FileOutcome(source.name, FileStatus.FAILED, "unreadable", reason)
    yield block.reading()


def ranges(source: Source, size: int = RANGE) -> list[Source]:
    """The source as parts of about `size` bytes, cut between lines; one part unless it is a plain file of lines.

    A file that cannot be read is one part too: whoever reads it finds out, and says so.
    """
    if source.reader is not _json_lines or source.path.suffix == ".gz":
        return [source]
    cuts, at, line, begun = [(source.start, source.first_line)], source.start, source.first_line, source.start
    try:
        with source.path.open("rb") as file:
            file.seek(source.start)
            while block := file.read(min(size, 1 << 20)):
                at, line = at + len(block), line + block.count(b"\n")
                last = block.rfind(b"\n") + 1
                if last and at - begun >= size:
                    begun = at - len(block) + last
                    cuts.append((begun, line))
    except OSError:
        return [source]
    if len(cuts) > 1 and cuts[-1][0] == at:  # nothing comes after the last line
        cuts.pop()
    ends = [*(start for start, _ in cuts[1:]), source.end]
    return [
        replace(source, start=start, end=end, first_line=line) for (start, line), end in zip(cuts, ends, strict=True)
    ]


@dataclass
class _Block:
    """A reading that is still growing."""

    found: list[tuple[str, str, Document]] = field(default_factory=list)
    left_out: list[FileOutcome] = field(default_factory=list)
    records: int = 0
    remarks: list[str] = field(default_factory=list)
    trouble: FileOutcome | None = None

    def add(self, raw: Raw | Unreadable, name: str, default_groups: frozenset[str], tenant: str) -> None:
        self.records += 1
        try:
            if isinstance(raw, Unreadable):
                raise raw
            document, remarks = document_of(raw, default_groups, tenant)
        except Unreadable as problem:
            place = raw.place or name
            record = place != name
            self.left_out.append(FileOutcome(place, problem.status, problem.code, problem.reason, record))
            return
        self.remarks += remarks
        self.found.append((document.doc_id, raw.place, document))

    def reading(self) -> Reading[Document]:
        return Reading(tuple(self.found), tuple(self.left_out), self.records, tuple(self.remarks), self.trouble)


# ---------------------------------------------------------------------------------------------- readers


def _text(source: Source) -> Iterator[Raw | Unreadable]:
    text, remarks = _plain(source)
    yield Raw(source.name, {"id": source.name, "title": source.path.stem, "text": text}, remarks, first_line=1)


def _plain(source: Source) -> tuple[str, tuple[str, ...]]:
    """The clean text of a file and remarks. Raises Unreadable for what is no text that people read."""
    if source.path.stat().st_size > source.limits.file_mb * 1_000_000:
        raise _too_big("has", source.limits)
    text, remarks = decode(source.path.read_bytes())
    if "\0" in text:
        remarks = (*remarks, f"{text.count(chr(0))} NUL characters left out")
    text = clean(text)
    if is_encoded(text):
        raise Unreadable("encoded", "holds encoded bytes (base64), not text", FileStatus.SKIPPED)
    return text, remarks


def _too_big(what: str, limits: Limits) -> Unreadable:
    return Unreadable("too_big", f"{what} more than {limits.file_mb} MB: split it, or raise ingestion.file_mb")


def _markdown(source: Source) -> Iterator[Raw | Unreadable]:
    """Markdown with optional front matter: title, groups, tenant, published, source, uri."""
    text, remarks = _plain(source)
    fields: dict[str, object] = {}
    first_line = 1
    front = FRONT.match(text)
    if not front and SAYS_WHO.match(text):
        reason = "the front matter says who may read it and has no end: close it with a line of ---"
        yield Unreadable("front_matter", reason, place=source.name)
        return
    if front:
        try:
            stated = yaml.safe_load(front[1])
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            # Its groups cannot be known, so indexing it under the default groups could show it to the wrong people.
            why = " ".join(str(error).split())
            yield Unreadable("front_matter", f"the front matter is not YAML: {why}", place=source.name)
            return
        if isinstance(stated, dict):  # otherwise it was text between two rulers
            fields, text = stated, text[front.end() :]
            first_line += front[0].count("\n")
    if misspelt := _misspelt(fields, {*SAID, "group"}):
        yield Unreadable("front_matter", misspelt, place=source.name)
        return
    heading = re.search(r"^#[ \t]+(.+?)[ \t#]*$", text, re.MULTILINE)
    title = fields.get("title") or (heading[1] if heading else source.path.stem)
    known = {**_known(fields), "id": source.name, "title": title, "text": text}
    yield Raw(source.name, known, remarks, first_line=first_line)


# Blank lines before it are allowed, as programs that convert files leave them.
FRONT = re.compile(r"\s*^---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
SAYS_WHO = re.compile(
    r"\s*^---[ \t]*\n(?:.*\n){0,100}?[ \t]*(?:groups?|acl|tenant)[ \t]*:", re.IGNORECASE | re.MULTILINE
)
SAID = ("groups", "acl", "tenant")  # the fields that say who may read a record


def _misspelt(fields: Mapping[str, object], names: Container[str]) -> str:
    """What to say of a field that is all but one about readers, and would go unheard; empty when there is none."""
    for name in map(str, fields):  # YAML has keys of other kinds
        if name not in SAID and name.strip().casefold() in names:
            return f"'{name[:40]}' is not known: who may read it is said by {', '.join(SAID)}, spelled so"
    return ""


def _json_lines(source: Source) -> Iterator[Raw | Unreadable]:
    """One JSON object a line: id (or doc_id, _id), title, text, uri, source, published, groups (or acl), tenant."""
    at = source.start
    with gzip.open(source.path) if source.path.suffix == ".gz" else source.path.open("rb") as lines:
        lines.seek(at)
        most = source.limits.file_mb * 1_000_000
        for number, line in enumerate(iter(lambda: lines.readline(most + 1), b""), source.first_line):
            if source.end is not None and at >= source.end:
                return
            if len(line) > most:
                raise _too_big(f"line {number} has", source.limits)
            at += len(line)
            place = f"{source.name}:{number}"
            try:
                text, remarks = decode(line)
                if not text.strip():
                    continue
                stated = json.loads(text)
            except (Unreadable, ValueError, RecursionError) as error:
                yield Unreadable("not_json", f"is not JSON: {error}", place=place)
                continue
            if isinstance(stated, dict):
                yield _record(place, stated, remarks)
            else:
                yield Unreadable("not_json", f"must be an object, not {type(stated).__name__}", place=place)


def _apart(source: Source) -> Iterator[Raw | Unreadable]:
    """Whatever takes a library to read. A file without a byte is blank; one that is not readable says why."""
    from retrieval.parsing.apart import PROCESSES

    if not source.path.stat().st_size:
        raise Unreadable("blank", "is empty", FileStatus.SKIPPED)
    ending = next(ending for ending in PARSERS if source.name.lower().endswith(ending))
    try:
        parsed = PROCESSES.parse(source.path, ending, source.limits)
    except Refused as refused:
        raise Unreadable(refused.code, refused.reason) from None
    for number, stated in enumerate(parsed.records, 1):
        yield _record(f"{source.name}:{number}", stated)
    if parsed.records:
        return
    if is_encoded(parsed.text):
        raise Unreadable("encoded", "holds encoded bytes (base64), not text", FileStatus.SKIPPED)
    fields = {"title": source.path.stem, **parsed.fields, "id": source.name, "text": parsed.text}
    yield Raw(source.name, fields, parsed.remarks, parsed.marks)


def _record(place: str, stated: Mapping[str, object], remarks: tuple[str, ...] = ()) -> Raw | Unreadable:
    """A record by its fields, refused when one that says who may read it would go unheard."""
    if misspelt := _misspelt(stated, SAID):
        return Unreadable("bad_record", misspelt, place=place)
    return Raw(place, _known(stated), remarks)


def _known(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields under their one name; of several spellings the first that is stated counts."""
    spellings = {"id": ("id", "doc_id", "_id"), "groups": ("groups", "acl")}
    names = ("id", "title", "text", "uri", "source", "published", "groups", "tenant")
    found = {name: [fields[s] for s in spellings.get(name, (name,)) if fields.get(s) is not None] for name in names}
    return {name: values[0] for name, values in found.items() if values}


READERS: dict[str, Reader] = {
    ".txt": _text,
    ".md": _markdown,
    ".markdown": _markdown,
    ".jsonl": _json_lines,
    ".jsonl.gz": _json_lines,
    **dict.fromkeys(PARSERS, _apart),
}
