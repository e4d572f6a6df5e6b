"""What is said of documents after they were built: which are gone, and who may read which from now on.

Versions never change, so this stands beside them and acts on every version at once. Additions go through the gate;
deletions and changed readers never wait for it. Where it is kept is an IndexRegistry's business (ports.py).
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from domain.errors import NotFound


class Amendment(StrEnum):
    """What may be done to a document that is in a version already."""

    FORGET = "forget"
    RESTORE = "restore"
    READERS = "readers"


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """One amendment as it is on record: who asked for it, when and why.

    `groups` are the readers from then on, of READERS alone; None there means as the document was built.
    """

    verb: Amendment
    at: str
    who: str
    doc_ids: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Amendments:
    """All that stands now. Compared by identity: whoever remembers something by it must not compare a million ids.

    `access` has the groups of a document instead of those it was built with; an empty set is nobody.
    """

    gone: frozenset[str] = frozenset()
    access: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def same(self, other: "Amendments") -> bool:
        """True when both say the same."""
        return self.gone == other.gone and self.access == other.access


NOTHING_AMENDED = Amendments()


class Register(Protocol):
    """The part of an IndexRegistry that amendments are kept in."""

    def tombstones(self) -> frozenset[str]: ...
    def tombstone(self, doc_ids: Iterable[str]) -> None: ...
    def restore(self, doc_ids: Iterable[str]) -> None: ...
    def access(self) -> Mapping[str, frozenset[str]]: ...
    def set_access(self, doc_id: str, groups: frozenset[str] | None) -> None: ...
    def note_change(self, change: DocumentChange) -> None: ...
    def changes(self) -> Sequence[DocumentChange]: ...


class Amending:
    """Makes every amendment: known documents only, put on record first, then done for all versions at once.

    `tenant_of` says whose document an id is, None where no version holds it. Whoever is the admin of one `tenant`
    acts on its documents alone, and for him another's is as unknown as one that never was; None is an operator.
    """

    def __init__(
        self,
        registry: Register,
        tenant_of: Callable[[str], str | None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._registry, self._tenant_of, self._now = registry, tenant_of, now

    def forget(self, doc_ids: Sequence[str], who: str, reason: str = "", tenant: str | None = None) -> tuple[str, ...]:
        """No version returns these documents from now on. Those that were still there come back; twice is the same.

        One that somebody else hid is put on record as well, so that whoever undoes that does not undo this. Raises
        NotFound naming all that nobody knows, and changes nothing then.
        """
        gone, ids = self._registry.tombstones(), as_kept(doc_ids)
        self._check_known(ids, gone, tenant)
        hidden = [each for each in ids if each in gone]
        ours = self._forgotten_by(who) if hidden else frozenset()
        self._set(Amendment.FORGET, [each for each in ids if each not in gone or each not in ours], who, reason)
        return tuple(each for each in ids if each not in gone)

    def restore(self, doc_ids: Sequence[str], who: str, reason: str = "", tenant: str | None = None) -> tuple[str, ...]:
        """Versions that hold these documents return them again. Those that were gone come back. Raises as `forget`."""
        gone, ids = self._registry.tombstones(), as_kept(doc_ids)
        self._check_known(ids, gone, tenant)
        return self._set(Amendment.RESTORE, [each for each in ids if each in gone], who, reason)

    def set_readers(
        self, doc_id: str, groups: frozenset[str] | None, who: str, reason: str = "", tenant: str | None = None
    ) -> None:
        """Exactly these groups read a document from now on; None: as it was built. Raises as `forget`."""
        (doc_id,) = as_kept([doc_id])
        self._check_known([doc_id], self._registry.tombstones(), tenant)
        if self._registry.access().get(doc_id) == groups:
            return
        named = None if groups is None else tuple(sorted(groups))
        self._registry.note_change(DocumentChange(Amendment.READERS, self._at(), who, (doc_id,), named, reason))
        self._registry.set_access(doc_id, groups)

    def _set(self, verb: Amendment, doc_ids: Sequence[str], who: str, reason: str) -> tuple[str, ...]:
        ids = tuple(doc_ids)
        if ids:
            self._registry.note_change(DocumentChange(verb, self._at(), who, ids, None, reason))
            (self._registry.tombstone if verb is Amendment.FORGET else self._registry.restore)(ids)
        return ids

    def _forgotten_by(self, who: str) -> frozenset[str]:
        last: dict[str, bool] = {}
        for change in self._registry.changes():
            if change.verb in (Amendment.FORGET, Amendment.RESTORE):
                last |= dict.fromkeys(change.doc_ids, change.verb is Amendment.FORGET and change.who == who)
        return frozenset(doc_id for doc_id, ours in last.items() if ours)

    def _check_known(self, doc_ids: Sequence[str], gone: frozenset[str], tenant: str | None) -> None:
        unknown = [each for each in doc_ids if not self._known(each, gone, tenant)]
        if unknown:
            told = ", ".join(repr(each[:200]) for each in unknown[:5])
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            raise NotFound(
                f"No version holds document {told}{more}: ids are those that search and answers name as doc_id.", "id"
            )

    def _known(self, doc_id: str, gone: frozenset[str], tenant: str | None) -> bool:
        owner = self._tenant_of(doc_id)
        return doc_id in gone or owner is not None if tenant is None else owner == tenant

    def _at(self) -> str:
        return self._now().isoformat(timespec="milliseconds")


def as_kept(doc_ids: Iterable[str]) -> tuple[str, ...]:
    """Ids as documents have them, each once: keyboards and file systems write one accent in two ways."""
    return tuple(dict.fromkeys(unicodedata.normalize("NFC", each) for each in doc_ids))
