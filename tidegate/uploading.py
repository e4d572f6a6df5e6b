"""The process that takes uploads into the library: `python -m tidegate.uploading`, with settings pickled on stdin.

A process of its own, because reading, embedding and the gate take minutes and memory, and because it outlives the
gateway that started it. One works at a time, one job after the other, oldest first; a job whose worker died is begun
again. What a job does is what `tidegate sync` does, with the sent files among those of the library.
"""

import fcntl
import logging
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from domain.errors import BadRequest, TidegateError
from domain.uploading import JobState, Upload, UploadedFile, UploadJob, checked_name
from tidegate.upload_jobs import FINAL, UploadJobs, give_back, take_in

if TYPE_CHECKING:
    from retrieval.source_record import SourceRecord
    from tidegate.keeping_fresh import Fresh
    from tidegate.settings import Settings

log = logging.getLogger("tidegate.uploads")

ATTEMPTS = 3  # of a job whose worker dies: a file that kills it every time must not come first for ever


def jobs_of(settings: "Settings") -> UploadJobs:
    """The uploads of this data folder."""
    return UploadJobs(settings.data_dir / "upload-jobs", settings.uploads.max_waiting)


# ---------------------------------------------------------------------------------------------- in the gateway


class Worker(Protocol):
    """A process that works on uploads."""

    def poll(self) -> int | None:
        """None while it runs."""
        ...


@dataclass
class FolderUploads:
    """Takes uploads, and sees to it that somebody works on them: `start` begins a worker."""

    jobs: UploadJobs
    max_bytes: int
    start: Callable[[], Worker]
    _worker: Worker | None = field(default=None, init=False)
    _one_at_a_time: Lock = field(default_factory=Lock, init=False)

    def accept(self, uploads: Sequence[Upload], who: str) -> UploadJob:
        """A job for these files, on disk, and somebody to work on it. Raises BadRequest naming every wrong file."""
        job = self.jobs.add(_checked(uploads), who)
        self.wake()
        return job

    def job(self, id: str) -> UploadJob:
        """How far a job is. Raises NotFound."""
        job = self.jobs.job(id)
        if job.state not in FINAL:  # its worker may have died, or have looked for the last time just before it came
            self.wake()
        return job

    def wake(self) -> None:
        """A worker is there when anything is to be done."""
        with self._one_at_a_time:
            idle = self._worker is None or self._worker.poll() is not None
            if idle and self.jobs.next() is not None:
                self._worker = self.start()


def make_uploads(settings: "Settings") -> FolderUploads:
    """What takes uploads in a gateway; jobs that an earlier one left are gone on with."""
    uploads = FolderUploads(jobs_of(settings), settings.uploads.max_bytes, lambda: start(settings))
    uploads.wake()
    return uploads


def start(settings: "Settings") -> "subprocess.Popen[bytes]":
    """A worker in the background."""
    log_file = settings.data_dir / "uploads.log"
    with log_file.open("ab") as output:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "tidegate.uploading"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    if child.stdin is not None:
        with child.stdin as pipe:
            pipe.write(pickle.dumps(settings))
    return child


def _checked(uploads: Sequence[Upload]) -> list[Upload]:
    from retrieval.access_rules import is_note
    from retrieval.reading import READERS

    if not uploads:
        raise BadRequest("No file was sent: send at least one.", "file")
    named = [replace(upload, name=checked_name(upload.name)) for upload in uploads]
    for upload in named:
        if is_note(upload.name):
            raise BadRequest(f"{upload.name!r} is the name of a note: say who may read a file by 'groups'.", "name")
        if not any(upload.name.lower().endswith(ending) for ending in READERS):
            kinds = ", ".join(READERS)
            raise BadRequest(f"{upload.name!r} is of a kind that is not read here; known are {kinds}.", "name")
    if len({upload.name for upload in named}) < len(named):
        raise BadRequest("Two of the files have the same name: send them one after the other.", "name")
    return named


# ---------------------------------------------------------------------------------------------- in the worker


def main() -> None:
    """Work until nothing is left."""
    settings: Settings = pickle.load(sys.stdin.buffer)  # noqa: S301 - pickled by the process that started this one
    work(settings)


def work(settings: "Settings") -> None:
    """Every job there is, one after the other. Waits for another worker, and then finds little to do."""
    jobs = jobs_of(settings)
    with _alone(jobs.root):
        while (job := jobs.next()) is not None:
            if job.attempts >= ATTEMPTS:
                _give_back(settings, jobs, job)
                why = f"Whoever worked on it died {job.attempts} times before it was done: see uploads.log in data_dir."
                jobs.end(replace(job, state=JobState.FAILED, error=why))
            else:
                jobs.end(_done(settings, jobs, jobs.begin(job)))


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _done(settings: "Settings", jobs: UploadJobs, job: UploadJob) -> UploadJob:
    """The job as it ended. Whatever goes wrong, the library is what it was and the next job can go on."""
    from tidegate.keeping_fresh import Wanted, keep_fresh, uploads_folder
    from tidegate.syncing import alone

    library = uploads_folder(settings)
    try:
        with alone(settings, log.info):
            take_in(job, jobs.folder(job.id), library)
        fresh = keep_fresh(settings, Wanted(None, auto=settings.uploads.auto), lambda *_: None, log.info)
        return _told(settings, job, fresh)
    except (TidegateError, OSError) as error:
        _give_back(settings, jobs, job)
        return replace(job, state=JobState.FAILED, error=str(error))
    except Exception as error:
        log.exception("upload %s failed", job.id)
        _give_back(settings, jobs, job)
        return replace(job, state=JobState.FAILED, error=f"This is a bug in Tidegate: {type(error).__name__}: {error}")


def _give_back(settings: "Settings", jobs: UploadJobs, job: UploadJob) -> None:
    from tidegate.keeping_fresh import uploads_folder
    from tidegate.syncing import alone

    with alone(settings, log.info):
        give_back(job, jobs.folder(job.id), uploads_folder(settings))


def _told(settings: "Settings", job: UploadJob, fresh: "Fresh") -> UploadJob:
    from retrieval.source_record import newest_record
    from tidegate.syncing import records_folder

    version, rollout = fresh.synced.version.id, fresh.rollout
    record = newest_record(records_folder(settings))
    return replace(
        job,
        state=JobState.DONE,
        files=tuple(_file(file, record) for file in job.files),
        version=version,
        decision=fresh.decision.outcome.name if fresh.decision else "",
        undecided=fresh.undecided,
        serving="stable" if version == rollout.stable else "canary" if version == rollout.canary else "",
    )


def _file(file: UploadedFile, record: "SourceRecord | None") -> UploadedFile:
    """What became of a file, as the record of the source has it."""
    from tidegate.keeping_fresh import UPLOADS

    known = record.files.get(f"{UPLOADS}/{file.name}") if record else None
    if known is None:
        return replace(file, status="skipped", code="not_read", reason="is not among what was read")
    ids = tuple(doc_id for doc_id, _ in known.found)
    trouble = known.trouble or (known.left_out[0] if known.left_out else None)
    if trouble is not None:
        return replace(file, doc_ids=ids, status=trouble.status.value, code=trouble.code, reason=trouble.reason)
    if not ids:
        return replace(file, status="skipped", code="blank", reason="holds no record")
    if known.remarks:
        return replace(file, doc_ids=ids, status="warning", code="remarks", reason="; ".join(known.remarks[:3]))
    return replace(file, doc_ids=ids, status="indexed", code="ok", reason=f"{len(ids)} of {known.records} indexed")


if __name__ == "__main__":
    main()
