"""The digest of the code: what moves it, and what does not."""

import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

from tidegate.code import ASKING, MEASURING, ROOT, asking, measuring, of

Factory = pytest.TempPathFactory
PARTS = ("domain", "tidegate/compose.py")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "domain" / "weights").mkdir(parents=True)
    (tmp_path / "tidegate").mkdir()
    (tmp_path / "domain" / "types.py").write_text("K = 6\n")
    (tmp_path / "domain" / "weights" / "w.json").write_text("[1]\n")
    (tmp_path / "tidegate" / "compose.py").write_text("")
    return tmp_path


def test_any_byte_of_any_file_moves_the_digest(source: Path) -> None:
    seen = {of(source, PARTS)}
    (source / "domain" / "types.py").write_text("K = 7\n")
    seen.add(of(source, PARTS))
    (source / "domain" / "weights" / "w.json").write_text("[2]\n")
    seen.add(of(source, PARTS))
    (source / "tidegate" / "compose.py").write_text("pass\n")
    seen.add(of(source, PARTS))
    (source / "domain" / "types.py").rename(source / "domain" / "kinds.py")
    seen.add(of(source, PARTS))
    assert len(seen) == 5


def test_what_is_compiled_hidden_or_elsewhere_does_not_move_it(source: Path) -> None:
    before = of(source, PARTS)
    (source / "domain" / "__pycache__").mkdir()
    (source / "domain" / "__pycache__" / "types.pyc").write_bytes(b"1")
    (source / "domain" / ".types.py.swp").write_text("K")
    (source / "tidegate" / "cli.py").write_text("pass\n")
    assert of(source, PARTS) == before


def test_the_same_source_in_another_folder_has_the_same_digest(source: Path, tmp_path_factory: Factory) -> None:
    there = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(source, there, dirs_exist_ok=True)
    assert of(there, tuple(reversed(PARTS))) == of(source, PARTS)


def test_a_part_that_is_not_there_is_an_error(source: Path) -> None:
    with pytest.raises(FileNotFoundError, match="generation"):
        of(source, ("domain", "generation"))


def test_what_runs_here_is_named_by_version_and_digest() -> None:
    assert asking() == f"{version('tidegate')}+{of(ROOT, ASKING)}"
    assert measuring() == f"{version('tidegate')}+{of(ROOT, MEASURING)}"
    assert asking() != measuring()
