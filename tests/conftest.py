"""What tests of several folders share: an MLflow database is made once, because making it takes seconds."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from eval.tracking import MlflowTracker, sqlite_uri


@pytest.fixture(scope="session")
def _empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mlflow")
    MlflowTracker(sqlite_uri(folder / "mlflow.db"), "unused", folder / "mlartifacts").open()
    return folder / "mlflow.db"


@pytest.fixture
def make_database(_empty_database: Path) -> Callable[[Path], str]:
    """Puts a database without runs into a folder and gives its address."""

    def make(folder: Path) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(_empty_database, folder / "mlflow.db")
        return sqlite_uri(folder / "mlflow.db")

    return make
