"""What was read of a source the last time: every file with what tells it from its next state, and what it came to.

The record stands beside the versions and is no part of any: without it, or with one that cannot be read, everything is
read again and the version is the same. One file per source, replaced whole: a header, then one line per file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from domain.ingestion import FileOutcome, FileStatus
from retrieval.jsonrecords import read, replace_file
from retrieval.reading import Reading
from retrieval.work import CutDocument

FORMAT = 1


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file as it was read.

    `stamp` and `size` say without reading whether it can have changed; an empty stamp says nothing. `digest` is that
    of its content, empty when it is not known. `found` are the ids and places of its documents; the rest is what a
    Reading says of it.
    """

    name: str
    size: int
    stamp: str
    digest: str
    found: tuple[tuple[str, str], ...]
    left_out: tuple[FileOutcome, ...] = ()
    records: int = 0
    remarks: tuple[str, ...] = ()
    trouble: FileOutcome | None = None

    def reading(self, found: Iterable[tuple[str, str, CutDocument]]) -> Reading[CutDocument]:
        """As if the file had been read again and its documents were `found`."""
        return Reading(tuple(found), self.left_out, self.records, self.remarks, self.trouble)

    @property
    def failed(self) -> bool:
        """True when something of the file could not be read, so that what it lacks need not be gone."""
        told = [*self.left_out, *([self.trouble] if self.trouble else [])]
        return any(outcome.status is FileStatus.FAILED for outcome in told)


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A source as it was when `version` was made of it.

    `how` stands for everything beside the files that decides what they come to: under another one nothing known of a
    file counts. `options` are what else was said when it was named.
    """

    source: str
    version: str
    at: str
    how: str
    files: Mapping[str, FileRecord]
    options: Mapping[str, str] = field(default_factory=dict)

    def documents(self) -> dict[str, str]:
        """Every document id, with the name of its file."""
        return {doc_id: record.name for record in self.files.values() for doc_id, _ in record.found}


def key_of(source: str) -> str:
    """The name of a source's record, from what the source is: a path or an address may hold anything."""
    return sha256(source.encode(errors="surrogateescape")).hexdigest()[:16]


def write_record(folder: Path, record: SourceRecord) -> None:
    """Keep a record, all or nothing. Raises OSError."""
    head = {
        "format": FORMAT,
        "source": record.source.encode(errors="surrogateescape").decode(errors="replace"),
        "version": record.version,
        "at": record.at,
        "how": record.how,
        "options": dict(record.options),
        "files": len(record.files),
    }
    lines = [orjson.dumps(head), *(orjson.dumps(_plain(file)) for file in record.files.values())]
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / f"{key_of(record.source)}.jsonl", b"\n".join(lines) + b"\n")


def read_record(folder: Path, source: str) -> SourceRecord | None:
    """What is known of a source; None when it was never read, or the record is damaged or of another program."""
    content = read(folder / f"{key_of(source)}.jsonl")
    return _decoded(content, source) if content is not None else None


def newest_record(folder: Path) -> SourceRecord | None:
    """The record of the source that was read last; None when there is none. Of equal times, the last by name."""
    found: list[SourceRecord] = []
    for path in sorted(folder.glob("*.jsonl")):
        content = read(path)
        record = _decoded(content) if content is not None else None
        found += [record] if record is not None else []
    return max(found, key=lambda record: record.at, default=None)


def _decoded(content: bytes, source: str | None = None) -> SourceRecord | None:
    """Whatever is wrong with a record, all that is lost is time: nothing of it is believed then."""
    try:
        head, *lines = map(orjson.loads, content.splitlines())
        if head["format"] != FORMAT or head["files"] != len(lines):
            return None
        files = {file.name: file for file in map(_file, lines)}
        named = head["source"] if source is None else source
        return SourceRecord(named, head["version"], head["at"], head["how"], files, head["options"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _plain(file: FileRecord) -> dict[str, Any]:
    told: dict[str, Any] = {"name": file.name, "size": file.size, "stamp": file.stamp, "digest": file.digest}
    told |= {"found": file.found, "records": file.records}
    if file.left_out:
        told["left_out"] = [_outcome(outcome) for outcome in file.left_out]
    if file.remarks:
        told["remarks"] = file.remarks
    if file.trouble:
        told["trouble"] = _outcome(file.trouble)
    return told


def _file(told: Mapping[str, Any]) -> FileRecord:
    return FileRecord(
        told["name"],
        told["size"],
        told["stamp"],
        told["digest"],
        tuple((doc_id, place) for doc_id, place in told["found"]),
        tuple(_told(outcome) for outcome in told.get("left_out", ())),
        told["records"],
        tuple(told.get("remarks", ())),
        _told(told["trouble"]) if "trouble" in told else None,
    )


def _outcome(outcome: FileOutcome) -> list[str]:
    return [outcome.path, outcome.status, outcome.code, outcome.reason]


def _told(outcome: list[str]) -> FileOutcome:
    path, status, code, reason = outcome
    return FileOutcome(path, FileStatus(status), code, reason)
