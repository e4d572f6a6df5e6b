"""Whatever ends an operation half-way: people get the old or the new version, and the next command works."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from domain.releases import Move, Rollout
from retrieval.registry import FolderRegistry
from retrieval.version_folders import VERSION_NAME
from tests.retrieval.dying import OPERATIONS, copied

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(900)  # hundreds of processes, one after the other, also on a busy machine
# A killed process leaves in memory what it leaves on a disk, and hundreds of runs need not wait for one.
MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None


@dataclass(frozen=True, slots=True)
class Runs:
    """One operation, tried in every way."""

    operation: str
    folder: Path
    ids: dict[str, str]
    ended: list[dict[str, Any]]
    before: Rollout

    def of(self, *ways: str) -> list[tuple[Path, dict[str, Any]]]:
        return [(self.folder / f"{run['way']}-{run['at']}", run) for run in self.ended if run["way"] in ways]

    @property
    def after(self) -> Rollout:
        """The pointer where the operation came to its end; every run that did must agree."""
        done = {registry(home).rollout() for home, run in self.of("killed", "torn", "full") if run["how"] == "done"}
        assert len(done) == 1
        return done.pop()


def registry(home: Path) -> FolderRegistry:
    return FolderRegistry(home / "registry")


def slow_but(fast: str) -> list[Any]:
    return [name if name == fast else pytest.param(name, marks=pytest.mark.slow) for name in OPERATIONS]


@pytest.fixture(scope="module", params=slow_but("promote"))
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    folder = Path(mkdtemp(prefix="tidegate-dying-", dir=MEMORY))
    command = [sys.executable, "-m", "tests.retrieval.dying", str(folder), request.param]
    told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    ids, *ended = map(json.loads, told.splitlines())
    before = registry(copied(folder / "prepared", folder / "untouched", request.param)).rollout()
    yield Runs(request.param, folder, ids, ended, before)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)  # a read-only folder cannot be emptied
    shutil.rmtree(folder)


def chain(home: Path) -> tuple[Move, ...]:
    """The ledger, if it is one chain from nothing to the pointer."""
    moves = registry(home).ledger()
    pointers = [Rollout(), *(move.after for move in moves)]
    assert [move.before for move in moves] == pointers[:-1]
    assert [pointer.revision for pointer in pointers] == list(range(len(pointers)))
    assert pointers[-1] == registry(home).rollout()
    return moves


@pytest.mark.slow
def test_whatever_ends_it_the_pointer_is_the_old_or_the_new_one_and_nothing_is_lost(runs: Runs) -> None:
    earlier = registry(runs.folder / "untouched")
    hindered = [(home, run) for home, run in runs.of("killed", "torn", "full") if run["how"] != "done"]
    assert len(hindered) > 5
    for home, run in hindered:
        assert run["how"] == ("refused" if run["way"] == "full" else "killed"), run
        here = registry(home)
        assert here.rollout() in (runs.before, runs.after), run
        assert chain(home)[: runs.before.revision] == earlier.ledger(), run
        there = {version.id for version in here.versions()}
        assert there >= {version.id for version in earlier.versions()} - {runs.ids["spare"]}, run
        for id in there:
            here.verify(id)
            known = earlier.decisions(id) if id in {version.id for version in earlier.versions()} else ()
            assert here.decisions(id)[: len(known)] == known, run


def test_a_full_disk_is_named_with_the_file_and_nothing_has_changed(runs: Runs) -> None:
    for home, run in runs.of("full"):
        if run["how"] == "refused":
            assert run["message"].startswith(("Cannot write registry/", "Cannot write staging")), run
            assert "File too large" in run["message"]
            assert registry(home).rollout() == runs.before
            assert [path.name for path in (home / "staging").iterdir()] == []


def test_a_folder_that_may_only_be_read_is_served_from_and_says_so_when_written(runs: Runs) -> None:
    ((home, run),) = runs.of("read_only")
    assert run["how"] == "refused", run
    assert "serving works read-only" in run["message"]
    assert registry(home).rollout() == runs.before


# The last one: it goes on where the others were ended.
@pytest.mark.slow
def test_afterwards_the_same_command_works_and_nothing_is_left_lying(runs: Runs) -> None:
    after = runs.after
    for home, _ in runs.of("killed", "torn", "full"):
        OPERATIONS[runs.operation](home, runs.ids)
        assert registry(home).rollout() == after
        chain(home)
        assert all(VERSION_NAME.fullmatch(path.name) for path in (home / "registry" / "versions").iterdir())
        assert [path.name for path in (home / "staging").iterdir()] == []
