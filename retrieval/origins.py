"""Where files come from, as what a sync needs of it: what is there, what tells a change, and one file to read.

A folder is here, a bucket bucket.py. Nothing is decided here: what a change leads to is syncing.py.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from hashlib import file_digest
from typing import Protocol

from domain.ingestion import FileOutcome
from retrieval.documents import Corpus
from retrieval.reading import Source

SETTLED_S = 2.0  # a file changed later than this before it was looked at may change again within one tick of its clock


@dataclass(frozen=True, slots=True)
class Mark:
    """What is known of a file without reading it. Equal sizes and stamps mean equal content, once it has settled.

    `digest` is that of the content where the origin knows it by itself, else empty.
    """

    size: int
    stamp: str
    digest: str = ""
    settled: bool = True

    @property
    def kept(self) -> str:
        """The stamp to remember: none of a file that may still change without another one."""
        return self.stamp if self.settled else ""


UNKNOWN = Mark(-1, "", settled=False)


class Origin(Protocol):
    """A place with files."""

    @property
    def name(self) -> str:
        """What it is, the same however it was spelled."""
        ...

    def entries(self) -> Iterator[Source | FileOutcome]:
        """Every file to read, and an outcome for whatever is not, in a fixed order. Raises CorpusError."""
        ...

    def mark(self, source: Source, now_s: float) -> Mark:
        """What is known of a file without reading it. Raises OSError when it is gone."""
        ...

    def digest(self, source: Source) -> str:
        """The digest of a file's content, empty when that takes fetching it. Raises OSError."""
        ...

    def fetched(self, source: Source) -> AbstractContextManager[Source]:
        """The file where it can be read. Raises OSError for this file, anything else for the whole origin."""
        ...


@dataclass(frozen=True, slots=True)
class FolderOrigin:
    """The files of a corpus on disk. `prefix` stands before every name."""

    corpus: Corpus
    prefix: str = ""

    @property
    def name(self) -> str:
        """The folder's own path, whatever way led to it."""
        return os.path.realpath(self.corpus.root)

    def entries(self) -> Iterator[Source | FileOutcome]:
        """As the corpus has them."""
        for entry in self.corpus.entries():
            if isinstance(entry, Source):
                yield replace(entry, name=self.prefix + entry.name)
            else:
                yield replace(entry, path=self.prefix + entry.path)

    def mark(self, source: Source, now_s: float) -> Mark:
        """Size, both times and the inode: an editor that puts the old time back still moves the time of the change."""
        there = source.path.stat()
        settled = now_s - max(there.st_mtime, there.st_ctime) > SETTLED_S
        stamp = f"{there.st_mtime_ns}.{there.st_ctime_ns}.{there.st_dev}.{there.st_ino}"
        return Mark(there.st_size, stamp, settled=settled)

    def digest(self, source: Source) -> str:
        """By reading it."""
        with source.path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()

    @contextmanager
    def fetched(self, source: Source) -> Iterator[Source]:
        """It is there already."""
        yield source
