"""What a journal keeps, what it forgets, and who may write it."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from domain.errors import StorageError
from eval.client import Failure
from eval.journal import Header, Journal, Reply, header_of, read

HEADER = Header("v1", "set", "settings", "0.1.0+12345678")
ANSWER = Reply({"answer": "Höhe: \ud800 6 m", "score": 0.1, "status": "complete"}, 12.5)
FAILED = Reply(Failure("timeout", "too slow"), 60000.0)
AT = "2026-03-01T10:00:00.000+00:00"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "evaluations" / "v1" / "key.jsonl"


def write(path: Path, header: Header = HEADER) -> bytes:
    with Journal(path, header) as journal:
        journal.add("q1", ANSWER)
        journal.add("q2", FAILED)
    return path.read_bytes()


def test_what_was_added_is_there_the_next_time_answers_and_failures_alike(path: Path) -> None:
    write(path)
    with Journal(path, HEADER) as journal:
        assert journal.replies == {"q1": ANSWER, "q2": FAILED}
        assert journal.finished_at == ""
        journal.add("q3", ANSWER)
        journal.finish(AT)
    found = read(path, HEADER)
    assert (found.replies, found.finished_at) == ({"q1": ANSWER, "q2": FAILED, "q3": ANSWER}, AT)


def test_looking_at_a_journal_does_not_change_it(path: Path) -> None:
    content = write(path)
    with Journal(path, HEADER):
        pass
    read(path, HEADER)
    assert path.read_bytes() == content


def test_a_journal_cut_anywhere_keeps_exactly_its_whole_lines(path: Path) -> None:
    content = write(path)
    lines = content.splitlines(keepends=True)
    for cut in range(len(content)):
        path.write_bytes(content[:cut])
        whole = [i for i in range(1, 4) if len(b"".join(lines[:i])) <= cut]
        with Journal(path, HEADER) as journal:
            assert list(journal.replies) == ["q1", "q2"][: max(0, len(whole) - 1)]
            journal.add("q9", ANSWER)
        assert list(read(path, HEADER).replies) == [*["q1", "q2"][: max(0, len(whole) - 1)], "q9"]


@pytest.mark.parametrize(
    "damage",
    [b"not json\n", b'{"id": "q1"}\n', b"[1]\n", b"\0\0\0\n", b'{"id": "q1", "latency_ms": 1, "response": 3}\n',
     b'{"id": "q1", "latency_ms": "1", "response": {}}\n', b'{"id": "q1", "latency_ms": 1, "failure": {}}\n'],
)  # fmt: skip
def test_what_follows_a_damaged_line_is_asked_again(path: Path, damage: bytes) -> None:
    header, first, second = write(path).splitlines(keepends=True)
    path.write_bytes(header + first + damage + second)
    with Journal(path, HEADER) as journal:
        assert list(journal.replies) == ["q1"]
    assert path.read_bytes() == header + first


@pytest.mark.parametrize("part", ["version", "dataset", "settings", "code", "url"])
def test_replies_under_one_header_are_never_taken_for_replies_under_another(path: Path, part: str) -> None:
    write(path)
    other = replace(HEADER, **{part: "another"})
    assert read(path, other).replies == {}
    with Journal(path, other) as journal:
        assert journal.replies == {}
    assert read(path, HEADER).replies == {}, "the file was begun anew"


def test_a_file_that_is_no_journal_is_begun_anew(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff\xfe some other file")
    write(path)
    assert list(read(path, HEADER).replies) == ["q1", "q2"]


def test_what_a_journal_is_of_can_be_read_off_it(path: Path, tmp_path: Path) -> None:
    write(path)
    assert header_of(path) == HEADER
    for content in (b"", b"\xff\n", b"[]\n", b"{}\n", b'{"format": 2, "version": "v1"}\n', b'{"format": 1}\n'):
        (tmp_path / "other").write_bytes(content)
        assert header_of(tmp_path / "other") is None


def test_starting_over_forgets_every_reply_and_that_it_was_whole(path: Path) -> None:
    write(path)
    with Journal(path, HEADER) as journal:
        journal.finish(AT)
        journal.start_over()
        assert (journal.replies, journal.finished_at) == ({}, "")
        journal.add("q7", FAILED)
    found = read(path, HEADER)
    assert (found.replies, found.finished_at) == ({"q7": FAILED}, "")


def test_two_processes_never_write_one_journal(path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from domain.errors import StorageError
from eval.journal import Header, Journal
try:
    with Journal(Path({str(path)!r}), Header("v1", "set", "settings", "0.1.0+12345678")):
        print("held")
except StorageError as error:
    print(error)
"""
    other = [sys.executable, "-c", program]
    with Journal(path, HEADER) as journal:
        journal.add("q1", ANSWER)
        told = subprocess.run(other, capture_output=True, text=True, check=True).stdout
        assert told.startswith("Another process is evaluating v1 on this question set")
        assert str(path) in told
    assert subprocess.run(other, capture_output=True, text=True, check=True).stdout == "held\n"
    assert list(read(path, HEADER).replies) == ["q1"]


def test_a_full_disk_is_named_and_loses_nothing_that_was_written(path: Path) -> None:
    program = f"""
import resource, signal, sys
from tests.eval.test_journal import ANSWER, HEADER, Journal, Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
with Journal(Path({str(path)!r}), HEADER) as journal:
    for number in range(100):
        journal.add(f"q{{number}}", ANSWER)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = ended.stderr.splitlines()[-1]
    assert last.startswith(f"domain.errors.StorageError: Cannot write {path} (File too large): make room")
    replies = read(path, HEADER).replies
    # A line takes about 120 bytes, so some of the hundred were written and the last was not.
    assert 5 < len(replies) < 20
    with Journal(path, HEADER) as journal:
        assert list(journal.replies) == [f"q{number}" for number in range(len(replies))]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_named(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o500)
    with pytest.raises(StorageError, match=r"Cannot write .*key\.jsonl \(Permission denied\)"), Journal(path, HEADER):
        pass


def test_a_folder_in_the_way_is_named(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StorageError, match=r"key\.jsonl \(Is a directory\)"), Journal(path, HEADER):
        pass
    with pytest.raises(StorageError, match=r"Cannot read .*key\.jsonl"):
        read(path, HEADER)
