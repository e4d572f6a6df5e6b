"""The files below a prefix of a bucket on S3, as what a sync needs of them.

Objects are listed page by page and fetched one at a time, in pieces, into a file that is removed when it was read; an
object whose tag has not changed is not fetched. A key is only ever a name here, never a path. What is wrong with one
object costs that object; what is wrong with the bucket ends the sync.
"""

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from domain.errors import BadRequest, CorpusError, StorageError
from domain.ingestion import FileOutcome, FileStatus
from retrieval.access_rules import is_note
from retrieval.origins import Mark
from retrieval.reading import READERS, Source
from retrieval.s3_errors import failed, status_of

PIECE = 1 << 20  # bytes of an object in memory at a time
LONGEST = 200  # bytes of a file's name on disk; the name of its document is not cut
OF_ONE = {403: "it may not be read", 404: "it was deleted meanwhile", 412: "it was changed meanwhile"}


@dataclass
class BucketOrigin:
    """The objects below `prefix`. `staging` takes one object at a time."""

    client: Any  # boto3
    bucket: str
    prefix: str
    staging: Path
    page: int = 1000  # keys listed at a time, at most what S3 gives
    _objects: dict[str, tuple[str, int, str, str]] = field(default_factory=dict, init=False)

    @property
    def name(self) -> str:
        """The address."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def entries(self) -> Iterator[Source | FileOutcome]:
        """Every object by key, and an outcome for whatever is not read. Raises StorageError."""
        below = f"{self.prefix.rstrip('/')}/" if self.prefix.strip("/") else ""
        for key, size, tag, changed in self._listed(below):
            name = _readable(key.removeprefix(below))
            if not name or name.endswith("/"):  # what consoles make to show an empty folder
                continue
            self._objects[name] = (key, size, tag, changed)
            if is_note(name):  # files it is about would be shown to whoever reads what says nothing
                raise CorpusError(
                    f"{self.name}/{name} says who may read other files, and such notes are not read from a bucket: "
                    "say it in the rules of the settings, in the files themselves, or remove the note."
                )
            source = Source(Path(_on_disk(name)), name)
            if any(part.startswith(".") for part in name.split("/")):
                yield FileOutcome(name, FileStatus.SKIPPED, "hidden", "the name begins with a dot")
            elif source.reader is None:
                kinds = ", ".join(READERS)
                reason = f"'{source.path.suffix or name}' is not read here; known are {kinds}"
                yield FileOutcome(name, FileStatus.SKIPPED, "unknown_kind", reason)
            else:
                yield source

    def mark(self, source: Source, now_s: float) -> Mark:  # noqa: ARG002 - a tag changes with every write, however soon
        """Size, tag and time of the object as it was listed."""
        _, size, tag, changed = self._objects[source.name]
        return Mark(size, f"{tag} {changed}", tag)

    def digest(self, source: Source) -> str:
        """Its tag: equal tags are equal contents, and that is all that is asked of it."""
        return self._objects[source.name][2]

    @contextmanager
    def fetched(self, source: Source) -> Iterator[Source]:
        """The object as a file. Raises OSError when it cannot be had, StorageError when nothing can."""
        key, _, tag, _ = self._objects[source.name]
        self.staging.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="object-", dir=self.staging) as place:
            path = Path(place, source.path.name)
            self._fetch(key, tag, path)
            yield replace(source, path=path)

    def _fetch(self, key: str, tag: str, path: Path) -> None:
        try:
            body = self.client.get_object(Bucket=self.bucket, Key=key, IfMatch=tag)["Body"]
            with path.open("wb") as file:
                for piece in body.iter_chunks(PIECE):
                    file.write(piece)
        except (ClientError, BotoCoreError) as error:
            if why := OF_ONE.get(status_of(error)):
                raise OSError(f"s3://{self.bucket}/{key}: {why}") from error
            raise _told("get_object", f"s3://{self.bucket}/{key}", error) from error

    def _listed(self, below: str) -> Iterator[tuple[str, int, str, str]]:
        try:
            pages = self.client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self.bucket, Prefix=below, PaginationConfig={"PageSize": self.page}):
                for there in page.get("Contents", ()):
                    yield there["Key"], there["Size"], there["ETag"], there["LastModified"].isoformat()
        except (ClientError, BotoCoreError) as error:
            raise _told("list_objects_v2", self.name, error) from error


def address(place: str) -> tuple[str, str]:
    """Bucket and prefix of s3://BUCKET/PREFIX. Raises BadRequest for what is none."""
    bucket, _, prefix = place.removeprefix("s3://").partition("/")
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", bucket):
        raise BadRequest(
            f"{place} names no bucket: s3://BUCKET/PREFIX is wanted, as in s3://library/handbook.", "source"
        )
    return bucket, prefix.strip("/")


def _told(call: str, place: str, error: Exception) -> StorageError:
    """As for a registry, whose settings are not those of a source."""
    told = str(failed(call, place, error))
    for setting, instead in SOURCE_WORDS.items():
        told = told.replace(setting, instead)
    return StorageError(told)


SOURCE_WORDS = {
    "registry.endpoint_url": "AWS_ENDPOINT_URL_S3",
    "registry.region or AWS_DEFAULT_REGION": "AWS_DEFAULT_REGION",
    "registry.region": "AWS_DEFAULT_REGION",
    "registry.kms_key_id": "the key of the objects",
    "in registry.url": "as the source",
    "registry.url": "the name of the source",
}


def _readable(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _on_disk(name: str) -> str:
    """A file name for the object: its own where it can be one, because readers take titles and kinds from it."""
    last = name.rsplit("/", 1)[-1].replace("\0", "_")
    if len(last.encode(errors="replace")) <= LONGEST:
        return last
    ending = Path(last).suffix[:16]
    return last.encode(errors="replace")[:LONGEST].decode(errors="ignore") + ending
