"""Operations on a registry, each run many times in a process that dies, finds the disk full or may not write.

    python -m tests.retrieval.dying FOLDER OPERATION

Every run has a copy of FOLDER/prepared and leaves it behind as FOLDER/<way>-<at>. Printed are the ids of the prepared
versions, and then one line of JSON a run: way, at, how it ended, message.
"""

import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from domain.errors import NotFound, StorageError
from domain.releases import Binding, Decision, Outcome, Verdict
from domain.releasing import Releases
from domain.types import Document
from retrieval.building import build
from retrieval.embedding import HashingEmbedder
from retrieval.registry import FolderRegistry

# What an audit hook hears of before it happens; together with fsync these are the steps of every operation.
STEPS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate", "shutil.rmtree", "fcntl.flock"}
LIMITS = (0, 1, *range(100, 8000, 237))  # bytes that a file may have
NOBODY = 65534


# ---------------------------------------------------------------------------------------------- what is there


def built(home: Path, text: str) -> str:
    """The version of one document."""
    document = Document("a", "", text, "", "", "", frozenset({"staff"}), "harbour", "")
    report = build(
        [document], embedder=HashingEmbedder(8), registry=FolderRegistry(home / "registry"), staging=home / "staging"
    )
    return report.version.id


def served(version: str, baseline: str | None) -> Binding:
    return Binding(version, "questions", "settings", "gates", "code", baseline)


def releases(home: Path) -> Releases:
    return Releases(FolderRegistry(home / "registry"), served, lambda: datetime(2026, 1, 31, tzinfo=UTC))


def decide(home: Path, version: str) -> None:
    registry = FolderRegistry(home / "registry")
    verdict = Verdict("recall@8", Outcome.PASS, "0.93 >= 0.80")
    registry.record(Decision(served(version, registry.rollout().stable), (verdict,), "", "2026-01-31"))


def prepared(home: Path) -> dict[str, str]:
    """`old` and then `now` were promoted, `next` is built and decided about, nobody needs `spare`."""
    ids = {name: built(home, f"The {name} gate opens at high water.") for name in ("old", "now", "next", "spare")}
    for name in ("old", "now"):
        decide(home, ids[name])
        releases(home).promote(ids[name], "somebody")
    decide(home, ids["next"])
    return ids


# ---------------------------------------------------------------------------------------------- what is done

# Doing any of these again after it was done is the same as doing it once; a second decision is as good as one.


def first(home: Path, ids: dict[str, str]) -> None:
    """The first promotion of all, forced."""
    if FolderRegistry(home / "registry").rollout().stable is None:
        releases(home).force(ids["next"], "there is no question set yet")
        releases(home).promote(ids["next"], "somebody")


def gate(home: Path, ids: dict[str, str]) -> None:
    decide(home, ids["spare"])


def begin(home: Path, ids: dict[str, str]) -> None:
    if FolderRegistry(home / "registry").rollout().canary is None:
        releases(home).begin(ids["next"], 0.05, "somebody")


def promote(home: Path, ids: dict[str, str]) -> None:
    releases(home).promote(ids["next"], "somebody")


def roll_back(home: Path, ids: dict[str, str]) -> None:
    if FolderRegistry(home / "registry").rollout().stable == ids["now"]:
        releases(home).roll_back("somebody", "wrong prices")


def remove(home: Path, ids: dict[str, str]) -> None:
    with suppress(NotFound):
        FolderRegistry(home / "registry").remove(ids["spare"])


def forget(home: Path, ids: dict[str, str]) -> None:
    FolderRegistry(home / "registry").tombstone(["a"])


def release(home: Path, ids: dict[str, str]) -> None:
    """A new version from its documents to everybody."""
    version = built(home, "The new gate opens at low water too.")
    if FolderRegistry(home / "registry").rollout().stable != version:
        decide(home, version)
        releases(home).promote(version, "somebody")


OPERATIONS: dict[str, Callable[[Path, dict[str, str]], None]] = {
    operation.__name__: operation for operation in (first, gate, begin, promote, roll_back, remove, forget, release)
}


def copied(home: Path, to: Path, operation: str) -> Path:
    shutil.copytree(home, to)
    if operation == "first":
        for name in ("rollout.json", "ledger.jsonl"):
            (to / "registry" / name).unlink()
    return to


# ---------------------------------------------------------------------------------------------- how it ends


def killed_at(step: int) -> None:
    """Kills this process before its `step`-th step."""
    left = iter(range(step, 0, -1))
    fsync = os.fsync

    def count() -> None:
        if next(left, 0) <= 1:
            os.kill(os.getpid(), signal.SIGKILL)

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event in STEPS or (event == "open" and not str(arguments[0]).startswith(("/usr", "/proc", sys.prefix))):
            count()

    def counted_fsync(handle: int) -> None:
        count()
        fsync(handle)

    os.fsync = counted_fsync
    sys.addaudithook(heard)


def no_file_larger_than(limit: int) -> None:
    """Writing beyond the limit is an error, after the part that fits."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def torn_at(limit: int) -> None:
    """Writing beyond the limit ends this process, after the part that fits."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    no_file_larger_than(limit)


def read_only() -> None:
    """Nothing below the working directory may be written, not even by the superuser: it becomes nobody."""
    for path in [Path(), *Path().rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    registry = FolderRegistry(Path("registry"))
    for version in registry.versions():  # all of what serving reads
        registry.verify(version.id)
        registry.decisions(version.id)
    registry.rollout(), registry.ledger(), registry.tombstones()


def ended(operation: str, home: Path, ids: dict[str, str], hindrance: Callable[[], None]) -> tuple[str, str]:
    """How a process ended that met the hindrance: "done", "refused" with a message, "killed" or "broken"."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status, message = 2, ""
        try:
            os.chdir(home)  # relative paths are open to nobody too, whoever owns the folders above
            hindrance()
            OPERATIONS[operation](Path(), ids)
            status = 0
        except StorageError as error:
            status, message = 1, str(error)
        except BaseException as error:
            message = repr(error)
        os.write(writing, message.encode())
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        message = told.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return ("killed" if code < 0 else ("done", "refused", "broken")[code]), message


def runs() -> Iterator[tuple[str, int, Callable[[], None]]]:
    """Every way in which an operation is tried, until it gets through in that way."""
    yield from (("killed", step, partial(killed_at, step)) for step in range(1, 1000))
    yield from (("torn", limit, partial(torn_at, limit)) for limit in LIMITS)
    yield from (("full", limit, partial(no_file_larger_than, limit)) for limit in LIMITS)
    yield "read_only", 0, read_only


def main(folder: Path, operation: str) -> None:
    ids = prepared(folder / "prepared")
    print(json.dumps(ids))
    through: set[str] = set()
    for way, at, hindrance in runs():
        if way not in through:
            home = copied(folder / "prepared", folder / f"{way}-{at}", operation)
            how, message = ended(operation, home, ids, hindrance)
            print(json.dumps({"way": way, "at": at, "how": how, "message": message}))
            through |= {way} if how == "done" else set()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2])
