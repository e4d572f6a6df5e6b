"""What the tests of the command line share: a quiet place to stand, and a library to read from."""

import os
from pathlib import Path

import pytest

from tests.tidegate.tiny import served


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own and no TIDEGATE_* variable."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.upper().startswith("TIDEGATE_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A data folder with the three documents built and admitted, and the version; read it, do not change it."""
    return served(tmp_path_factory.mktemp("library"))
