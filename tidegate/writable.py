"""Whether a folder can be written, asked before hours of work and not after them. Keeps nothing there."""

from pathlib import Path
from tempfile import TemporaryFile

from domain.errors import StorageError


def check_writable(folder: Path) -> None:
    """Makes the folder if need be. Raises StorageError when it cannot be made, or nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as probe:
            probe.write(b"tidegate")
    except OSError as error:
        raise StorageError(
            f"{folder} cannot be written ({error.strerror}): name a folder that this user may write, or make room."
        ) from error
