"""Versions of a registry on S3 as folders of this machine, up to so many bytes; all of it may be removed at any time.

    <upload>/<version>/     a version as it was published, visible by one rename; `upload` names the one that made it
    <upload>/.use           locked by every process that has it, so that nobody takes it away
    .incoming-, .leaving-   on its way in or out; cleared when nobody works on it

What is in use or named by the caller stays even beyond the limit: answering comes first. Several processes of a machine
share a folder, and one of them downloads.
"""

import fcntl
import os
import shutil
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock

from domain.errors import StorageError
from retrieval.disk import cannot_write, size_of
from retrieval.jsonrecords import sync_folder, sync_tree

INCOMING, LEAVING = ".incoming-", ".leaving-"
HELD = 16  # versions that a process counts as in use: those it asked for last; a library opens six at most


class Cache:
    """Versions below `root`, `limit` bytes of them at most beside those that are in use."""

    def __init__(self, root: Path, limit: int) -> None:
        self._root, self._limit = root, limit
        self._held: OrderedDict[str, int] = OrderedDict()  # upload -> handle of its lock, last asked for last
        self._lock = Lock()

    def folder(
        self, upload: str, version: str, size: int, kept: Callable[[], frozenset[str]], fill: Callable[[Path], None]
    ) -> Path:
        """The folder of a version, in use from now on; `fill` writes it into an empty one when it is not there yet.

        `size` is how many bytes that takes, `kept` gives the uploads that must not leave for it. Raises StorageError
        when the disk has no room.
        """
        with self._lock:
            try:
                if self._hold(upload):
                    return self._root / upload / version
                self._root.mkdir(parents=True, exist_ok=True)
                with self._alone():
                    if not self._hold(upload):
                        self._make_room(size, kept() | {upload})
                        self._take_in(upload, version, fill)
                        self._hold(upload)
            except OSError as error:
                raise cannot_write(self._root, error) from error
            return self._root / upload / version

    def take(self, upload: str, version: str, folder: Path, kept: Callable[[], frozenset[str]]) -> None:
        """Keep a folder that this machine made, so that it need not be fetched; it is moved. Losing it is no harm."""

        def moved(into: Path) -> None:
            into.rmdir()
            folder.rename(into)

        def copied(into: Path) -> None:
            shutil.copytree(folder, into, dirs_exist_ok=True)

        with suppress(StorageError, OSError):
            self._root.mkdir(parents=True, exist_ok=True)
            near = self._root.stat().st_dev == folder.stat().st_dev
            self.folder(upload, version, 0 if near else size_of(folder), kept, moved if near else copied)

    def drop(self, upload: str) -> None:
        """Let a version be fetched again. Processes that have it open keep what they opened."""
        with self._lock, suppress(FileNotFoundError):
            self._release(upload)
            with self._alone():
                self._remove(self._root / upload)

    def left(self) -> tuple[Path, ...]:
        """What is on its way in or out, and whoever was at it is dead; none while somebody is at it."""
        try:
            with self._alone(fcntl.LOCK_NB):
                return (*self._root.glob(f"{INCOMING}*"), *self._root.glob(f"{LEAVING}*"))
        except (BlockingIOError, FileNotFoundError):
            return ()

    def close(self) -> None:
        """Nothing is in use by this process any more."""
        with self._lock:
            for upload in list(self._held):
                self._release(upload)

    # ------------------------------------------------------------------------------------------ in use

    def _hold(self, upload: str) -> bool:
        """True when the version is there, and stays until `HELD` others were asked for."""
        path = self._root / upload
        if upload in self._held and path.is_dir():
            self._held.move_to_end(upload)
            return True
        self._release(upload)
        try:
            handle = os.open(path / ".use", os.O_RDONLY)
        except FileNotFoundError:
            return False
        fcntl.flock(handle, fcntl.LOCK_SH)
        if not path.is_dir() or os.fstat(handle).st_ino != (path / ".use").stat().st_ino:  # it has just left
            os.close(handle)
            return False
        with suppress(OSError):  # of another user, who may read it
            now = time.time_ns()  # the kernel's own clock of files ticks every few milliseconds
            os.utime(path / ".use", ns=(now, now))
        self._held[upload] = handle
        while len(self._held) > HELD:
            self._release(next(iter(self._held)))
        return True

    def _release(self, upload: str) -> None:
        handle = self._held.pop(upload, None)
        if handle is not None:
            os.close(handle)

    # ------------------------------------------------------------------------------------------ in and out

    def _take_in(self, upload: str, version: str, fill: Callable[[Path], None]) -> None:
        place = Path(mkdtemp(prefix=INCOMING, dir=self._root))
        try:
            (place / version).mkdir()
            fill(place / version)
            (place / version).chmod(0o755)
            place.chmod(0o755)
            (place / ".use").touch()
            sync_tree(place)
            place.rename(self._root / upload)
            sync_folder(self._root)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _make_room(self, size: int, kept: frozenset[str]) -> None:
        """Removes what was used longest ago until `size` more bytes stay within the limit and fit on the disk."""
        self._clear()
        there = {path.name: size_of(path) for path in self._oldest_first()}
        total = sum(there.values()) + size
        for name, bytes in there.items():
            if total <= self._limit and shutil.disk_usage(self._root).free >= size:
                return
            if name not in kept and self._remove_unused(self._root / name):
                total -= bytes
        free = shutil.disk_usage(self._root).free
        if free < size:
            raise StorageError(
                f"No space for a version in {self._root}: {size / 1e6:.1f} MB are needed and {free / 1e6:.1f} MB are "
                "free: make room there, or name another folder in registry.cache_dir."
            )

    def clear(self) -> None:
        """Remove what `left` finds."""
        with suppress(BlockingIOError, FileNotFoundError), self._alone(fcntl.LOCK_NB):
            self._clear()

    def _clear(self) -> None:
        for left in [*self._root.glob(f"{INCOMING}*"), *self._root.glob(f"{LEAVING}*")]:
            shutil.rmtree(left, ignore_errors=True)  # whoever worked here held the lock that is ours now

    def _oldest_first(self) -> list[Path]:
        there = [path for path in self._root.iterdir() if (path / ".use").is_file() and path.name[0] != "."]
        return sorted(there, key=lambda path: ((path / ".use").stat().st_mtime_ns, path.name))

    def _remove_unused(self, path: Path) -> bool:
        """Removes a version unless a process has it; True when it is gone."""
        handle = os.open(path / ".use", os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._remove(path)
        except BlockingIOError:
            return False
        finally:
            os.close(handle)
        return True

    def _remove(self, path: Path) -> None:
        leaving = path.with_name(f"{LEAVING}{path.name}")
        path.rename(leaving)
        shutil.rmtree(leaving, ignore_errors=True)

    @contextmanager
    def _alone(self, how: int = 0) -> Iterator[None]:
        """One process at a time takes in or removes; the kernel drops the lock of one that dies."""
        with (self._root / ".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | how)
            yield
