"""What waits for the experiment tracker, as files below data_dir/tracking; nothing here talks to it.

pending/<time>-<id>/   an evaluation as it may be seen, until the tracker has taken it
sent/<id>.json         the run it became
pointer.json           what the aliases should say, and whether they do
lock                   held by the one process that sends
"""

import fcntl
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from domain.errors import StorageError
from domain.evaluation import Evaluation
from domain.releases import Rollout
from eval.evaluation_files import save
from retrieval.jsonrecords import decoded, read


@dataclass(frozen=True, slots=True)
class Spool:
    """The folder. Every method that writes raises OSError when it cannot."""

    root: Path

    def keep(self, evaluation: Evaluation) -> Path:
        """Write an evaluation down; the folder it is in appears whole. Later ones sort behind earlier ones."""
        pending = self.root / "pending"
        pending.mkdir(parents=True, exist_ok=True)
        name = f"{time.time_ns():020d}-{evaluation.id}"
        part = pending / f".{name}"
        part.mkdir()
        try:
            save(evaluation, part)
            return part.rename(pending / name)
        except OSError:
            shutil.rmtree(part, ignore_errors=True)  # a full disk keeps no half of it
            raise

    def waiting(self) -> tuple[Path, ...]:
        """The folders of evaluations that wait, oldest first."""
        return tuple(sorted(path for path in (self.root / "pending").glob("[0-9]*-*") if path.is_dir()))

    def taken(self, folder: Path, run_id: str) -> None:
        """Remember the run, and let the folder go: in this order, so that it is rather sent twice than lost."""
        sent = self.root / "sent"
        sent.mkdir(parents=True, exist_ok=True)
        _replace(sent / f"{folder.name.partition('-')[2]}.json", {"run_id": run_id})
        shutil.rmtree(folder)

    def run_id(self, evaluation_id: str) -> str:
        """The run an evaluation became, or "" when the tracker has not taken it."""
        return str(_read(self.root / "sent" / f"{evaluation_id}.json").get("run_id", ""))

    def point(self, rollout: Rollout, candidate: str | None) -> None:
        """Remember what the aliases should say, unless a later position of the pointer is there already."""
        now = {"rollout": asdict(rollout), "candidate": candidate}
        there = self._wanted()
        if there is not None and there.rollout.revision > rollout.revision:
            return
        if there is None or (there.rollout, there.candidate) != (rollout, candidate):
            self.root.mkdir(parents=True, exist_ok=True)
            _replace(self.root / "pointer.json", now)

    def pointed(self) -> tuple[Rollout, str | None] | None:
        """What the aliases should say and do not say yet, or None."""
        there = self._wanted()
        return None if there is None or there.told else (there.rollout, there.candidate)

    def told(self, rollout: Rollout, candidate: str | None) -> None:
        """The aliases say this now; if something else is wanted meanwhile, that stays wanted."""
        if self.pointed() == (rollout, candidate):
            now = {"rollout": asdict(rollout), "candidate": candidate, "told": True}
            _replace(self.root / "pointer.json", now)

    def _wanted(self) -> "_Wanted | None":
        """What pointer.json says; None when it is not there or damaged: it is written anew in its time."""
        path = self.root / "pointer.json"
        with suppress(StorageError):
            if (content := read(path)) is not None:
                wanted: _Wanted = decoded(_Wanted, path, content)
                return wanted
        return None

    @property
    def used(self) -> bool:
        """True when the tracker has ever taken something from here, or something waits for it."""
        return any((self.root / "sent").glob("*.json")) or bool(self.waiting())

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Alone while the block runs; waits for another sender. The system lets go of it when a process is killed."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the aliases should say, and whether they do."""

    rollout: Rollout
    candidate: str | None
    told: bool = False


def _read(path: Path) -> dict[str, Any]:  # JSON
    """The JSON object in a file; one that is not there or damaged is empty, and is written anew in its time."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _replace(path: Path, content: object) -> None:
    part = path.with_name(f".{path.name}.{time.time_ns()}")
    part.write_text(json.dumps(content), "utf-8")
    part.replace(path)
