"""What every writer asks of a disk: is there room, how much does this take, and what to say when it does not take it.

A look at free space beforehand is a courtesy, not a promise: others write too, and quotas cannot be seen. So whatever
writes also survives a disk that is full.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import BinaryIO

from domain.errors import StorageError

INCOMING = ".incoming-"  # how the folder of a version begins that is on its way from another disk
PLAIN = (".md", ".txt")  # files whose text is as long as they are


def lock_file(path: Path) -> BinaryIO:
    """The file, made where it is missing and open for a lock; whoever closes it gives the lock back.

    Raises StorageError when it cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("ab")
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> StorageError:
    """What to tell an operator whose disk is full or folder read-only."""
    ways_out = {
        errno.ENOSPC: "free some space on that disk",
        errno.EFBIG: "raise the limit on the size of files",
        errno.EDQUOT: "free some space within the quota",
        errno.EROFS: "serving works read-only, but for writing name a writable folder",
        errno.EACCES: "serving works read-only, but for writing let this user write there",
        errno.EPERM: "serving works read-only, but for writing let this user write there",
    }
    way_out = ways_out.get(error.errno or 0, "check the folder and try again")
    return StorageError(f"Cannot write {error.filename or path} ({error.strerror or error}): {way_out}.")


def check_room(path: Path, need: int, what: str) -> None:
    """Raises StorageError naming the path and the need when the disk of `path` cannot take so many bytes more."""
    there = path
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    if free < need:
        raise StorageError(
            f"No space for {what} in {path}: about {need / 1e6:.1f} MB are needed and {free / 1e6:.1f} MB are free: "
            "make room on that disk, or name a folder on another one."
        )


def text_bytes(corpus: Path) -> int:
    """Bytes of text that the files of a corpus hold at the least: of those that are nothing else."""
    return sum(
        Path(folder, name).stat().st_size
        for folder, _, files in os.walk(corpus)
        for name in files
        if name.endswith(PLAIN) and not Path(folder, name).is_symlink()
    )


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder at any depth; what links point to does not count."""
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.lstat().st_size for file in files if file.is_symlink() or file.is_file())


@contextmanager
def beside(staged: Path, folder: Path) -> Iterator[Path]:
    """The staged folder on the file system of `folder`, copied when it is on another: a rename cannot cross over."""
    if staged.stat().st_dev == folder.stat().st_dev:
        yield staged
        return
    check_room(folder, size_of(staged), "a version")
    near = Path(mkdtemp(prefix=INCOMING, dir=folder))
    try:
        shutil.copytree(staged, near, dirs_exist_ok=True)
        near.chmod(0o755)  # mkdtemp lets only its owner look inside
        yield near
    finally:
        shutil.rmtree(near, ignore_errors=True)
