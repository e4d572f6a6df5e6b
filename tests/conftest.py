"""What tests of several folders share: an MLflow database, made once because making it takes seconds; and `--ray`, by
which `make test-slow` runs the tests that start a Ray after all others, with the machine to themselves.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eval.tracking import MlflowTracker, sqlite_uri

if TYPE_CHECKING:
    from tests.s3_server import S3Server

RAY = Path(__file__).parent / "ray"  # every test marked `ray` lies there: tests/test_suite.py


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ray", choices=("only", "without"), help="only the tests that start a Ray, or all but those")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `--ray=only` nothing beside tests/ray is imported, unless files were named: those are left after it."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    there = collection_path == RAY or RAY in collection_path.parents or collection_path in RAY.parents
    return True if config.getoption("--ray") == "only" and not named and not there else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = config.getoption("--ray")
    left = [item for item in items if chosen and (item.get_closest_marker("ray") is None) == (chosen == "only")]
    if left:
        config.hook.pytest_deselected(items=left)
        out = set(left)
        items[:] = [item for item in items if item not in out]


@pytest.fixture(scope="session")
def s3_server() -> "Iterator[S3Server]":
    """An S3 server on the loopback interface; each test makes a bucket of its own."""
    from tests.s3_server import S3Server  # moto takes a second to import, and few tests need it

    server = S3Server()
    yield server
    server.close()


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
