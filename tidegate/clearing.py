"""What nobody needs any more, and what goes with it: a version, its evaluations, what was observed live about it.

Decisions and the ledger stay: they say why things were as they were. `tidegate gc` is releases.py.
"""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import StorageError
from domain.ports import IndexRegistry
from domain.releases import Leftover
from domain.rollout import removable
from retrieval.disk import cannot_write, size_of
from retrieval.workplace import clear as clear_builds
from retrieval.workplace import left_behind

if TYPE_CHECKING:
    from tidegate.settings import Settings

BUILD = "a build that was killed"
UPLOAD, FETCHED = "an upload that never arrived whole", "an object whose reader was killed"
STALE_S = 2 * 3600.0  # no file takes longer to arrive or to be read: until then somebody may be at work


@dataclass(frozen=True, slots=True)
class Unneeded:
    """A version that can go, or is gone, and the folders about it outside of the registry."""

    version: str
    published: bool
    about: tuple[Path, ...]

    def size(self, registry: IndexRegistry) -> int:
        """Bytes where they are kept, of everything."""
        itself = registry.size(self.version) if self.published else 0
        return itself + sum(map(size_of, self.about))

    def clear(self, registry: IndexRegistry) -> None:
        """Remove it, the version first: what is left when that is killed is found again. Raises StorageError."""
        if self.published:
            registry.remove(self.version)
        for folder in self.about:
            try:
                shutil.rmtree(folder)
            except OSError as error:
                raise StorageError(
                    f"Cannot remove {error.filename or folder} ({error.strerror or error}): let this user write "
                    "there, then tidegate gc again."
                ) from error


def unneeded(settings: "Settings", registry: IndexRegistry, keep: int) -> list[Unneeded]:
    """All that can go, oldest first; then what earlier removals left behind."""
    about = _about(settings)  # first: what is published and measured meanwhile is in both or in the other one
    versions = registry.versions()
    going = removable(versions, registry.rollout(), keep)
    # What is known about a damaged version goes with it and not before: it may yet be restored.
    gone = sorted(about.keys() - {there.id for there in versions} - registry.damaged().keys())
    return [Unneeded(version, version in going, tuple(about.get(version, ()))) for version in (*going, *gone)]


def leftovers(settings: "Settings", registry: IndexRegistry) -> tuple[Leftover, ...]:
    """What killed builds, uploads and removals left behind."""
    builds = (Leftover(str(path), size_of(path), BUILD) for path in left_behind(_staging(settings)))
    return (*builds, *_stale(settings), *registry.leftovers())


def clear_leftovers(settings: "Settings", registry: IndexRegistry) -> tuple[Leftover, ...]:
    """Remove it; what was removed comes back. Raises StorageError."""
    builds = tuple(Leftover(str(path), size_of(path), BUILD) for path in left_behind(_staging(settings)))
    try:
        clear_builds(_staging(settings))
    except OSError as error:
        raise cannot_write(_staging(settings), error) from error
    stale = tuple(_stale(settings))
    for left in stale:
        try:
            shutil.rmtree(left.place)
        except OSError as error:
            raise cannot_write(Path(left.place), error) from error
    return (*builds, *stale, *registry.clear_leftovers())


def _stale(settings: "Settings") -> Iterator[Leftover]:
    """Files of others that a killed process left half taken in: what was sent, or what was fetched from a bucket."""
    before = time.time() - STALE_S
    for place, pattern, why in (("upload-jobs", f".{'[0-9a-f]' * 32}", UPLOAD), ("fetched", "object-*", FETCHED)):
        for path in sorted((settings.data_dir / place).glob(pattern)):
            if path.is_dir() and path.stat().st_mtime < before:
                yield Leftover(str(path), size_of(path), why)


def _staging(settings: "Settings") -> Path:
    return settings.data_dir / "staging"


def _about(settings: "Settings") -> dict[str, list[Path]]:
    """The folders about each version: what was observed live, what was measured, the shards that were cut of it."""
    from retrieval.sharding import folders as shard_folders
    from tidegate import evaluations
    from tidegate.compose_ingestion import make_outcomes
    from tidegate.compose_releases import make_observations
    from tidegate.compose_shards import shards_root

    about = make_observations(settings).folders()
    for version, folder in evaluations.folders(settings).items():
        about.setdefault(version, []).append(folder)
    for version, folder in make_outcomes(settings).folders().items():
        about.setdefault(version, []).append(folder)
    for version, folder in shard_folders(shards_root(settings)).items():
        about.setdefault(version, []).append(folder)
    return about
