"""Index versions, decisions, tombstones and the rollout pointer in a folder that several processes share.

    versions/<id>/            an immutable version, made visible by one rename; version.json says when and from what
    rollout.json              the pointer; moved by compare-and-set under a lock, replaced by one rename
    decisions/<id>.jsonl      decisions, only ever appended
    tombstones.json           document ids that no version may return any more

A crash at any point leaves the state before or after, never one between. Reading takes no lock and writes nothing,
so a read-only folder can be served from.
"""

import errno
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from pydantic import TypeAdapter, ValidationError

from domain.errors import NotFound, PointerMoved, StorageError
from domain.releases import Decision, IndexVersion, Rollout

VERSION_NAME = re.compile(r"v[0-9a-f]{12}")
VERSION_FILE = "version.json"  # beside the content of a version, not part of it: it holds the time of building


class FolderRegistry:
    """The registry in `root`, which need not exist before the first write."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    # ------------------------------------------------------------------------------------------ versions

    def publish(self, staged: Path, version: IndexVersion) -> bool:
        """Make a staged folder a version, all or nothing; `staged` is moved. False when that version was there already.

        Everything is on disk before the version becomes visible. Raises StorageError when the folder cannot be written.
        """
        target = self._versions / _checked(version.id)
        if target.is_dir():
            return False
        with self._writing():
            target.parent.mkdir(parents=True, exist_ok=True)
            with _beside(staged, target.parent) as near:
                (near / VERSION_FILE).write_bytes(_dump(version))
                _sync(near)
                try:
                    near.rename(target)
                except OSError as error:
                    if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
                        return False  # somebody published the same content a moment ago
                    raise
            _sync_folder(target.parent)
        return True

    def folder(self, version: str) -> Path:
        """The version's folder. Raises NotFound, naming the versions there are."""
        path = self._versions / version
        if VERSION_NAME.fullmatch(version) and path.is_dir():
            return path
        there = ", ".join(known.id for known in self.versions()) or "none yet"
        raise NotFound(f"Index version '{version}' does not exist; there are: {there}.", "version")

    def versions(self) -> tuple[IndexVersion, ...]:
        """All versions, oldest first, built at the same time by id."""
        if not self._versions.is_dir():
            return ()
        folders = [path for path in self._versions.iterdir() if VERSION_NAME.fullmatch(path.name)]
        found = [_load(IndexVersion, path / VERSION_FILE, _read(path / VERSION_FILE)) for path in folders]
        return tuple(sorted(found, key=lambda version: (version.built_at, version.id)))

    # ------------------------------------------------------------------------------------------ decisions

    def record(self, decision: Decision) -> None:
        """Remember a decision about a known version; it is on disk when this returns."""
        self.folder(decision.binding.version)
        path = self._decisions(decision.binding.version)
        with self._writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as lines:
                lines.seek(0)
                # A line without its end is a write that never returned; the next one must not be glued to it.
                lines.truncate(lines.read().rfind(b"\n") + 1)
                lines.write(_dump(decision) + b"\n")
                lines.flush()
                os.fsync(lines.fileno())
            _sync_folder(path.parent)

    def decisions(self, version: str) -> tuple[Decision, ...]:
        """All decisions about a version, oldest first. Raises StorageError naming a damaged line."""
        self.folder(version)
        path = self._decisions(version)
        whole_lines = _read(path).split(b"\n")[:-1]  # what follows the last line end was never acknowledged
        return tuple(_load(Decision, f"{path}, line {i}", line) for i, line in enumerate(whole_lines, 1))

    # ------------------------------------------------------------------------------------------ the pointer

    def rollout(self) -> Rollout:
        """The pointer as it stands; an empty one before the first promotion."""
        content = _read(self._pointer)
        return _load(Rollout, self._pointer, content) if content else Rollout()

    def move(self, expected: Rollout, wanted: Rollout) -> None:
        """Move the pointer if it still is `expected`. Raises PointerMoved otherwise, and changes nothing.

        `wanted` may equal `expected`, which moves nothing; otherwise its revision is the next one. Raises NotFound
        when it names a version that does not exist.
        """
        if wanted != expected and wanted.revision != expected.revision + 1:
            raise ValueError(f"a move from revision {expected.revision} to {wanted.revision}: this is a bug")
        for version in (wanted.stable, wanted.canary):
            if version is not None:
                self.folder(version)
        with self._writing():
            current = self.rollout()
            if current != expected:
                raise PointerMoved(
                    f"The rollout pointer is at revision {current.revision}, not {expected.revision}: "
                    "somebody else moved it; read it again and decide again."
                )
            if wanted != expected:
                self._replace(self._pointer, _dump(wanted))

    # ------------------------------------------------------------------------------------------ tombstones

    def tombstones(self) -> frozenset[str]:
        """Document ids that no version may return any more."""
        content = _read(self._tombstones)
        return frozenset(_load(list[str], self._tombstones, content)) if content else frozenset()

    def tombstone(self, doc_ids: Iterable[str]) -> None:
        """Let no version return these documents any more, whether or not they exist. Doing it twice is the same."""
        added = frozenset(doc_ids)
        with self._writing():
            self._replace(self._tombstones, _dump(sorted(self.tombstones() | added)))

    def restore(self, doc_ids: Iterable[str]) -> None:
        """Let versions that hold these documents return them again."""
        removed = frozenset(doc_ids)
        with self._writing():
            self._replace(self._tombstones, _dump(sorted(self.tombstones() - removed)))

    # ------------------------------------------------------------------------------------------ on disk

    @property
    def _versions(self) -> Path:
        return self.root / "versions"

    @property
    def _pointer(self) -> Path:
        return self.root / "rollout.json"

    @property
    def _tombstones(self) -> Path:
        return self.root / "tombstones.json"

    def _decisions(self, version: str) -> Path:
        return self.root / "decisions" / f"{version}.jsonl"

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

    def _replace(self, path: Path, content: bytes) -> None:
        """The file with new content, all or nothing. Called by the one writer."""
        fresh = path.with_name(f".{path.name}.new")
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        _sync_folder(path.parent)


def cannot_write(path: Path, error: OSError) -> StorageError:
    """What to tell an operator whose disk is full or folder read-only."""
    ways_out = {
        errno.ENOSPC: "free some space on that disk",
        errno.EDQUOT: "free some space within the quota",
        errno.EROFS: "serving works read-only, but for writing name a writable folder",
        errno.EACCES: "serving works read-only, but for writing let this user write there",
        errno.EPERM: "serving works read-only, but for writing let this user write there",
    }
    way_out = ways_out.get(error.errno or 0, "check the folder and try again")
    return StorageError(f"Cannot write {error.filename or path} ({error.strerror or error}): {way_out}.")


def _checked(version: str) -> str:
    """The name, which becomes a path, if it is a version's name and nothing else."""
    if not VERSION_NAME.fullmatch(version):
        raise NotFound(f"'{version}' is no version name: v and 12 hexadecimal digits are wanted.", "version")
    return version


@contextmanager
def _beside(staged: Path, folder: Path) -> Iterator[Path]:
    """The staged folder on the file system of `folder`, copied when it is on another: a rename cannot cross over."""
    if staged.stat().st_dev == folder.stat().st_dev:
        yield staged
        return
    near = Path(mkdtemp(prefix=".incoming-", dir=folder))
    try:
        shutil.copytree(staged, near, dirs_exist_ok=True)
        near.chmod(0o755)  # mkdtemp lets only its owner look inside
        yield near
    finally:
        shutil.rmtree(near, ignore_errors=True)


def _sync(folder: Path) -> None:
    for parent, _, files in os.walk(folder, topdown=False):
        for name in files:
            with Path(parent, name).open("rb") as file:
                os.fsync(file.fileno())
        _sync_folder(Path(parent))


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(path: Path) -> bytes:
    """The content of a file, empty when there is none. Raises StorageError when it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StorageError(f"Cannot read {path} ({error.strerror}): let this user read it.") from error


# ---------------------------------------------------------------------------------------------- records as JSON


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # pydantic: a record type to its JSON form
    return TypeAdapter(kind)


def _dump(record: Any) -> bytes:  # a record of domain/types.py, or a list of them
    kind: Any = type(record)
    plain = _adapter(kind).dump_python(record, mode="json")
    return json.dumps(plain, ensure_ascii=False, sort_keys=True).encode()


def _load(kind: Any, place: object, content: bytes) -> Any:  # the caller names the kind it gets
    try:
        return _adapter(kind).validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise StorageError(
            f"{place} is damaged ({where}: {first['msg']}): restore it from a backup or remove it."
        ) from error
