"""The versions of a registry in a folder: each becomes visible by one rename and goes by one.

    versions/<id>/          an immutable version; version.json says when it was built and from what
    seals/<id>.json         digests of what the version's name does not cover; see fingerprint.py

Takes no lock and knows no pointer: whoever adds or removes holds the registry's lock, and has asked it (registry.py).
"""

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from domain.errors import NotFound, StorageError
from domain.releases import IndexVersion
from retrieval.disk import INCOMING, beside
from retrieval.fingerprint import MANIFEST, sha256_of
from retrieval.jsonrecords import damaged, decoded, encoded, plain, read, replace_file, sync_folder, sync_tree

VERSION_NAME = re.compile(r"v[0-9a-f]{12}")
VERSION_FILE = "version.json"  # beside the content of a version, not part of it: it holds the time of building
REMOVED = ".removed-"  # how the folder of a version begins that is none any more


class VersionFolders:
    """The folders of versions below `root`, which need not exist before the first one is added."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._versions = root / "versions"

    def folder(self, version: str) -> Path:
        """The version's folder. Raises NotFound, naming the versions there are."""
        path = self._versions / version
        if VERSION_NAME.fullmatch(version) and path.is_dir():
            return path
        there = ", ".join(sorted(known.name for known in self._folders())) or "none yet"
        raise NotFound(f"Index version '{version}' does not exist; there are: {there}.", "version")

    def has(self, version: str) -> bool:
        """True when the version is there. Raises StorageError when it is damaged: it must be out of the way."""
        folder = self._versions / checked_version(version)
        return folder.is_dir() and bool(_described(folder))

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

    def digests(self, version: str) -> dict[str, str]:
        """What `check_content` and `check_seal` hold the version against; nothing for one without a seal."""
        seal = self._seal_of(version)
        content = read(seal)
        return decoded(dict[str, str], seal, content) if content is not None else {}

    # ------------------------------------------------------------------------------------------ coming and going

    def add(self, staged: Path, version: IndexVersion) -> bool:
        """Make a staged folder a version, on disk before it is visible. False when that version was there already."""
        target = self._versions / checked_version(version.id)
        self._versions.mkdir(parents=True, exist_ok=True)
        self.clear()
        if self.has(version.id):
            return False
        with beside(staged, self._versions) as near:
            (near / VERSION_FILE).write_bytes(encoded(plain(version)))
            sync_tree(near)
            self._seal(near, version.id)
            near.rename(target)
        sync_folder(self._versions)
        sync_folder(self._root)  # which may have got its folders only now
        return True

    def remove(self, version: str) -> None:
        """Gone for everybody by one rename; processes that have it open keep what they opened."""
        folder = self.folder(version)
        folder.rename(folder.with_name(f"{REMOVED}{version}"))
        sync_folder(self._versions)
        self._seal_of(version).unlink(missing_ok=True)
        self.clear()

    def left(self) -> list[tuple[Path, str]]:
        """What adding and removing left behind when they were killed, and why it is there."""
        there = {path.name for path in self._folders()}
        return [
            *((path, "a removal that was killed") for path in self._versions.glob(f"{REMOVED}*")),
            *((path, "a version that was not published") for path in self._versions.glob(f"{INCOMING}*")),
            *((path, "digests of no version") for path in self._root.glob("seals/*.json") if path.stem not in there),
        ]

    def clear(self) -> None:
        """Delete what adding and removing left behind when they were killed, but digests."""
        for path in [*self._versions.glob(f"{REMOVED}*"), *self._versions.glob(f"{INCOMING}*")]:
            shutil.rmtree(path, ignore_errors=True)

    def _folders(self) -> list[Path]:
        """The folders of all versions, in no order."""
        there = self._versions.iterdir() if self._versions.is_dir() else ()
        return [path for path in there if VERSION_NAME.fullmatch(path.name)]

    def _seal_of(self, version: str) -> Path:
        return self._root / "seals" / f"{version}.json"

    def _seal(self, staged: Path, version: str) -> None:
        """Keep the digests by which this version is known. One without a rename to follow disturbs nobody."""
        digests = {name: sha256_of(staged / name) for name in (MANIFEST, VERSION_FILE) if (staged / name).is_file()}
        path = self._seal_of(version)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, encoded(digests))


def checked_version(version: str) -> str:
    """The name, which becomes a path, if it is a version's name and nothing else."""
    if not VERSION_NAME.fullmatch(version):
        raise NotFound(f"'{version}' is no version name: v and 12 hexadecimal digits are wanted.", "version")
    return version


def _described(folder: Path) -> IndexVersion:
    """What is said about the version in a folder."""
    path = folder / VERSION_FILE
    whole = f"all of {folder}"  # without its description a folder is damaged still
    version: IndexVersion = decoded(IndexVersion, path, read(path) or b"", whole)
    if version.id != folder.name:
        raise damaged(path, f"id: it describes {version.id}", whole)
    return version
