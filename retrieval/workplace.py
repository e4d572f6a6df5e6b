"""Where a build writes before it publishes: a folder of its own, and none that a killed build left behind."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp


@contextmanager
def workplace(staging: Path, name: str) -> Iterator[Path]:
    """A folder of this build's own, removed at its end. What builds that were killed left behind is removed as well.

    Whoever works in a folder holds a lock on it, which the kernel drops with the process.
    """
    staging.mkdir(parents=True, exist_ok=True)
    with ExitStack() as ours:
        with _locked(staging):  # one at a time, so that no folder is seen before its lock is held
            for left in staging.iterdir():
                with suppress(BlockingIOError, NotADirectoryError), _locked(left, fcntl.LOCK_NB):
                    shutil.rmtree(left, ignore_errors=True)
            staged = Path(mkdtemp(prefix=f"{name}-", dir=staging))
            ours.callback(shutil.rmtree, staged, ignore_errors=True)
            ours.enter_context(_locked(staged))
        staged.chmod(0o755)  # mkdtemp lets only its owner look inside, and a server may be another user
        yield staged


def left_behind(staging: Path) -> list[Path]:
    """Folders of builds that were killed: those on which nobody holds a lock."""
    found: list[Path] = []
    for path in sorted(staging.iterdir()) if staging.is_dir() else ():
        with suppress(BlockingIOError, NotADirectoryError, FileNotFoundError), _locked(path, fcntl.LOCK_NB):
            found.append(path)
    return found


def clear(staging: Path) -> None:
    """Removes what killed builds left behind. Raises OSError."""
    if staging.is_dir():
        with _locked(staging):  # a folder is not seen before its lock is held
            for path in left_behind(staging):
                shutil.rmtree(path)


@contextmanager
def _locked(folder: Path, how: int = 0) -> Iterator[None]:
    """A lock on a folder. Raises BlockingIOError with LOCK_NB when somebody else holds it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | how)
        yield
    finally:
        os.close(handle)
