"""The work of a build that makes a version out of another one: without what was forgotten, with the readers of now.

Nothing is read or cut again: passages come out of the version's folder line by line, so ids and texts are the same, and
their vectors are lent by it. What was forgotten is then in no file of the new version.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from domain.amending import Amendments
from domain.errors import StorageError
from domain.ports import Embedder
from domain.types import Document
from retrieval.kept_documents import KeptDocuments
from retrieval.sorting import KeyedLine
from retrieval.stored import documents_of
from retrieval.vectors import Vectors
from retrieval.work import CutDocument, Cutting, Here, Spans


@dataclass
class Compaction:
    """The documents of the version in `folder` that are not gone. `left_out` counts those that are, when it is done."""

    folder: Path
    amended: Amendments
    embedder: Embedder
    left_out: int = field(default=0, init=False)

    def cut(self, _documents: Iterable[Document], _how: Cutting) -> Iterator[CutDocument]:
        """The documents as they were cut. Raises StorageError for a damaged version: damage is never copied."""
        kept = KeptDocuments.of(self.folder)
        if kept is None:
            raise StorageError(
                f"{self.folder} is damaged: restore it from a backup, or build a version from the documents instead."
            )
        self.left_out = 0
        for doc_id in documents_of(self.folder):
            if doc_id in self.amended.gone:
                self.left_out += 1
                continue
            groups = self.amended.access.get(doc_id)
            document = kept.cut(doc_id)
            yield document if groups is None else _read_by(document, groups)

    def embed(self, chunks: Path, spans: Spans) -> Iterator[Vectors]:
        """As this process does; nothing is new, unless the encoder is."""
        return Here(self.embedder).embed(chunks, spans)


def _read_by(document: CutDocument, groups: frozenset[str]) -> CutDocument:
    named = sorted(groups)
    lines = (orjson.dumps({**orjson.loads(passage.line), "groups": named}) for passage in document.passages)
    passages = zip(document.passages, lines, strict=True)
    return replace(document, passages=tuple(KeyedLine(old.key, old.digest, line) for old, line in passages))
