"""Files as people have them, some broken or locked on purpose: each has the outcome a person would expect.

tables.docx, comments.docx, sample.pptx, book.epub, ...       indexed; comments of reviewers are left out, and said so
multicolumn.pdf, korean-with-tables.pdf, paper-page-...        indexed, page by page
corrupted.pdf                                                 indexed: PDFium mends its structure and loses no line
scanned-ocr.pdf                                               failed, no_text: OCR is off
encrypted-aes256-user-password.pdf                            failed, password_required
win-1252.txt                                                  indexed with a warning that names the encoding
empty.txt                                                     skipped, blank
one-line-395k.txt                                             skipped, encoded: a data: URL is nothing to read
"""

import json
import os
from pathlib import Path

import pytest

from domain.ingestion import FileStatus, counted
from retrieval.documents import Corpus
from retrieval.outcomes import OutcomeFiles
from tests.tidegate.tiny import sets
from tidegate.cli import main
from tidegate.console import Code

pytestmark = pytest.mark.data

INDEXED = """
SOURCE.md attachments.eml book.epub corrupted.pdf korean-with-tables.pdf long-lines.csv multicolumn.pdf nested-lists.md
noisy-meta-charset.html paper-page-with-table.pdf rag-langchain.ipynb sample.pptx semicolon.csv tables.docx utf-16.eml
utf-16.txt wiki.md wikipedia-duck.html
"""
OUTCOMES = {
    **dict.fromkeys(INDEXED.split(), ("indexed", "ok")),
    "comments.docx": ("warning", "remarks"),
    "win-1252.txt": ("warning", "remarks"),
    "empty.txt": ("skipped", "blank"),
    "one-line-395k.txt": ("skipped", "encoded"),
    "scanned-ocr.pdf": ("failed", "no_text"),
    "encrypted-aes256-user-password.pdf": ("failed", "password_required"),
}
QUESTIONS = [  # question, file, where in it, what the answer must say
    ("On which machine were inference timing results obtained?", "paper-page-with-table.pdf", "page 1", "EPYC 7763"),
    ("What does the second paragraph also have?", "comments.docx", "paragraph", "reviewer annotation"),
    ("What do the notes on the second slide say?", "sample.pptx", "slide", "notes on the second slide"),
    ("What is the text for chapter two?", "book.epub", "part", "text for chapter Two"),
    ("What is this test email to use for?", "utf-16.eml", "part 1", "unit tests"),
]


@pytest.fixture(scope="module")
def files() -> Path:
    folder = os.environ.get("TIDEGATE_DATA")
    if not folder:
        pytest.skip("TIDEGATE_DATA does not name the folder of the public collections")
    return Path(folder) / "files"


@pytest.fixture(scope="module")
def built(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a version of all files."""
    data_dir = tmp_path_factory.mktemp("files") / "data"
    assert main(["build", str(files), *sets(data_dir)]) == Code.PARTIAL
    return data_dir


def test_every_file_has_the_outcome_a_person_would_expect(files: Path, built: Path) -> None:
    reports = OutcomeFiles(built / "outcomes")
    ((version, _),) = reports.folders().items()
    outcomes = reports.read(version) or ()
    assert {outcome.path: (outcome.status.value, outcome.code) for outcome in outcomes} == OUTCOMES
    counts = counted(outcomes)
    assert counts.total == len(list(files.iterdir()))
    assert (counts.skipped, counts.failed, counts.records) == (2, 2, 0)


def test_reasons_hold_no_trace_and_no_password(built: Path) -> None:
    report = next((built / "outcomes").glob("*/report.jsonl")).read_text()
    assert "Traceback" not in report
    assert "foo" not in report


@pytest.mark.parametrize(("question", "name", "place", "said"), QUESTIONS, ids=[q[1] for q in QUESTIONS])
def test_a_question_is_answered_from_the_file_that_knows_citing_its_place(
    built: Path, capsys: pytest.CaptureFixture[str], question: str, name: str, place: str, said: str
) -> None:
    ((version, _),) = OutcomeFiles(built / "outcomes").folders().items()
    arguments = sets(built, access__groups='["public"]')
    assert main(["ask", question, "--json", "--version", version, *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    cited = {(citation["doc_id"], citation["place"]) for citation in told["citations"]}
    assert said in told["answer"]
    assert any(doc_id == name and where.startswith((place, f"{place}s")) for doc_id, where in cited)


def test_no_garbage_is_indexed(files: Path) -> None:
    documents = {document.doc_id: document.text for document in Corpus(files, default_groups=frozenset({"public"}))}
    assert "mso-style" not in documents["noisy-meta-charset.html"]
    assert "Jump to content" not in documents["wikipedia-duck.html"]
    assert "Personal tools" not in documents["wikipedia-duck.html"]
    assert not any("\ufffd" in text for text in documents.values())
    assert sum("\ufffe" in text for text in documents.values()) == 0


def test_text_is_read_in_the_order_in_which_people_read_it(files: Path) -> None:
    documents = {document.doc_id: document for document in Corpus(files)}
    columns = documents["multicolumn.pdf"]
    assert "consectetuer adipiscing elit. Ut purus elit, vestibulum ut" in columns.text
    assert [mark.name for mark in columns.marks] == ["page 1", "page 2", "page 3"]
    assert "6 6 OTSL 0.965 0.934 0.955 0.88 2.73" in documents["paper-page-with-table.pdf"].text
    assert "Company: Dominguez;Mcmillan and Donovan" in documents["semicolon.csv"].text
    assert "الاتحاد الجزائري" in documents["noisy-meta-charset.html"].text
    assert "이마트, 이마트 트레이더스, 롯데마트, 홈플러스" in documents["korean-with-tables.pdf"].text
    assert "Namespaces are one honking great idea" in documents["corrupted.pdf"].text


def test_reading_twice_gives_the_same(files: Path) -> None:
    corpus = Corpus(files)
    first, outcomes = list(corpus), list(corpus.outcomes)
    assert (list(corpus), corpus.outcomes) == (first, outcomes)
    assert FileStatus.FAILED in {outcome.status for outcome in outcomes}
