"""Index versions, decisions, tombstones and the rollout pointer in a folder that several processes share.

    versions/<id>/                   an immutable version, visible by one rename; version.json says when and from what
    seals/<id>.json                  digests of what the version's name does not cover; see fingerprint.py
    rollout.json, ledger.jsonl       the pointer and its moves; see ledger.py
    decisions/<id>.jsonl             decisions, only ever appended
    tombstones.json, access.json     documents that are gone, and those with other readers; see document_records.py

A crash at any point leaves the state before or after, never one between. Reading takes no lock and writes nothing,
so a read-only folder can be served from.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from domain.amending import DocumentChange
from domain.errors import NotFound, StorageError
from domain.releases import Decision, IndexVersion, Leftover, Move, Rollout
from domain.rollout import arriving, check_removable, moved_meanwhile, unrecorded
from retrieval.disk import INCOMING, beside, cannot_write, size_of
from retrieval.document_records import DocumentRecords
from retrieval.fingerprint import MANIFEST, check_content, check_seal, sha256_of
from retrieval.jsonrecords import (
    append_line,
    damaged,
    decoded,
    encoded,
    plain,
    read,
    read_lines,
    replace_file,
    sync_folder,
    sync_tree,
)
from retrieval.ledger import Ledger

VERSION_NAME = re.compile(r"v[0-9a-f]{12}")
VERSION_FILE = "version.json"  # beside the content of a version, not part of it: it holds the time of building
REMOVED = ".removed-"  # how the folder of a version begins that is none any more


class FolderRegistry:
    """The registry in `root`, which need not exist before the first write."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self._ledger = Ledger(self.root)
        self._documents = DocumentRecords(self.root)

    # ------------------------------------------------------------------------------------------ versions

    def publish(self, staged: Path, version: IndexVersion) -> bool:
        """Make a staged folder a version, all or nothing; `staged` is moved. False when that version was there already.

        Everything is on disk before the version becomes visible. Raises StorageError when the folder cannot be written.
        """
        target = self._versions / checked_name(version.id)
        if _is_version(target):
            return False
        with self._writing():
            target.parent.mkdir(parents=True, exist_ok=True)
            self._clear()
            if _is_version(target):
                return False  # somebody published the same content a moment ago
            with beside(staged, target.parent) as near:
                (near / VERSION_FILE).write_bytes(encoded(plain(version)))
                sync_tree(near)
                self._seal(near, version.id)
                near.rename(target)
            sync_folder(target.parent)
            sync_folder(self.root)  # which may have got its folders only now
        return True

    def folder(self, version: str) -> Path:
        """The version's folder. Raises NotFound, naming the versions there are."""
        path = self._versions / version
        if VERSION_NAME.fullmatch(version) and path.is_dir():
            return path
        there = ", ".join(sorted(known.name for known in self._folders())) or "none yet"
        raise NotFound(f"Index version '{version}' does not exist; there are: {there}.", "version")

    def versions(self) -> tuple[IndexVersion, ...]:
        """All versions, oldest first, built at the same time by id; without those in `damaged`."""
        found: list[IndexVersion] = []
        for path in self._folders():
            with suppress(StorageError):
                found.append(_described(path))
        return tuple(sorted(found, key=lambda version: (version.built_at, version.id)))

    def damaged(self) -> Mapping[str, str]:
        """Why a folder cannot be told to be a version, by the id it has. Nothing else suffers from it."""
        wrong: dict[str, str] = {}
        for path in self._folders():
            try:
                _described(path)
            except StorageError as error:
                wrong[path.name] = str(error)
        return wrong

    def remove(self, version: str) -> None:
        """Remove a version's folder; its decisions stay. Raises BadRequest for stable, previous and canary.

        Gone for everybody by one rename; processes that have it open keep what they opened.
        """
        with self._writing():
            self._clear()
            folder = self.folder(version)
            check_removable(version, self.rollout())
            folder.rename(folder.with_name(f"{REMOVED}{version}"))
            sync_folder(folder.parent)
            self._seal_of(version).unlink(missing_ok=True)
            self._clear()

    def size(self, version: str) -> int:
        """Bytes of a version."""
        return size_of(self.folder(version))

    def verify(self, version: str) -> None:
        """Raises StorageError naming the files that are not what was published. Reads the whole version."""
        check_content(self.folder(version), self._digests(version))

    def check(self, version: str) -> None:
        """Raises StorageError when the manifest, or what is said of the version, is not what was published."""
        check_seal(self.folder(version), self._digests(version))

    def _digests(self, version: str) -> dict[str, str]:
        seal = self._seal_of(version)
        content = read(seal)
        return decoded(dict[str, str], seal, content) if content is not None else {}

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
        there = {path.name for path in self._folders()}
        return [
            *((path, "a removal that was killed") for path in self._versions.glob(f"{REMOVED}*")),
            *((path, "a version that was not published") for path in self._versions.glob(f"{INCOMING}*")),
            *((path, "a record that was not written") for path in sorted(self.root.glob("**/.*.new"))),
            *((path, "digests of no version") for path in self.root.glob("seals/*.json") if path.stem not in there),
        ]

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

    @property
    def _versions(self) -> Path:
        return self.root / "versions"

    def _decisions(self, version: str) -> Path:
        return self.root / "decisions" / f"{version}.jsonl"

    def _add(self, decision: Decision) -> None:
        path = self._decisions(decision.binding.version)
        path.parent.mkdir(parents=True, exist_ok=True)
        append_line(path, encoded(plain(decision)))

    def _seal_of(self, version: str) -> Path:
        return self.root / "seals" / f"{version}.json"

    def _folders(self) -> list[Path]:
        """The folders of all versions, in no order."""
        there = self._versions.iterdir() if self._versions.is_dir() else ()
        return [path for path in there if VERSION_NAME.fullmatch(path.name)]

    def _seal(self, staged: Path, version: str) -> None:
        """Keep the digests by which `verify` knows this version. One without a rename to follow disturbs nobody."""
        digests = {name: sha256_of(staged / name) for name in (MANIFEST, VERSION_FILE) if (staged / name).is_file()}
        path = self._seal_of(version)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, encoded(digests))

    def _clear(self) -> None:
        """Delete what removals, and publishing from another disk, left behind when they were killed."""
        for path in [*self._versions.glob(f"{REMOVED}*"), *self._versions.glob(f"{INCOMING}*")]:
            shutil.rmtree(path, ignore_errors=True)

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


def checked_name(version: str) -> str:
    """The name, which becomes a path, if it is a version's name and nothing else."""
    if not VERSION_NAME.fullmatch(version):
        raise NotFound(f"'{version}' is no version name: v and 12 hexadecimal digits are wanted.", "version")
    return version


def _is_version(folder: Path) -> bool:
    """True when a version is there. Raises StorageError when what is there is damaged: it must be out of the way."""
    return folder.is_dir() and bool(_described(folder))


def _described(folder: Path) -> IndexVersion:
    """What is said about the version in a folder."""
    path = folder / VERSION_FILE
    whole = f"all of {folder}"  # without its description a folder is damaged still
    version: IndexVersion = decoded(IndexVersion, path, read(path) or b"", whole)
    if version.id != folder.name:
        raise damaged(path, f"id: it describes {version.id}", whole)
    return version
