"""What is said of documents after they were built, as files in a registry's folder.

    tombstones.json        document ids that no version may return any more
    access.json            document id to the groups that may read it, instead of those it was built with
    documents.jsonl        who changed either, when and why; only ever added to

Each file is replaced whole, so a change is there or it is not. Locks are the caller's; see registry.py.
"""

from pathlib import Path

from domain.amending import DocumentChange
from retrieval.jsonrecords import append_line, decoded, encoded, plain, read, read_lines, replace_file


class DocumentRecords:
    """The records in the folder `root`."""

    def __init__(self, root: Path) -> None:
        self._tombstones = root / "tombstones.json"
        self._access = root / "access.json"
        self._lines = root / "documents.jsonl"

    def tombstones(self) -> frozenset[str]:
        """Document ids that no version may return any more."""
        content = read(self._tombstones)
        return frozenset(decoded(list[str], self._tombstones, content)) if content is not None else frozenset()

    def access(self) -> dict[str, frozenset[str]]:
        """The groups of documents whose readers were changed."""
        content = read(self._access)
        return decoded(dict[str, frozenset[str]], self._access, content) if content is not None else {}

    def changes(self) -> tuple[DocumentChange, ...]:
        """Every change on record, oldest first. Raises StorageError naming a damaged line."""
        lines = enumerate(read_lines(self._lines), 1)
        return tuple(decoded(DocumentChange, f"{self._lines}, line {i}", line) for i, line in lines)

    def write_tombstones(self, doc_ids: frozenset[str]) -> None:
        """These and no others are gone. Raises OSError when the disk does not take it."""
        replace_file(self._tombstones, encoded(sorted(doc_ids)))

    def write_access(self, access: dict[str, frozenset[str]]) -> None:
        """These and no others have other readers. Raises OSError when the disk does not take it."""
        replace_file(self._access, encoded({doc_id: sorted(groups) for doc_id, groups in access.items()}))

    def add(self, change: DocumentChange) -> None:
        """One more change on record. Raises OSError when the disk does not take it."""
        append_line(self._lines, encoded(plain(change)))
