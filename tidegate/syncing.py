"""A library brought up to its source: looked at, what has gone hidden, what changed built, one at a time.

The steps of `sync` and of uploads. What is decided about the version afterwards is keeping_fresh.py; what must be read
and what has gone, retrieval/syncing.py.
"""

import fcntl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING

from domain.amending import Amendment, DocumentChange
from domain.errors import CorpusError
from domain.releasing import stamp, utc_now
from tidegate.progress import Report

if TYPE_CHECKING:
    from domain.ports import Embedder, IndexRegistry
    from domain.releases import IndexVersion
    from retrieval.building import BuildReport
    from retrieval.documents import Corpus
    from retrieval.origins import Origin
    from retrieval.source_record import SourceRecord
    from retrieval.syncing import Gone, Look, SyncWork
    from tidegate.settings import Settings

SYNC = "tidegate sync"  # who hid a document because its source was without it; nobody else's word is undone by a sync
PRUNE_LIMIT = 0.3
FEW = 3  # documents that may always go when no limit is named: one of two files is no disaster

# What changes neither what a file comes to nor what a version of it holds. A section that is not named here counts.
NOT_READ = frozenset(
    {"data_dir", "registry", "abstaining", "answering", "citations", "seeking", "sessions", "generation", "rewriting",
     "costs", "serving",
     "evaluation", "judge", "tracking", "canary", "sample", "uploads", "access.mode", "access.admin_key_file",
     "embedding.threads", "embedding.query_cache", "rerank.depth", "rerank.threads", "rerank.batch_tokens",
     "rerank.share", "rerank.within_ms"}
)  # fmt: skip

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync came to. `built` is None when nothing was read, and `version` is the one there was; `parent` is the
    one that was synced before, or the newest there was.
    """

    version: "IndexVersion"
    parent: str | None
    look: "Look"
    built: "BuildReport | None"
    gone: "Gone"
    hidden: tuple[str, ...] = ()  # documents that are gone from every version now
    restored: tuple[str, ...] = ()  # documents that came back
    forgotten: tuple[str, ...] = ()  # documents of the source that somebody forgot, and that stay so
    narrowed: tuple[str, ...] = ()  # documents that lost readers, in every version

    @property
    def changed(self) -> bool:
        """False when the source still is what the version of the last time was made of."""
        before = self.look.before
        return self.built is not None and (before is None or before.version != self.version.id)


@dataclass(frozen=True, slots=True)
class Pruning:
    """What becomes of documents that are gone. `limit` None is the default one, which lets a few go always."""

    limit: float | None = None
    keep: bool = False

    def check(self, gone: "Gone", source: str) -> None:
        """Raises CorpusError when so much is gone that the listing is more likely wrong than the library."""
        share = gone.suspicious / gone.of if gone.of else 0.0
        limit = PRUNE_LIMIT if self.limit is None else self.limit
        if share <= limit or (self.limit is None and gone.suspicious <= FEW and gone.suspicious < gone.of):
            return
        raise CorpusError(
            f"{gone.suspicious} of {gone.of} documents are gone from {source}, {share:.0%}, and at most {limit:.0%} "
            "may go at once: nothing was changed. Look whether the place is complete and mounted; if they are really "
            f"gone, say --prune-limit {min(1.0, share + 0.005):.2f}."
        )


# ---------------------------------------------------------------------------------------------- one source


@dataclass(frozen=True)
class OpenSource:
    """A source that is being read, and how to remember what it came to."""

    settings: "Settings"
    name: str
    how: str
    work: "SyncWork"
    options: Mapping[str, str] = field(default_factory=dict)

    def remember(self, version: str) -> None:
        """Keep what every file came to, for the next time. A record that cannot be kept costs time, and is told."""
        from retrieval.disk import cannot_write
        from retrieval.source_record import SourceRecord, write_record

        record = SourceRecord(self.name, version, stamp(utc_now()), self.how, self.work.files, self.options)
        try:
            write_record(records_folder(self.settings), record)
        except OSError as error:
            raise cannot_write(records_folder(self.settings), error) from error


def records_folder(settings: "Settings") -> Path:
    """Where it is kept what sources were."""
    return settings.data_dir / "sources"


def whole_source(
    settings: "Settings", documents: "Corpus", embedder: "Embedder", options: Mapping[str, str] | None = None
) -> OpenSource:
    """Everything of a corpus, to be read whatever was known of it."""
    from retrieval.origins import FolderOrigin
    from retrieval.syncing import SyncWork, look

    origin = FolderOrigin(documents)
    seen = look([origin], None, time.time())
    return OpenSource(
        settings, origin.name, how_read(settings, documents), SyncWork(embedder, seen, None), options or {}
    )


def how_read(settings: "Settings", documents: "Corpus") -> str:
    """Hex digits for everything beside the files themselves that decides what they come to: settings, readers of what
    names none, our own code, and the libraries it stands on.
    """
    from hashlib import sha256

    from tidegate.effective import digest

    parts = [
        digest(settings, NOT_READ),
        documents.format,
        documents.tenant,
        *sorted(documents.default_groups),
        *_program(),
    ]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


@cache
def _program() -> tuple[str, ...]:
    """Our own code, and the libraries it stands on. Read once per process: what is on disk later does not run here."""
    from tidegate import code

    return (code.of(code.ROOT, ("domain", "retrieval", "tidegate/build.py")), *_libraries())


def _libraries() -> Iterator[str]:
    for requirement in requires("tidegate") or ():
        name = requirement.split(";")[0].split("[")[0].split("=")[0].strip()
        try:
            yield f"{name} {installed(name)}"
        except PackageNotFoundError:
            yield name


# ---------------------------------------------------------------------------------------------- a sync


@contextmanager
def alone(settings: "Settings", tell: Tell) -> Iterator[None]:
    """Nobody else syncs this library while the block runs; whoever comes second waits, and is told so."""
    from retrieval.disk import lock_file

    with lock_file(settings.data_dir / "sync.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("another sync of this library is at work: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sync_version(
    settings: "Settings",
    origins: "Sequence[Origin]",
    documents: "Corpus",
    pruning: Pruning,
    report: Report,
    *,
    full: bool = False,
    options: Mapping[str, str] | None = None,
) -> Synced:
    """The version of what the origins hold now; the first names the source, and `documents` says how it is read.

    Only what changed since the last time is read, cut and embedded, `full` or not the version is the same. Documents
    that are gone are hidden from every version before anything is embedded, those that a sync hid and that are back
    are shown again. Raises CorpusError, having changed nothing, for a listing that is empty or lacks too much.
    """
    from retrieval.kept_documents import KeptDocuments
    from retrieval.source_record import read_record
    from retrieval.syncing import Gone, SyncWork, look
    from tidegate.build import built_from
    from tidegate.compose import make_embedder, make_registry
    from tidegate.server import check_writable

    check_writable(settings)
    registry, name, how = make_registry(settings), origins[0].name, how_read(settings, documents)
    before = read_record(records_folder(settings), name)
    report("looking at the source", 0, 0)
    version = _usable(registry, before, how)
    seen = look(origins, before, time.time(), trust=not full, reuse=version is not None)
    _check_listing(seen, name)
    if version is not None and before is not None and not seen.fresh and not seen.missing:
        _remember_stamps(settings, before, seen)
        return Synced(version, version.id, seen, None, Gone())
    kept = KeptDocuments.of(registry.folder(version.id)) if version is not None else None
    if version is not None and kept is None:  # damaged: nothing is taken from it
        seen = look(origins, before, time.time(), trust=False, reuse=False)
    done: list[Synced] = []

    def read_all(work: "SyncWork") -> None:
        done.append(_amended(registry, seen, work, pruning, name))

    embedder = make_embedder(settings)
    source = OpenSource(settings, name, how, SyncWork(embedder, seen, kept, read_all), options or {})
    parent = version.id if version is not None else next((v.id for v in reversed(registry.versions())), None)
    built = built_from(settings, documents, embedder, source.work, parent, report)
    source.remember(built.version.id)
    return replace(done[0], version=built.version, parent=parent, built=built)


def _remember_stamps(settings: "Settings", before: "SourceRecord", seen: "Look") -> None:
    """Files that were only touched need not be compared by content the next time again."""
    from retrieval.source_record import write_record

    files = {name: each.kept for name, each in seen.files.items() if each.kept is not None}
    if files != before.files:
        with suppress(OSError):
            write_record(records_folder(settings), replace(before, files=files))


def _usable(registry: "IndexRegistry", before: "SourceRecord | None", how: str) -> "IndexVersion | None":
    """The version that the record was made for, when files would come to the same today and it still is there."""
    if before is None or before.how != how:
        return None
    return next((v for v in registry.versions() if v.id == before.version), None)


def _check_listing(seen: "Look", name: str) -> None:
    if seen.before and seen.before.files and not seen.files:
        raise CorpusError(
            f"{name} lists no file, and had {len(seen.before.files)} the last time: nothing was changed. Look whether "
            "it is mounted and whether the name is right."
        )


def _amended(registry: "IndexRegistry", seen: "Look", work: "SyncWork", pruning: Pruning, source: str) -> Synced:
    """What has gone is hidden and what came back is shown, in every version; said in a Synced without a version."""
    from domain.releases import IndexVersion
    from retrieval.syncing import gone
    from tidegate.narrowing import narrowed

    lost = gone(seen, work.files)
    pruning.check(lost, source)
    there = {doc_id for record in work.files.values() for doc_id, _ in record.found}
    tombstones = registry.tombstones()
    hidden = () if pruning.keep else tuple(doc_id for doc_id in lost.removed if doc_id not in tombstones)
    ours = _hidden_by_syncs(registry) if there & tombstones else frozenset()
    back = tuple(sorted(there & tombstones & ours))
    if hidden:
        registry.note_change(_change(Amendment.FORGET, hidden, f"gone from {source}"))
        registry.tombstone(hidden)
    if back:
        registry.restore(back)
        if meanwhile := set(back) - _hidden_by_syncs(registry):  # forgotten by a person since they were looked up
            registry.tombstone(meanwhile)
            back = tuple(doc_id for doc_id in back if doc_id not in meanwhile)
    if back:
        registry.note_change(_change(Amendment.RESTORE, back, f"in {source} again"))
    nobody = IndexVersion("", None, "", "", "", 0, 0, "")
    forgotten = tuple(sorted((there & tombstones) - ours))
    fewer = narrowed(registry, work, SYNC, source)
    return Synced(nobody, None, seen, None, lost, hidden, back, forgotten, fewer)


def _change(verb: Amendment, doc_ids: tuple[str, ...], why: str) -> DocumentChange:
    return DocumentChange(verb, stamp(utc_now()), SYNC, doc_ids, reason=why)


def _hidden_by_syncs(registry: "IndexRegistry") -> frozenset[str]:
    """Documents whose last word on record is a sync's that its source is without them: a person's word stands."""
    last: dict[str, bool] = {}
    for change in registry.changes():
        if change.verb in (Amendment.FORGET, Amendment.RESTORE):
            last |= dict.fromkeys(change.doc_ids, change.verb is Amendment.FORGET and change.who == SYNC)
    return frozenset(doc_id for doc_id, ours in last.items() if ours)
