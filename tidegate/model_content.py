"""What is in a model folder that settings name, as a digest: its path says where the model is, not which one it is.

A folder that is trained anew or replaced is another model, and no decision about the old one speaks of it.
"""

import hashlib
from functools import lru_cache
from pathlib import Path

READ = (".safetensors", ".json", ".txt", ".model")  # what loaders read; a card or a history changes no answer


def model_content(folder: Path) -> str:
    """16 hex digits over the names and contents of what is loaded from `folder`; "missing" when there is no folder.

    A large file is read once per process, and again when its size or time has changed. Raises OSError when a file
    cannot be read: a digest without it would equal that of another folder.
    """
    if not folder.is_dir():
        return "missing"
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.suffix in READ and path.is_file() and not any(part.startswith(".") for part in inside.parts):
            about = path.stat()
            content = _content(path, about.st_size, about.st_mtime_ns, about.st_ino)
            whole.update(f"{inside.as_posix()}\0{content}\n".encode(errors="replace"))
    return whole.hexdigest()[:16]


@lru_cache(maxsize=256)
def _content(path: Path, _size: int, _changed_ns: int, _inode: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
