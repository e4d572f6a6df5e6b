"""What uploads and removals that were killed left on S3, and on this machine; found by listing, removed by `gc`.

Files below an upload that no version names belong to nobody, and nobody can come to need them. An upload that a version
still names may be going on, so it counts as given up only after hours without a sign of life - and if it goes on after
all, it finds that out before it becomes a version, and begins again. Times are the server's.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from domain.releases import Leftover
from retrieval.disk import size_of
from retrieval.s3_cache import Cache
from retrieval.s3_entries import FILES, Stage
from retrieval.s3_objects import Objects
from retrieval.s3_transfer import unfinished
from retrieval.s3_versions import S3Versions

NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class _Upload:
    """What lies below one upload, and when something last arrived."""

    bytes: int = 0
    last: datetime = NEVER


def found(objects: Objects, versions: S3Versions, abandoned_s: float, now: datetime) -> Iterator[tuple[Leftover, str]]:
    """Each leftover with what it lies below."""
    uploads = _uploads(objects)  # first: an upload has a version's object before it has a file
    entries = {entry.under: (entry, modified) for entry, modified in versions.entries()}
    damaged = versions.damaged()
    for under, upload in sorted(uploads.items()):
        if under not in entries and under.split("/")[1] not in damaged:
            yield Leftover(objects.place(under), upload.bytes, "an upload or a version that is gone"), under
    for under, (entry, modified) in sorted(entries.items()):
        upload = uploads.get(under, _Upload())
        if entry.stage is Stage.LEAVING:
            yield Leftover(objects.place(under), upload.bytes, "a removal that was killed"), under
        silent_s = (now - max(modified, upload.last)).total_seconds()
        if entry.stage is Stage.UPLOADING and silent_s >= abandoned_s:
            why = f"an upload of {entry.version.id} without progress for {max(0.0, silent_s) / 3600:.1f} hours"
            yield Leftover(objects.place(under), upload.bytes, why), under


def in_cache(cache: Cache) -> Iterator[Leftover]:
    """What was on its way into this machine's copies, or out of them."""
    return (Leftover(str(path), size_of(path), "a copy on its way in or out") for path in cache.left())


def clear(
    objects: Objects, versions: S3Versions, cache: Cache, abandoned_s: float, clock: Callable[[], datetime]
) -> tuple[Leftover, ...]:
    """Removes all of it; what was removed comes back."""
    removed = list(in_cache(cache))
    cache.clear()
    for leftover, under in list(found(objects, versions, abandoned_s, clock())):
        if versions.give_up(under):
            removed.append(leftover)
    return tuple(removed)


def _uploads(objects: Objects) -> dict[str, _Upload]:
    there: dict[str, _Upload] = {}
    arrived = [(each.key, each.bytes, each.modified) for each in objects.listed(FILES)]
    arrived += [(each.key, each.bytes, each.last) for each in unfinished(objects, FILES)]
    for key, size, modified in arrived:
        upload = there.setdefault(key[: key.rindex("/") + 1], _Upload())
        upload.bytes += size
        upload.last = max(upload.last, modified)
    return there
