"""The object that decides all about a version on S3: at which stage the version is, and where its files are.

Only its shape and its key; who swaps it and when is s3_versions.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.releases import IndexVersion
from retrieval.fingerprint import MANIFEST
from retrieval.jsonrecords import damaged, decoded, encoded, plain
from retrieval.s3_objects import Objects, Stored
from retrieval.s3_transfer import File

VERSIONS, FILES = "versions/", "files/"


class Stage(StrEnum):
    """Where a version's object is on its way."""

    UPLOADING = "uploading"
    THERE = "there"
    LEAVING = "leaving"


@dataclass(frozen=True, slots=True)
class Entry:
    """The object of a version. `upload` names where its files are, `writer` who wrote this last."""

    stage: Stage
    upload: str
    writer: str
    version: IndexVersion
    files: Mapping[str, File] = field(default_factory=dict)

    @property
    def under(self) -> str:
        """What the keys of its files begin with."""
        return f"{FILES}{self.version.id}/{self.upload}/"

    @property
    def bytes(self) -> int:
        """How much its files take."""
        return sum(file.bytes for file in self.files.values())

    @property
    def seal(self) -> dict[str, str]:
        """The digest of the manifest, which has those of all other files."""
        return {MANIFEST: self.files[MANIFEST].sha256} if MANIFEST in self.files else {}


def key_of(version: str) -> str:
    """The key of a version's object."""
    return f"{VERSIONS}{version}.json"


def version_of(key: str) -> str:
    """The version whose object, or one of whose files, is under a key."""
    return key.split("/")[1].removesuffix(".json")


def body_of(entry: Entry) -> bytes:
    """What a version's object holds."""
    return encoded(plain(entry))


def read_entry(objects: Objects, key: str, stored: Stored) -> Entry:
    """The entry in an object. Raises StorageError for a damaged one."""
    entry: Entry = decoded(Entry, objects.place(key), stored.body)
    if key_of(entry.version.id) != key:
        raise damaged(objects.place(key), f"it describes {entry.version.id}")
    return entry
