"""Index versions, decisions, tombstones and the rollout pointer in a folder that several processes share.

    versions/<id>/, seals/<id>.json  immutable versions, and their digests; see version_folders.py
    rollout.json, ledger.jsonl       the pointer and its moves; see ledger.py
    decisions/<id>.jsonl             decisions, only ever appended
    tombstones.json, access.json     documents that are gone, and those with other readers; see document_records.py

A crash at any point leaves the state before or after, never one between. Reading takes no lock and writes nothing,
so a read-only folder can be served from.
"""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from domain.amending import DocumentChange
from domain.errors import StorageError
from domain.releases import Decision, IndexVersion, Leftover, Move, Rollout
from domain.rollout import arriving, check_removable, moved_meanwhile, unrecorded
from retrieval.disk import cannot_write, size_of
from retrieval.document_records import DocumentRecords
from retrieval.fingerprint import check_content, check_seal
from retrieval.jsonrecords import append_line, decoded, encoded, plain, read_lines
from retrieval.ledger import Ledger
from retrieval.version_folders import VersionFolders


class FolderRegistry:
    """The registry in `root`, which need not exist before the first write."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self._folders = VersionFolders(self.root)
        self._ledger = Ledger(self.root)
        self._documents = DocumentRecords(self.root)

    # ------------------------------------------------------------------------------------------ versions

    def publish(self, staged: Path, version: IndexVersion) -> bool:
        """Make a staged folder a version, all or nothing; `staged` is moved. False when that version was there already.

        Everything is on disk before the version becomes visible. Raises StorageError when the folder cannot be written.
        """
        if self._folders.has(version.id):
            return False
        with self._writing():
            return self._folders.add(staged, version)  # which looks again: somebody may have published it a moment ago

    def folder(self, version: str) -> Path:
        """The version's folder. Raises NotFound, naming the versions there are."""
        return self._folders.folder(version)

    def versions(self) -> tuple[IndexVersion, ...]:
        """All versions, oldest first, built at the same time by id; without those in `damaged`."""
        return self._folders.versions()

    def damaged(self) -> Mapping[str, str]:
        """Why a folder cannot be told to be a version, by the id it has. Nothing else suffers from it."""
        return self._folders.damaged()

    def remove(self, version: str) -> None:
        """Remove a version's folder; its decisions stay. Raises BadRequest for stable, previous and canary.

        Gone for everybody by one rename; processes that have it open keep what they opened.
        """
        with self._writing():
            self._folders.clear()  # also when this is refused, as it is to whoever removes again what is removed
            self.folder(version)
            check_removable(version, self.rollout())
            self._folders.remove(version)

    def size(self, version: str) -> int:
        """Bytes of a version."""
        return size_of(self.folder(version))

    def verify(self, version: str) -> None:
        """Raises StorageError naming the files that are not what was published. Reads the whole version."""
        check_content(self.folder(version), self._folders.digests(version))

    def check(self, version: str) -> None:
        """Raises StorageError when the manifest, or what is said of the version, is not what was published."""
        check_seal(self.folder(version), self._folders.digests(version))

    # ------------------------------------------------------------------------------------------ left over

    def leftovers(self) -> tuple[Leftover, ...]:
        """What killed work left in the folder of the registry. Waits for whoever writes there, so it is no leftover."""
        if not self.root.is_dir() or not os.access(self.root, os.W_OK):
            return ()
        with self._writing():
            return tuple(Leftover(str(path), size_of(path), why) for path, why in self._left())

    def clear_leftovers(self) -> tuple[Leftover, ...]:
        """Remove it; what was removed comes back."""
        if not self.root.is_dir():
            return ()
        with self._writing():
            found = [(path, Leftover(str(path), size_of(path), why)) for path, why in self._left()]
            for path, _ in found:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            return tuple(leftover for _, leftover in found)

    def _left(self) -> list[tuple[Path, str]]:
        unwritten = ((path, "a record that was not written") for path in sorted(self.root.glob("**/.*.new")))
        return [*self._folders.left(), *unwritten]

    # ------------------------------------------------------------------------------------------ decisions

    def record(self, decision: Decision) -> None:
        """Remember a decision about a known version; it is on disk when this returns."""
        self.folder(decision.binding.version)
        with self._writing():
            self._add(decision)

    def decisions(self, version: str) -> tuple[Decision, ...]:
        """All decisions about a version, oldest first. Raises StorageError naming a damaged line."""
        self.folder(version)
        path = self._decisions(version)
        return tuple(decoded(Decision, f"{path}, line {i}", line) for i, line in enumerate(read_lines(path), 1))

    # ------------------------------------------------------------------------------------------ the pointer

    def rollout(self) -> Rollout:
        """The pointer as it stands; an empty one before the first promotion."""
        return self._ledger.rollout()

    def move(self, move: Move) -> None:
        """Move the pointer if it still is at `before`, and write the ledger's line, both or neither; with them a forced
        decision that is on record only now. One that a crash leaves without its move is as if it had been recorded.

        Raises PointerMoved otherwise, saying what moved, NotFound when a version that it brings does not exist, and
        NotAdmitted when the last word about exactly what it was decided on has become no.
        `after` may equal `before`, which moves nothing; otherwise its revision is the next one.
        """
        before, after = move.before, move.after
        if after != before and after.revision != before.revision + 1:
            raise ValueError(f"a move from revision {before.revision} to {after.revision}: this is a bug")
        with self._writing():
            current = self.rollout()
            if current != before:
                last = None
                with suppress(StorageError):  # a damaged record must not hide that the pointer moved
                    last = self._ledger.last()
                raise moved_meanwhile(before, current, last)
            for version in arriving(before, after):
                self.folder(version)
            if after != before:
                if move.decision is not None:
                    forced = unrecorded(move, self.decisions(move.decision.binding.version))
                    if forced is not None:
                        self._add(forced)
                self._ledger.write(move)

    def ledger(self) -> tuple[Move, ...]:
        """Every move of the pointer, oldest first. Raises StorageError naming a damaged line."""
        return self._ledger.moves()

    # ------------------------------------------------------------------------------------------ documents

    def tombstones(self) -> frozenset[str]:
        """Document ids that no version may return any more."""
        return self._documents.tombstones()

    def tombstone(self, doc_ids: Iterable[str]) -> None:
        """Let no version return these documents any more, whether or not they exist. Doing it twice is the same."""
        added = frozenset(doc_ids)
        with self._writing():
            self._documents.write_tombstones(self.tombstones() | added)

    def restore(self, doc_ids: Iterable[str]) -> None:
        """Let versions that hold these documents return them again."""
        removed = frozenset(doc_ids)
        with self._writing():
            self._documents.write_tombstones(self.tombstones() - removed)

    def access(self) -> Mapping[str, frozenset[str]]:
        """The groups of documents whose readers were changed after they were built."""
        return self._documents.access()

    def set_access(self, doc_id: str, groups: frozenset[str] | None) -> None:
        """Let exactly these groups read a document in every version, nobody if empty; None: as it was built."""
        with self._writing():
            others = {known: theirs for known, theirs in self.access().items() if known != doc_id}
            self._documents.write_access(others if groups is None else {**others, doc_id: groups})

    def note_change(self, change: DocumentChange) -> None:
        """Put on record who changes documents and why; it is on disk when this returns."""
        with self._writing():
            self._documents.add(change)

    def changes(self) -> tuple[DocumentChange, ...]:
        """Every change of documents on record, oldest first. Raises StorageError naming a damaged line."""
        return self._documents.changes()

    # ------------------------------------------------------------------------------------------ on disk

    def _decisions(self, version: str) -> Path:
        return self.root / "decisions" / f"{version}.jsonl"

    def _add(self, decision: Decision) -> None:
        path = self._decisions(decision.binding.version)
        path.parent.mkdir(parents=True, exist_ok=True)
        append_line(path, encoded(plain(decision)))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One writer at a time among all processes; the kernel drops the lock of one that dies."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with (self.root / ".lock").open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise cannot_write(self.root, error) from error
