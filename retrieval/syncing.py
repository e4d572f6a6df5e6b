"""A source against what it was: which files must be read, what has gone, and a build that reads only the former.

Deciding comes in two steps. `look` compares marks and, where those differ, digests; nothing is parsed. `Reading` then
does the work of a build: files that must be read are read and cut, all others come out of the version before, line by
line, so that the version is byte for byte the one of a full rebuild. Moving people is not done here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter
from pathlib import Path

from domain.ingestion import FileOutcome, FileStatus
from domain.ports import Embedder
from domain.types import Document
from retrieval.documents import Corpus
from retrieval.kept_documents import KeptDocuments
from retrieval.origins import UNKNOWN, Mark, Origin
from retrieval.reading import Reading, Source
from retrieval.source_record import FileRecord, SourceRecord
from retrieval.vectors import Vectors
from retrieval.work import CutDocument, Cutting, Here, Spans, cut


@dataclass(frozen=True, slots=True)
class Seen:
    """A file that is there. `kept` is what it was the last time, when it still is that; None when it must be read."""

    source: Source
    origin: Origin
    mark: Mark
    kept: FileRecord | None


@dataclass(frozen=True, slots=True)
class Look:
    """What is there now beside what was there before."""

    entries: tuple[Seen | FileOutcome, ...]
    before: SourceRecord | None

    @property
    def files(self) -> dict[str, Seen]:
        """Every file to read, by name."""
        return {entry.source.name: entry for entry in self.entries if isinstance(entry, Seen)}

    @property
    def fresh(self) -> int:
        """How many files must be read."""
        return sum(isinstance(entry, Seen) and entry.kept is None for entry in self.entries)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of files that were there and are not now, by name."""
        return tuple(sorted(set(self.before.files) - set(self.files))) if self.before else ()


def look(
    origins: Iterable[Origin], before: SourceRecord | None, now_s: float, *, trust: bool = True, reuse: bool = True
) -> Look:
    """What is there now. Without `trust` in times and sizes every file is compared by content; without `reuse` every
    file must be read, and `before` only says what was there. Raises CorpusError for an origin that cannot be listed.
    """
    entries: list[Seen | FileOutcome] = []
    for origin in origins:
        for entry in origin.entries():
            known = before.files.get(entry.name) if before and reuse and isinstance(entry, Source) else None
            entries.append(_seen(entry, origin, known, now_s, trust) if isinstance(entry, Source) else entry)
    return Look(tuple(entries), before)


def _seen(source: Source, origin: Origin, known: FileRecord | None, now_s: float, trust: bool) -> Seen:
    if known is not None and known.failed:  # it may have been the machine's fault, or the file's server
        known = None
    beside = _beside(source)
    try:
        mark = origin.mark(source, now_s)
        stamp = mark.stamp + beside
        if known and trust and mark.size == known.size and stamp == known.stamp:
            return Seen(source, origin, Mark(mark.size, stamp, known.digest, mark.settled), known)
        mark = Mark(mark.size, stamp, (mark.digest or origin.digest(source)) + beside, mark.settled)
    except OSError:  # gone or forbidden at this moment: reading it says so, and what it was cannot be relied on
        return Seen(source, origin, UNKNOWN, None)
    same = known is not None and mark.digest == known.digest
    return Seen(source, origin, mark, replace(known, size=mark.size, stamp=mark.kept) if known and same else None)


_SAID = attrgetter(*(f.name for f in fields(Source) if f.name not in ("path", "name")))
_NOTHING_SAID = _SAID(Source(Path(), ""))


def _beside(source: Source) -> str:
    """What marks of a file must bear of all that is said of it by what stands beside it; nothing for a plain one."""
    said = _SAID(source)
    return "" if said == _NOTHING_SAID else _digest(said)


@lru_cache(1024)
def _digest(said: tuple[object, ...]) -> str:
    # A set is told in another order by every process.
    ordered = [sorted(value) if isinstance(value, frozenset) else value for value in said]
    return f" {sha256(repr(ordered).encode()).hexdigest()[:8]}"


# ---------------------------------------------------------------------------------------------- the work


@dataclass
class SyncWork:
    """The work of a build over a Corpus: only what must be read is. `files` says afterwards what each came to, and
    `groups` who may read the documents that were read.

    `read_all` is called once when everything has been read and before anything is embedded; what it raises ends the
    build, and nothing is published.
    """

    embedder: Embedder
    seen: Look
    kept: KeptDocuments | None
    read_all: Callable[["SyncWork"], None] = lambda _: None
    files: dict[str, FileRecord] = field(default_factory=dict, init=False)
    groups: dict[str, frozenset[str]] = field(default_factory=dict, init=False)

    def cut(self, documents: Iterable[Document], how: Cutting) -> Iterator[CutDocument]:
        """The documents of a Corpus, in their order, with the account of its files."""
        if not isinstance(documents, Corpus):
            raise TypeError("only a Corpus can be synced; this is a bug, please report it")
        corpus, files = documents, self.seen.files
        entries = [entry.source if isinstance(entry, Seen) else entry for entry in self.seen.entries]

        def reading(source: Source) -> Iterator[Reading[CutDocument]]:
            seen = files[source.name]
            if seen.kept is not None and self.kept is not None:
                return self._again(seen.kept, self.kept)
            return self._anew(seen, corpus, how)

        yield from corpus.read(reading, entries)
        self.read_all(self)

    def embed(self, chunks: Path, spans: Spans) -> Iterator[Vectors]:
        """As this process does."""
        return Here(self.embedder).embed(chunks, spans)

    def _again(self, known: FileRecord, kept: KeptDocuments) -> Iterator[Reading[CutDocument]]:
        self.files[known.name] = known
        yield known.reading((doc_id, place, kept.cut(doc_id)) for doc_id, place in known.found)

    def _anew(self, seen: Seen, corpus: Corpus, how: Cutting) -> Iterator[Reading[CutDocument]]:
        found: list[tuple[str, str]] = []
        account: Reading[CutDocument] = Reading()
        try:
            with seen.origin.fetched(seen.source) as there:
                for reading in corpus.reading(there):
                    found += [(doc_id, place) for doc_id, place, _ in reading.found]
                    self.groups |= {doc_id: document.groups for doc_id, _, document in reading.found}
                    account = _joined(account, reading)
                    yield _cut_documents(reading, how, self.embedder)
        except OSError as error:
            reason = f"cannot be fetched: {error}"
            account = replace(account, trouble=FileOutcome(seen.source.name, FileStatus.FAILED, "unreadable", reason))
            yield Reading(trouble=account.trouble)
        finally:  # whoever reads stops at the first trouble of a file
            self.files[seen.source.name] = _record(seen, found, account)


def _record(seen: Seen, found: Sequence[tuple[str, str]], account: Reading[CutDocument]) -> FileRecord:
    # What changed while it was read may be neither the one state nor the other: it is looked at again the next time.
    mark = UNKNOWN if _changed_meanwhile(seen) else seen.mark
    return FileRecord(
        seen.source.name,
        mark.size,
        mark.kept,
        mark.digest,
        tuple(found),
        account.left_out,
        account.records,
        account.remarks,
        account.trouble,
    )


def _joined(account: Reading[CutDocument], more: Reading[Document]) -> Reading[CutDocument]:
    """The account of a file with that of its next records."""
    return Reading(
        (),
        account.left_out + more.left_out,
        account.records + more.records,
        account.remarks + more.remarks,
        more.trouble or account.trouble,
    )


def _cut_documents(reading: Reading[Document], how: Cutting, embedder: Embedder) -> Reading[CutDocument]:
    """The reading with its documents cut."""
    found = tuple((doc_id, place, cut(document, how, embedder)) for doc_id, place, document in reading.found)
    return Reading(found, reading.left_out, reading.records, reading.remarks, reading.trouble)


def _changed_meanwhile(seen: Seen) -> bool:
    try:
        now = seen.origin.mark(seen.source, 0)
    except OSError:
        return True
    return (now.size, now.stamp + _beside(seen.source)) != (seen.mark.size, seen.mark.stamp)


# ---------------------------------------------------------------------------------------------- what has gone


@dataclass(frozen=True, slots=True)
class Gone:
    """What was in the source the last time and is not now.

    `removed` are documents whose source is without them; `unread` those of files that are there, or in a folder that
    is there, but could not be read now: they may come back, and nobody took them away. `moved` counts files that are
    there under another name; `suspicious` are the documents, removed or unread, that did not just move, and `of` is how
    many there were.
    """

    removed: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    moved: int = 0
    suspicious: int = 0
    of: int = 0


def gone(seen: Look, files: Mapping[str, FileRecord]) -> Gone:
    """What has gone, now that every file is read."""
    if seen.before is None:
        return Gone()
    was = seen.before.documents()
    there = {doc_id for record in files.values() for doc_id, _ in record.found}
    lost = [(doc_id, name) for doc_id, name in was.items() if doc_id not in there]
    failed = {name for name, record in files.items() if record.failed}
    blind = tuple(e.path for e in seen.entries if isinstance(e, FileOutcome) and e.status is FileStatus.FAILED)
    unread = {doc_id for doc_id, name in lost if name in failed or _below(name, blind)}
    digests = {record.digest for name, record in files.items() if record.digest and name not in seen.before.files}
    moved = {name for name in seen.missing if seen.before.files[name].digest in digests}
    removed = tuple(sorted(doc_id for doc_id, _ in lost if doc_id not in unread))
    suspicious = sum(name not in moved for _, name in lost)
    return Gone(removed, tuple(sorted(unread)), len(moved), suspicious, len(was))


def _below(name: str, folders: Sequence[str]) -> bool:
    return any(folder in (".", name) or name.startswith(f"{folder}/") for folder in folders)
