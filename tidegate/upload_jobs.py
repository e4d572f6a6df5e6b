"""Uploads on disk: each a folder with what was sent and how far it is, so that no process has to live for it.

    upload-jobs/<id>/job.json   the job
    upload-jobs/<id>/files/     what was sent, until it is taken into the library
    upload-jobs/<id>/before/    what stood in the library in its place, until it is known that the new one can stay

A job appears by one rename, whole or not at all. Who works on jobs is uploading.py.
"""

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from domain.errors import NotFound, Overloaded, StorageError
from domain.releasing import stamp, utc_now
from domain.uploading import JobState, Upload, UploadedFile, UploadJob
from retrieval.access_rules import OF_FILE
from retrieval.disk import cannot_write
from retrieval.jsonrecords import decoded, encoded, plain, read, replace_file, sync_folder, sync_tree

NAMES = re.compile(r"[0-9a-f]{32}")
JOB, FILES, BEFORE = "job.json", "files", "before"
KEPT = 1000  # jobs that ended, the newest
WAIT_S = 30.0  # until a full queue may have room: a sync and its gate take minutes
FINAL = (JobState.DONE, JobState.FAILED)


class UploadJobs:
    """The jobs below `root`, of which at most `max_waiting` wait."""

    def __init__(self, root: Path, max_waiting: int) -> None:
        self.root, self._max_waiting = root, max_waiting

    def add(self, uploads: Sequence[Upload], who: str) -> UploadJob:
        """A new job, on disk when this returns. Their names are taken to be checked.

        Raises Overloaded when too many wait, and StorageError when the disk does not take it.
        """
        waiting = sum(job.state is JobState.QUEUED for job in self.jobs())
        if waiting >= self._max_waiting:
            raise Overloaded(f"{waiting} uploads wait, which is the limit: try again later.", "uploads", WAIT_S)
        files = tuple(UploadedFile(upload.name, upload.groups) for upload in uploads)
        job = UploadJob(uuid4().hex, JobState.QUEUED, stamp(utc_now()), who, files)
        fresh = self.root / f".{job.id}"
        try:
            (fresh / FILES).mkdir(parents=True)
            for upload in uploads:
                (fresh / FILES / upload.name).write_bytes(upload.content)
                if upload.groups is not None:
                    (fresh / FILES / note_of(upload.name)).write_bytes(encoded({"groups": list(upload.groups)}))
            (fresh / JOB).write_bytes(encoded(plain(job)))
            sync_tree(fresh)
            fresh.rename(self.folder(job.id))
            sync_folder(self.root)
        except OSError as error:
            shutil.rmtree(fresh, ignore_errors=True)
            raise cannot_write(fresh, error) from error
        return job

    def job(self, id: str) -> UploadJob:
        """The job. Raises NotFound, and StorageError for a damaged one."""
        content = read(self.folder(id) / JOB) if NAMES.fullmatch(id) else None
        if content is None:
            raise NotFound("There is no upload of this id: it never was, or ended long ago.", "id")
        job: UploadJob = decoded(UploadJob, self.folder(id) / JOB, content, self.folder(id))
        return job

    def jobs(self) -> list[UploadJob]:
        """All jobs that can be read, oldest first."""
        found = []
        for folder in self.root.iterdir() if self.root.is_dir() else ():
            if NAMES.fullmatch(folder.name):
                try:
                    found.append(self.job(folder.name))
                except (NotFound, StorageError):  # of one damaged job nobody learns anything; the others go on
                    continue
        return sorted(found, key=lambda job: (job.at, job.id))

    def write(self, job: UploadJob) -> UploadJob:
        """Remember how far a job is. Raises StorageError."""
        path = self.folder(job.id) / JOB
        try:
            replace_file(path, encoded(plain(job)))
        except OSError as error:
            raise cannot_write(path, error) from error
        return job

    def next(self) -> UploadJob | None:
        """The oldest job that is not done yet: one that was being worked on when its worker died comes first."""
        open_jobs = [job for job in self.jobs() if job.state not in FINAL]
        return min(open_jobs, key=lambda job: (job.state is JobState.QUEUED, job.at, job.id), default=None)

    def begin(self, job: UploadJob) -> UploadJob:
        """The job, being worked on from now."""
        begun = replace(job, state=JobState.RUNNING, attempts=job.attempts + 1, started=stamp(utc_now()))
        return self.write(begun)

    def end(self, job: UploadJob) -> UploadJob:
        """The job, ended now; what it still holds of files goes, and so do the oldest that ended."""
        ended = self.write(replace(job, ended=stamp(utc_now())))
        for part in (FILES, BEFORE):
            shutil.rmtree(self.folder(job.id) / part, ignore_errors=True)
        for old in [each for each in self.jobs() if each.state in FINAL][:-KEPT]:
            shutil.rmtree(self.folder(old.id), ignore_errors=True)
        return ended

    def folder(self, id: str) -> Path:
        """Where a job lies."""
        return self.root / id


# ---------------------------------------------------------------------------------------------- into the library


def take_in(job: UploadJob, folder: Path, library: Path) -> None:
    """What was sent takes the place of what has the same name; doing it again after a crash is the same.

    Who may read a file is said anew with every upload: one without groups loses the note it had. Raises OSError.
    """
    (folder / BEFORE).mkdir(exist_ok=True)
    library.mkdir(parents=True, exist_ok=True)
    for file in job.files:
        if file.groups is None:
            _set_aside(folder, library, note_of(file.name))
            (library / note_of(file.name)).unlink(missing_ok=True)
        else:
            _put(folder, library, note_of(file.name))
        _put(folder, library, file.name)
    sync_folder(library)


def give_back(job: UploadJob, folder: Path, library: Path) -> None:
    """What stood there before stands there again; what was not put there yet is left alone. Raises OSError."""
    library.mkdir(parents=True, exist_ok=True)
    for file in job.files:
        for name, was_sent in ((note_of(file.name), file.groups is not None), (file.name, True)):
            if (folder / FILES / name).exists():
                continue
            if (folder / BEFORE / name).exists():
                shutil.copy2(folder / BEFORE / name, library / name)
            elif was_sent:
                (library / name).unlink(missing_ok=True)
    sync_folder(library)


def note_of(name: str) -> str:
    """The name of the note that says who may read a file; it is JSON, which is YAML too."""
    return f"{name}{OF_FILE}"


def _put(folder: Path, library: Path, name: str) -> None:
    if (folder / FILES / name).exists():  # otherwise it was put there before a crash
        _set_aside(folder, library, name)
        (folder / FILES / name).replace(library / name)


def _set_aside(folder: Path, library: Path, name: str) -> None:
    kept = folder / BEFORE / name
    if (library / name).exists() and not kept.exists():
        half = kept.with_name(f".{name}")
        shutil.copy2(library / name, half)
        half.replace(kept)
