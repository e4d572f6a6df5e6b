"""Uploads on their way into a library: jobs on disk, one worker at a time, and nothing harmed by one that fails."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from domain.errors import BadRequest, NotFound, Overloaded
from domain.uploading import JobState, Upload, UploadJob
from retrieval.registry import FolderRegistry
from retrieval.source_record import newest_record
from tests.serving.service import client, service
from tests.tidegate.tiny import admit, sets, settings, write_corpus
from tidegate.cli import main
from tidegate.keeping_fresh import Wanted, synced_from, uploads_folder
from tidegate.settings import Settings
from tidegate.syncing import records_folder
from tidegate.upload_jobs import take_in
from tidegate.uploading import FolderUploads, jobs_of, start, work

GATE = Upload("tide gate.md", b"# Gate\n\nThe zebrawood gate is shut at noon.\n")


class Starts:
    """Counts workers that were begun, and says that they live or do not."""

    def __init__(self, alive: bool = False) -> None:
        self.count, self.alive = 0, alive

    def __call__(self) -> "Starts":
        self.count += 1
        return self

    def poll(self) -> int | None:
        return None if self.alive else 0


def taking(of: Settings, starts: Starts | None = None) -> FolderUploads:
    return FolderUploads(jobs_of(of), of.uploads.max_bytes, starts or Starts())


def uploaded(of: Settings, *files: Upload) -> UploadJob:
    """A job after everything was worked on."""
    job = taking(of).accept(files, "a test")
    work(of)
    return jobs_of(of).job(job.id)


def newest(of: Settings, file: str) -> Any:
    """A file of the version that was made last; two of one second are in no order for the registry."""
    record = newest_record(records_folder(of))
    assert record is not None
    return json.loads((FolderRegistry(of.data_dir / "registry").folder(record.version) / file).read_text("utf-8"))


def documents(of: Settings) -> list[str]:
    ids: list[str] = newest(of, "documents.json")
    return ids


# ---------------------------------------------------------------------------------------------- taken in


def test_an_upload_joins_the_library_and_its_job_says_what_became_of_it(tmp_path: Path) -> None:
    of, corpus = settings(tmp_path / "data"), write_corpus(tmp_path / "corpus")
    synced_from(of, Wanted(str(corpus)), lambda *_: None)
    job = uploaded(of, GATE)
    assert (job.state, job.error) == (JobState.DONE, "")
    (file,) = job.files
    assert (file.doc_ids, file.status) == (("uploads/tide gate.md",), "indexed")
    assert job.version in {v.id for v in FolderRegistry(of.data_dir / "registry").versions()}
    assert "no questions to decide" in job.undecided
    assert documents(of) == ["crane.md", "gate.md", "pump.txt", "uploads/tide gate.md"]


def test_an_upload_is_a_library_where_there_was_none(tmp_path: Path) -> None:
    of = settings(tmp_path / "data")
    assert uploaded(of, GATE).state is JobState.DONE
    assert documents(of) == ["uploads/tide gate.md"]


def test_a_later_sync_of_the_folder_keeps_what_was_uploaded(tmp_path: Path) -> None:
    of, corpus = settings(tmp_path / "data"), write_corpus(tmp_path / "corpus")
    synced_from(of, Wanted(str(corpus)), lambda *_: None)
    uploaded(of, GATE)
    (corpus / "crane.md").unlink()
    synced_from(of, Wanted(str(corpus)), lambda *_: None)
    assert documents(of) == ["gate.md", "pump.txt", "uploads/tide gate.md"]


def test_the_same_file_again_is_one_document_and_another_content_replaces_it(tmp_path: Path) -> None:
    of = settings(tmp_path / "data")
    first, again = uploaded(of, GATE), uploaded(of, GATE)
    assert (again.version, again.files) == (first.version, first.files)
    changed = uploaded(of, replace(GATE, content=b"The zebrawood gate is open.\n"))
    assert changed.version != first.version
    assert documents(of) == ["uploads/tide gate.md"]


def test_groups_are_those_of_the_last_upload(tmp_path: Path) -> None:
    of = settings(tmp_path / "data")
    uploaded(of, replace(GATE, groups=("hr", "board")))
    assert newest(of, "readers.json") == [["harbour", ["board", "hr"]]]
    uploaded(of, replace(GATE, groups=("staff",)))
    assert jobs_of(of).jobs()[-1].files[0].groups == ("staff",)
    assert newest(of, "readers.json") == [["harbour", ["staff"]]]
    uploaded(of, GATE)
    assert newest(of, "readers.json") == [["harbour", ["public"]]]  # as the settings have it for what says nothing


# ---------------------------------------------------------------------------------------------- refused and failed


@pytest.mark.parametrize("name", ["../escape.txt", "..\\escape.txt", "/tmp/escape.txt", "x\0.txt", "x" * 300, "."])
def test_a_name_that_is_a_path_leaves_nothing_anywhere(tmp_path: Path, name: str) -> None:
    of = settings(tmp_path / "data")
    with pytest.raises(BadRequest):
        taking(of).accept([Upload(name, b"text")], "a test")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "No file"),
        ([Upload("photo.xyz", b"x")], "kind that is not read here"),
        ([Upload("a.md.access.yaml", b"groups: [all]")], "name of a note"),
        ([GATE, GATE], "same name"),
    ],
)
def test_what_could_not_be_taken_in_is_refused_at_once(tmp_path: Path, files: list[Upload], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        taking(settings(tmp_path / "data")).accept(files, "a test")


def test_a_failed_upload_leaves_the_library_as_it_was_and_the_next_one_works(tmp_path: Path) -> None:
    of, corpus = settings(tmp_path / "data"), write_corpus(tmp_path / "corpus")
    (corpus / "records.jsonl").write_text('{"id": "r1", "text": "The bell rings."}\n')
    synced_from(of, Wanted(str(corpus)), lambda *_: None)
    first = uploaded(of, replace(GATE, groups=("public",)))
    clash = uploaded(of, Upload("more.jsonl", b'{"id": "r1", "text": "The bell is silent."}\n'))
    assert clash.state is JobState.FAILED
    assert "Document ids must be unique" in clash.error
    assert sorted(p.name for p in uploads_folder(of).iterdir()) == ["tide gate.md", "tide gate.md.access.yaml"]
    assert len(FolderRegistry(of.data_dir / "registry").versions()) == 2
    assert uploaded(of, GATE).state is JobState.DONE
    assert first.state is JobState.DONE


def test_a_failed_replacement_brings_the_file_of_before_back(tmp_path: Path) -> None:
    of = settings(tmp_path / "data")
    uploaded(of, GATE)
    failed = uploaded(of, replace(GATE, content=b" \n"), Upload("blank.txt", b"..."))  # nothing is left to index
    assert failed.state is JobState.FAILED
    assert (uploads_folder(of) / GATE.name).read_bytes() == GATE.content
    assert not (uploads_folder(of) / "blank.txt").exists()


def test_a_file_that_cannot_be_read_is_told_in_its_job(tmp_path: Path) -> None:
    of = settings(tmp_path / "data")
    job = uploaded(of, GATE, Upload("bad.txt", b"text \xe9\0\0"))
    assert job.state is JobState.DONE
    assert [(file.name, file.status) for file in job.files] == [("tide gate.md", "indexed"), ("bad.txt", "failed")]


# ---------------------------------------------------------------------------------------------- the queue


def test_too_many_waiting_uploads_are_refused_until_one_is_done(tmp_path: Path) -> None:
    of = settings(tmp_path / "data", uploads__max_waiting="2")
    uploads = taking(of)
    for _ in range(2):
        uploads.accept([GATE], "a test")
    with pytest.raises(Overloaded, match="2 uploads wait"):
        uploads.accept([GATE], "a test")
    work(of)
    assert uploads.accept([GATE], "a test").state is JobState.QUEUED


def test_a_worker_is_begun_for_the_first_upload_and_not_again_while_it_lives(tmp_path: Path) -> None:
    starts = Starts(alive=True)
    uploads = taking(settings(tmp_path / "data"), starts)
    for _ in range(3):
        uploads.accept([GATE], "a test")
    assert starts.count == 1


def test_asking_for_a_job_whose_worker_died_begins_another(tmp_path: Path) -> None:
    starts = Starts()
    uploads = taking(settings(tmp_path / "data"), starts)
    job = uploads.accept([GATE], "a test")
    assert uploads.job(job.id).state is JobState.QUEUED
    assert starts.count == 2


def test_an_upload_whose_worker_died_half_way_is_taken_in_by_the_next(tmp_path: Path) -> None:
    of = settings(tmp_path / "data")
    jobs = jobs_of(of)
    uploaded(of, GATE)
    job = jobs.begin(taking(of).accept([replace(GATE, content=b"The gate is open.\n")], "a test"))
    take_in(job, jobs.folder(job.id), uploads_folder(of))  # and here it died
    work(of)
    ended = jobs.job(job.id)
    assert (ended.state, ended.attempts) == (JobState.DONE, 2)
    assert (uploads_folder(of) / GATE.name).read_bytes() == b"The gate is open.\n"


@pytest.mark.parametrize("half_way", [False, True])
def test_an_upload_that_kills_its_worker_every_time_is_given_up(tmp_path: Path, half_way: bool) -> None:
    of = settings(tmp_path / "data")
    jobs = jobs_of(of)
    uploaded(of, replace(GATE, groups=("public",)))
    job = taking(of).accept([replace(GATE, content=b"The gate is open.")], "a test")
    for _ in range(3):
        job = jobs.begin(job)
    if half_way:
        take_in(job, jobs.folder(job.id), uploads_folder(of))
    work(of)
    assert jobs.job(job.id).state is JobState.FAILED
    assert "died 3 times" in jobs.job(job.id).error
    assert (uploads_folder(of) / GATE.name).read_bytes() == GATE.content
    assert (uploads_folder(of) / f"{GATE.name}.access.yaml").exists()


@pytest.mark.parametrize("id", ["../job", "x", "0" * 32, ""])
def test_an_unknown_job_is_not_found_and_is_no_path(tmp_path: Path, id: str) -> None:
    with pytest.raises(NotFound):
        taking(settings(tmp_path / "data")).job(id)


def test_a_process_of_its_own_works_on_what_was_left(tmp_path: Path) -> None:
    of = settings(tmp_path / "data")
    job = taking(of).accept([GATE], "a test")
    worker = start(of)
    work(of)  # waits for the other worker, or is waited for; whoever came first did it
    assert jobs_of(of).job(job.id).state is JobState.DONE
    assert jobs_of(of).job(job.id).attempts == 1
    assert worker.wait(60) == 0


def test_what_is_sent_over_http_is_found_when_its_job_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of = settings(tmp_path / "data")
    workers = []

    def started() -> Any:
        workers.append(start(of))
        return workers[-1]

    served = service(uploads=FolderUploads(jobs_of(of), 10_000, started), admin_key="k" * 40)
    headers = {"Authorization": f"Bearer {'k' * 40}"}

    async def sent_and_done() -> Any:
        async with client(served) as http:
            sent = await http.post("/v1/documents", headers=headers, files={"file": (GATE.name, GATE.content)})
            assert sent.status_code == 202
            assert workers[0].wait(120) == 0
            return (await http.get(sent.headers["Location"], headers=headers)).json()

    told = asyncio.run(sent_and_done())
    assert (told["state"], told["files"][0]["status"]) == ("done", "indexed")
    assert admit(of.data_dir)
    assert main(["search", "zebrawood gate", "--json", *sets(of.data_dir)]) == 0
    assert json.loads(capsys.readouterr().out)["hits"][0]["doc_id"] == told["files"][0]["doc_ids"][0]
