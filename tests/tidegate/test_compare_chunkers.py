"""`tidegate compare-chunkers`: what it measures, that it leaves nothing behind, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tidegate.tiny import sets
from tidegate.cli import main
from tidegate.console import Code

Capture = pytest.CaptureFixture[str]

PUMP = "The harbour pump in hall {} was oiled by the crew in the spring of {}."


@pytest.fixture
def corpus(here: Path) -> Path:
    folder = here / "corpus"
    folder.mkdir()
    for i in range(4):
        told = "\n\n".join(PUMP.format(10 * i + j, 1990 + 10 * i + j) for j in range(6))
        (folder / f"hall{i}.md").write_text(f"# Hall {i}\n\n{told}\n")
    return folder


@pytest.fixture
def questions(here: Path) -> Path:
    path = here / "questions.jsonl"
    lines = [record(f"q{i}", f"hall{i}.md", PUMP.format(10 * i + 3, 1993 + 10 * i)) for i in range(4)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def record(id: str, doc_id: str, sentence: str, part: str = "dev") -> dict[str, Any]:
    return {
        "id": id, "query": sentence.replace("was oiled", "oiled when"), "answer": "spring", "type": "inference",
        "hops": 1, "slice": part, "persona": "p", "tenant": "harbour", "groups": ["public"], "aliases": [],
        "evidence": [{"doc_id": doc_id, "text": sentence}], "history": [],
    }  # fmt: skip


def run(here: Path, *words: str, **others: str) -> int:
    return main(["compare-chunkers", *words, *sets(here / "data", access__default_groups="public", **others)])


def test_every_strategy_is_measured_beside_the_configured_one(
    here: Path, corpus: Path, questions: Path, capsys: Capture
) -> None:
    assert run(here, str(corpus), "--questions", str(questions), "--json", chunking__tokens="40") == Code.DONE
    told = json.loads(capsys.readouterr().out)
    ways = {way["name"]: way for way in told["strategies"]}
    assert list(ways) == [
        "heading", "fixed", "sentence", "paragraph", "semantic", "contextual", "hierarchical", "whole",
    ]  # fmt: skip
    assert (told["questions"], told["configured"], told["k"]) == (4, "heading", 6)
    assert ways["whole"]["metrics"]["recall@10"]["mean"] == 1.0  # four passages, all of them among ten
    assert ways["whole"]["metrics"]["evidence_recall@6"]["mean"] == 1.0
    assert ways["heading"]["differences"] == dict.fromkeys(ways["heading"]["metrics"])
    assert ways["fixed"]["differences"]["recall@10"]["n"] == 4
    assert (ways["whole"]["chunks"], ways["whole"]["passages"]) == (4, 4)
    assert ways["hierarchical"]["chunks"] > ways["hierarchical"]["passages"] == ways["heading"]["passages"]
    assert ways["heading"]["unresolved"] == {"count": 0, "absent": 0, "sentences": 4}
    assert all(way["storage_bytes"] > 1000 and way["build_s"] > 0 for way in ways.values())


def test_two_runs_give_the_same_numbers_apart_from_seconds(
    here: Path, corpus: Path, questions: Path, capsys: Capture
) -> None:
    told = []
    for _ in range(2):
        assert run(here, str(corpus), "--questions", str(questions), "--strategies", "fixed,semantic", "--json") == 0
        told.append(json.loads(capsys.readouterr().out))
        for way in told[-1]["strategies"]:
            del way["build_s"]
    assert told[0] == told[1]


def test_nothing_is_published_and_nothing_is_left(here: Path, corpus: Path, questions: Path, capsys: Capture) -> None:
    before = set(here.rglob("*"))
    assert run(here, str(corpus), "--questions", str(questions), "--strategies", "fixed") == 0
    assert "heading" in capsys.readouterr().out  # the configured one, without being named
    assert set(here.rglob("*")) == before


def test_windows_that_cut_sentences_leave_gold_unresolved(
    here: Path, corpus: Path, questions: Path, capsys: Capture
) -> None:
    told = run(here, str(corpus), "--questions", str(questions), "--strategies", "fixed", chunking__tokens="9")
    out = capsys.readouterr().out
    assert told == 0
    # A sentence has 17 tokens.
    assert next(line.split("   ")[-1] for line in out.splitlines() if line.startswith("  fixed")) == "4 of 4"


def test_the_sample_library_is_measured_when_no_corpus_is_named(here: Path, capsys: Capture) -> None:
    small = {"sample__documents": "100", "sample__questions": "60", "evaluation__questions": "5"}
    assert run(here, "--strategies", "heading", **small) == 0
    out, err = capsys.readouterr()
    assert out.startswith("5 questions with gold evidence (slice dev)")
    assert "heading: searching" in err
    assert not (here / "data").exists()


def test_a_collection_brings_its_questions_and_no_sentences(here: Path, capsys: Capture) -> None:
    folder = here / "collection"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "The gate closes at six metres."}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "When does the gate close?"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    assert run(here, str(folder), "--strategies", "heading", "--slice", "all") == 0
    out = capsys.readouterr().out
    assert "not measured: the gold names documents, not sentences" in out
    assert "evidence_recall" not in out
    assert "recall@10\n  heading       1.0000" in out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["--strategies", "clever,fixed,brave"],
            Code.USAGE,
            "strategy 'clever' or 'brave': there are fixed",
        ),
        (["CORPUS"], Code.USAGE, "No questions are known for"),
        (["CORPUS", "--questions", "none.jsonl"], Code.REFUSED, "none.jsonl cannot be read"),
        (["nowhere"], Code.REFUSED, "Corpus nowhere does not exist"),
        (["CORPUS", "--questions", "QUESTIONS", "--slice", "frozen"], Code.USAGE, "none in slice frozen: --slice all"),
        (["CORPUS", "--questions", "QUESTIONS", "--slice", "best"], Code.USAGE, "no slice 'best': dev, frozen or all"),
        (["CORPUS", "--questions", "NULLS"], Code.USAGE, "None of the 1 questions of"),
        (["CORPUS", "--questions", "FOREIGN"], Code.USAGE, "about another library"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_name(
    here: Path, corpus: Path, questions: Path, capsys: Capture, words: list[str], code: Code, said: str
) -> None:
    null = record("n", "", "x") | {"type": "null", "answer": "", "hops": 0, "evidence": []}
    (here / "nulls.jsonl").write_text(json.dumps(null) + "\n")
    (here / "foreign.jsonl").write_text(json.dumps(record("f", "elsewhere.md", "It runs.")) + "\n")
    places = {
        "CORPUS": str(corpus), "QUESTIONS": str(questions), "NULLS": str(here / "nulls.jsonl"),
        "FOREIGN": str(here / "foreign.jsonl"),
    }  # fmt: skip
    assert run(here, *(places.get(word, word) for word in words)) == code
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_library_that_nobody_who_asks_may_read_is_refused(
    here: Path, corpus: Path, questions: Path, capsys: Capture
) -> None:
    asked = questions.read_text().replace('"public"', '"staff"')
    questions.write_text(asked)
    assert run(here, str(corpus), "--questions", str(questions)) == Code.USAGE
    assert "may be read by those who ask, of tenant" in capsys.readouterr().err


def test_gold_of_documents_that_are_not_there_is_told(
    here: Path, corpus: Path, questions: Path, capsys: Capture
) -> None:
    with questions.open("a") as more:
        more.write(json.dumps(record("f", "elsewhere.md", "It runs.")) + "\n")
    assert run(here, str(corpus), "--questions", str(questions), "--strategies", "heading") == 0
    out, err = capsys.readouterr()
    assert "1 of 5 documents of the gold evidence are not in" in err
    assert "1 of 5, 1 of documents that are not there" in out
