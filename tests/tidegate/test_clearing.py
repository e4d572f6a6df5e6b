"""What `tidegate gc` finds left over outside of the registry, and what it leaves to those who are at work."""

import os
from pathlib import Path

from domain.releases import Leftover
from retrieval.registry import FolderRegistry
from tests.tidegate.tiny import settings
from tidegate.clearing import FETCHED, UPLOAD, clear_leftovers, leftovers


def left(folder: Path, age_s: float) -> Path:
    folder.mkdir(parents=True)
    (folder / "secret.md").write_text("words", "utf-8")
    then = folder.stat().st_mtime - age_s
    os.utime(folder, (then, then))
    return folder


def test_what_killed_uploads_and_fetches_left_is_found_and_removed_and_what_is_at_work_is_not(tmp_path: Path) -> None:
    of = settings(tmp_path / "data")
    registry = FolderRegistry(of.data_dir / "registry")
    upload = left(of.data_dir / "upload-jobs" / f".{'0a' * 16}", 8000)
    fetched = left(of.data_dir / "fetched" / "object-x1", 8000)
    staying = [
        left(of.data_dir / "upload-jobs" / f".{'0b' * 16}", 60),
        left(of.data_dir / "upload-jobs" / ("0c" * 16), 8000),
        left(of.data_dir / "fetched" / "object-x2", 60),
    ]
    found = (Leftover(str(upload), 5, UPLOAD), Leftover(str(fetched), 5, FETCHED))
    assert leftovers(of, registry) == found
    assert clear_leftovers(of, registry) == found
    assert not upload.exists()
    assert not fetched.exists()
    assert all(folder.exists() for folder in staying)
    assert leftovers(of, registry) == ()
