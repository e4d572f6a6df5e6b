"""Readers whom a source takes away from a document, taken away in every version at once, as a deletion is.

A new version tells only those who get it, and a gate may keep it from people for ever. Readers who are added come with
the new version and wait for its gate. What a person said about readers stands, whatever the source says.
"""

from typing import TYPE_CHECKING

from domain.amending import Amendment, DocumentChange
from domain.errors import IncompatibleIndex, NotFound, StorageError
from domain.releasing import stamp, utc_now

if TYPE_CHECKING:
    from domain.ports import IndexRegistry
    from retrieval.kept_documents import KeptDocuments
    from retrieval.syncing import SyncWork


def narrowed(registry: "IndexRegistry", work: "SyncWork", who: str, source: str) -> tuple[str, ...]:
    """The documents that lost readers by what was read now: in every version, what the source says counts for them.

    It goes on counting when the source gives readers back, because as it was built an older version has those of then.
    """
    before = work.seen.before
    read = {doc_id: work.groups[doc_id] for doc_id in before.documents() if doc_id in work.groups} if before else {}
    access = registry.access()
    ours = _said_by(registry, who) if read.keys() & access.keys() else frozenset()
    kept = work.kept or (_version(registry, before.version) if before and read else None)
    lost: list[str] = []
    for doc_id, groups in sorted(read.items()):
        was = access.get(doc_id, kept.groups(doc_id) if kept else None)
        if was is None or was == groups or (doc_id in access and doc_id not in ours):
            continue
        if doc_id in access or was - groups:
            at, named = stamp(utc_now()), tuple(sorted(groups))
            registry.note_change(DocumentChange(Amendment.READERS, at, who, (doc_id,), named, f"readers in {source}"))
            registry.set_access(doc_id, groups)
        if was - groups:
            lost.append(doc_id)
    return tuple(lost)


def _version(registry: "IndexRegistry", version: str) -> "KeptDocuments | None":
    """The documents of the version before, where it still is and can be read."""
    from retrieval.kept_documents import KeptDocuments

    try:
        return KeptDocuments.of(registry.folder(version))
    except (NotFound, StorageError, IncompatibleIndex):
        return None


def _said_by(registry: "IndexRegistry", who: str) -> frozenset[str]:
    """Documents about whose readers this one had the last word."""
    last: dict[str, bool] = {}
    for change in registry.changes():
        if change.verb is Amendment.READERS:
            last |= dict.fromkeys(change.doc_ids, change.who == who)
    return frozenset(doc_id for doc_id, ours in last.items() if ours)
