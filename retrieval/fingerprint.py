"""What a version is named by, and whether a folder still holds what its name says.

The name covers the head of the manifest and every chunk. The manifest covers size and sha256 of all other files. Its
own digest, with that of the version's description, is the seal that registry.py keeps outside the version's folder.
So damage is found anywhere in the folder, and so is a change by somebody who can write the folder but not the rest of
the registry. Somebody who can write all of it can also move the pointer, and is kept out by the disk's permissions.
"""

from collections.abc import Iterable, Mapping
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import orjson

from domain.errors import StorageError

MANIFEST = "manifest.json"
CHUNKS = "chunks.jsonl"
BLOCK = 1 << 20  # bytes hashed at a time: large enough that hashing is all that takes time

NOT_IN_THE_HEAD = ("id", "files")  # the name itself, and digests of files that are written from what the name covers


def fingerprint(head: Mapping[str, Any], lines: Iterable[bytes]) -> str:
    """The name of a version: of everything that is in it or decides how it is searched, but not of time or parent.

    `lines` are the chunks as JSON, by chunk id, without line ends.
    """
    digest = sha256(orjson.dumps(head, option=orjson.OPT_SORT_KEYS))
    for line in lines:
        digest.update(b"\n" + line)
    return _name(digest.hexdigest())


def sha256_of(path: Path) -> str:
    """The digest of a file's content. Raises OSError."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def check_content(folder: Path, seal: Mapping[str, str], block: int = BLOCK) -> None:
    """Raises StorageError naming every file of the version in `folder` that is missing or is not what was published.

    `seal` is the digest by name of files that nothing else covers; a version from before there were seals has none.
    The file of chunks is read `block` bytes at a time.
    """
    _complain(folder, differing(folder, seal, block))


def check_seal(folder: Path, seal: Mapping[str, str]) -> None:
    """As `check_content`, but reads only the files that `seal` names: what they say of the others is taken as said."""
    wrong: dict[str, str] = {}
    for name, wanted in seal.items():
        _compare(folder, name, wanted, wrong)
    _complain(folder, wrong)


def _complain(folder: Path, wrong: Mapping[str, str]) -> None:
    if wrong:
        told = "; ".join(f"{name}: {why}" for name, why in sorted(wrong.items()))
        raise StorageError(
            f"Index version {folder.name} is not what was published under that name, it is damaged or was tampered "
            f"with ({told}): restore {folder}, or remove it and build again."
        )


def differing(folder: Path, seal: Mapping[str, str], block: int = BLOCK) -> dict[str, str]:
    """Every file of the version in `folder` that is missing or is not what was published, and why; see above."""
    wrong: dict[str, str] = {}
    for name, wanted in seal.items():
        _compare(folder, name, wanted, wrong)
    return wrong | _against_manifest(folder, block)


def _against_manifest(folder: Path, block: int) -> dict[str, str]:
    """What the manifest says against what is there: why, by file."""
    try:
        manifest = orjson.loads((folder / MANIFEST).read_bytes())
        described = {str(name): str(file["sha256"]) for name, file in manifest["files"].items()}
        head = {key: value for key, value in manifest.items() if key not in NOT_IN_THE_HEAD}
    except OSError as error:
        return {MANIFEST: _unreadable(error)}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {MANIFEST: "it is no manifest"}
    wrong: dict[str, str] = {}
    for name in sorted(described.keys() - {CHUNKS}):
        _compare(folder, name, described[name], wrong)
    try:
        content, named = _chunk_digests(folder / CHUNKS, head, block)
    except OSError as error:
        return wrong | {CHUNKS: _unreadable(error)}
    if content != described.get(CHUNKS):
        wrong[CHUNKS] = "its content is another"
    elif named != folder.name:
        wrong[MANIFEST] = f"it describes {named}"
    return wrong


def _compare(folder: Path, name: str, wanted: str, wrong: dict[str, str]) -> None:
    try:
        if sha256_of(folder / name) != wanted:
            wrong[name] = "its content is another"
    except OSError as error:
        wrong[name] = _unreadable(error)


def _chunk_digests(path: Path, head: Mapping[str, Any], block: int) -> tuple[str, str]:
    """The digest of the file of chunks and the name it makes with `head`, in one pass.

    A line end after each line, as in the file, is a line end before each, as in the name, less the last one.
    """
    content, named = sha256(), sha256(orjson.dumps(head, option=orjson.OPT_SORT_KEYS) + b"\n")
    with path.open("rb") as file:
        read = file.read(block)
        while read:
            following = file.read(block)
            content.update(read)
            named.update(read if following else read.removesuffix(b"\n"))
            read = following
    return content.hexdigest(), _name(named.hexdigest())


def _name(hexdigest: str) -> str:
    return f"v{hexdigest[:12]}"


def _unreadable(error: OSError) -> str:
    return error.strerror or str(error)
