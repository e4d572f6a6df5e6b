"""What is said of documents after they were built: which are gone, and who may read which from now on.

Versions never change, so this stands beside them and acts on every version at once. Additions go through the gate;
deletions and changed readers never wait for it. Where it is kept is an IndexRegistry's business (ports.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


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
