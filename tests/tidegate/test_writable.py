"""A folder that cannot be written is told before the work, and a probe leaves nothing."""

from pathlib import Path

import pytest

from domain.errors import StorageError
from tidegate.writable import check_writable


def test_a_folder_is_made_and_stays_empty(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_file_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    for folder in (tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises(StorageError, match=f"{folder} cannot be written"):
            check_writable(folder)
