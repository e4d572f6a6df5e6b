"""Documents that are sent in: what an upload is, which names it may have, and where its job stands.

A name becomes the name of a file and the id of a document, so it may be no path in any disguise. What is done with an
upload is the business of whoever stands behind the port; it goes the way of every other change, through the gate.
"""

import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from domain.errors import BadRequest, TooLong

LONGEST_NAME = 200  # bytes in UTF-8: file systems end at 255, and a note of its readers has a longer name beside it


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was sent. `groups` are those who may read it, None where that is left to file and settings."""

    name: str
    content: bytes
    groups: tuple[str, ...] | None = None


class JobState(StrEnum):
    """Where an upload stands: QUEUED and RUNNING will change, the others are final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """What was sent, and what became of it: its documents, accounted for as in a build; empty before that.

    `groups` are those who may read it, None where that is left to file and settings.
    """

    name: str
    groups: tuple[str, ...] | None = None
    doc_ids: tuple[str, ...] = ()
    status: str = ""
    code: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class UploadJob:
    """An upload on its way. `version` holds it, `decision` is the gate's word about that, "" where there is none.

    `serving` is stable or canary where people have the version already, else empty. `error` says why a job failed; then
    the library is what it was.
    """

    id: str
    state: JobState
    at: str
    who: str
    files: tuple[UploadedFile, ...]
    attempts: int = 0
    started: str = ""
    ended: str = ""
    version: str = ""
    decision: str = ""
    undecided: str = ""
    serving: str = ""
    error: str = ""


def checked_name(name: str) -> str:
    """The name as it is kept. Raises BadRequest, or TooLong, for one that is no plain file name."""
    kept = unicodedata.normalize("NFC", name)
    if len(kept.encode(errors="replace")) > LONGEST_NAME:
        raise TooLong(f"The file name has {len(kept):,} characters: at most {LONGEST_NAME} bytes are taken.", "name")
    if not kept.strip():
        raise BadRequest("The file has no name: send one that ends in its kind, like report.md.", "name")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in kept):
        raise BadRequest(f"File name {kept!r} holds control characters: send a plain name.", "name")
    if "/" in kept or "\\" in kept:
        raise BadRequest(f"File name {kept!r} is a path: send the last part of it alone.", "name")
    if kept.startswith("."):
        raise BadRequest(f"File name {kept!r} begins with a dot, and hidden files are not read: rename it.", "name")
    return kept
