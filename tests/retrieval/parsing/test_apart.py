"""Hostile files cost only themselves: each has its outcome, and the next file is read as if nothing had happened."""

import io
import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import docx
import pytest

from retrieval.documents import Corpus
from retrieval.parsing.apart import Apart
from retrieval.parsing.parsed import Limits, Refused
from tests.retrieval.parsing import made

LIMITS = Limits(memory_mb=400)


@pytest.fixture
def apart() -> Iterator[Apart]:
    processes = Apart()
    yield processes
    processes.close()


def code_of(apart: Apart, path: Path, limits: Limits = LIMITS) -> str:
    with pytest.raises(Refused) as refused:
        apart.parse(path, path.suffix, limits)
    assert "Traceback" not in refused.value.reason
    return refused.value.code


def reads(apart: Apart, folder: Path) -> bool:
    """True when an ordinary file is read."""
    (folder / "ordinary.html").write_text("<p>All is well.</p>")
    return apart.parse(folder / "ordinary.html", ".html", LIMITS).text == "All is well."


def worker_of(apart: Apart) -> int:
    (pid,) = apart.pids()
    return pid


def test_one_process_reads_many_files(apart: Apart, tmp_path: Path) -> None:
    assert reads(apart, tmp_path)
    first = worker_of(apart)
    assert reads(apart, tmp_path)
    assert worker_of(apart) == first


def test_the_names_of_files_may_be_any_bytes(apart: Apart, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9 \xe6\xb8\xaf.html")
    path.write_text("<p>open</p>")
    assert apart.parse(path, ".html", LIMITS).text == "open"


def test_a_reader_that_was_killed_is_replaced(apart: Apart, tmp_path: Path) -> None:
    assert reads(apart, tmp_path)
    os.kill(worker_of(apart), signal.SIGSTOP)  # it must not end before it is asked, or nobody would notice its death
    late = code_of(apart, tmp_path / "ordinary.html", Limits(seconds=0.2))
    assert late == "timeout"
    assert reads(apart, tmp_path)


def test_a_reader_that_dies_over_a_file_costs_that_file(apart: Apart, tmp_path: Path) -> None:
    assert reads(apart, tmp_path)
    os.kill(worker_of(apart), signal.SIGKILL)
    assert code_of(apart, tmp_path / "ordinary.html") in ("too_big", "crashed")
    assert reads(apart, tmp_path)


def test_a_file_that_unpacks_without_end_runs_out_of_its_memory_alone(apart: Apart, tmp_path: Path) -> None:
    deflated = made.stream(b"(x) Tj " * 70_000_000, filters=2)  # half a gigabyte out of a few kilobytes
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<</Font<</F 4 0 R>>>>/Contents 5 0 R>>"
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", page, font, deflated]
    (tmp_path / "bomb.pdf").write_bytes(made.pdf_of(objects))
    assert (tmp_path / "bomb.pdf").stat().st_size < 100_000
    assert code_of(apart, tmp_path / "bomb.pdf") in ("too_big", "crashed", "no_text")
    assert reads(apart, tmp_path)


def test_a_file_of_endless_pages_is_given_up_in_time(apart: Apart, tmp_path: Path) -> None:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"
    kids = b"<</Type/Pages/Kids[%s]/Count 900000>>" % (b"3 0 R " * 900_000)
    (tmp_path / "pages.pdf").write_bytes(made.pdf_of([b"<</Type/Catalog/Pages 2 0 R>>", kids, page]))
    assert reads(apart, tmp_path)  # so that the start of the process is not counted
    assert code_of(apart, tmp_path / "pages.pdf", Limits(seconds=1)) == "timeout"
    assert reads(apart, tmp_path)


def test_a_large_file_is_refused_unread(apart: Apart, tmp_path: Path) -> None:
    with (tmp_path / "large.pdf").open("wb") as file:
        file.truncate(200_000_001)
    assert code_of(apart, tmp_path / "large.pdf") == "too_big"
    assert apart.pids() == []


def test_more_text_than_allowed_is_refused(apart: Apart, tmp_path: Path) -> None:
    (tmp_path / "long.html").write_text("<p>word " * 1000)
    assert code_of(apart, tmp_path / "long.html", Limits(text_chars=1000)) == "too_big"


def test_several_threads_are_served_by_as_many_processes(apart: Apart, tmp_path: Path) -> None:
    found: list[str] = []
    (tmp_path / "a.html").write_text("<p>one</p>")

    def parse() -> None:
        found.append(apart.parse(tmp_path / "a.html", ".html", LIMITS).text)

    threads = [threading.Thread(target=parse) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["one"] * 3
    assert 1 <= len(apart.pids()) <= 3


def test_a_file_that_is_gone_is_an_error_of_the_disk(apart: Apart, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        apart.parse(tmp_path / "gone.pdf", ".pdf", LIMITS)


@pytest.mark.slow
def test_files_with_bytes_gone_wrong_are_read_or_refused_with_a_code_of_ours(apart: Apart, tmp_path: Path) -> None:
    document = io.BytesIO()
    docx.Document().save(document)
    whole = {
        ".pdf": made.pdf(["Gears need oil."], ["Belts need covers."]),
        ".docx": document.getvalue(),
        ".epub": made.epub({"a.html": "<h1>Pumps</h1><p>P3</p>"}),
        ".eml": b"Subject: Pump\nContent-Type: text/html\n\n<p>late</p>",
        ".ipynb": b'{"cells": [{"cell_type": "code", "source": "x", "outputs": [{"output_type": "stream"}]}]}',
        ".html": b"<table><tr><td>a<td>b<tr><td>c<td>d</table><p>x",
        ".csv": b"a;b\n1;2\n",
        ".vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\nx\n",
    }
    known = {"damaged", "no_text", "encoding", "password_required", "too_big", "too_deep", "crashed"}
    draw, told = random.Random(7), set()
    for ending, content in whole.items():
        for number in range(25):
            torn = bytearray(content[: draw.randrange(1, len(content) + 1)] if number % 5 == 0 else content)
            for _ in range(draw.choice((1, 3, 30))):
                torn[draw.randrange(len(torn))] = draw.randrange(256)
            path = tmp_path / f"{number}{ending}"
            path.write_bytes(torn)
            try:
                apart.parse(path, ending, LIMITS)
            except Refused as refused:
                told.add(refused.code)
    assert told <= known
    assert reads(apart, tmp_path)


def test_a_corpus_of_hostile_files_accounts_for_each_and_keeps_the_good_ones(tmp_path: Path) -> None:
    (tmp_path / "a good.html").write_text("<p>All is well.</p>")
    (tmp_path / "b bomb.docx").write_bytes(made.zipped({"word/document.xml": b"\0" * 300_000_000}))
    (tmp_path / "c deep.json").write_text("[" * 200_000)
    (tmp_path / "d torn.pdf").write_bytes(made.pdf(["x"])[:90])
    (tmp_path / "e torn.xlsx").write_bytes(made.zipped({"a": "b"})[:40])
    (tmp_path / "f other.epub").write_bytes(b"\x89PNG\r\n")
    (tmp_path / "g empty.pdf").write_bytes(b"")
    (tmp_path / "h deep.html").write_text("<div>" * 3000 + "x")
    (tmp_path / "i good.pdf").write_bytes(made.pdf(["All is well."]))
    corpus = Corpus(tmp_path, default_groups=frozenset({"public"}))
    assert [document.doc_id for document in corpus] == ["a good.html", "i good.pdf"]
    assert {outcome.path.split()[0]: outcome.code for outcome in corpus.outcomes} == {
        "a": "ok", "b": "too_big", "c": "damaged", "d": "damaged", "e": "damaged", "f": "damaged", "g": "blank",
        "h": "damaged", "i": "ok",
    }  # fmt: skip
