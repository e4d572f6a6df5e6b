"""Collections in BEIR's layout: texts, judgements, and the questions they make."""

import gzip
import json
import os
from pathlib import Path

import pytest

from domain.errors import CorpusError
from domain.types import Role, Scope, Turn
from eval.collection import load_beir, load_beir_questions, load_questions
from eval.metrics import metrics
from eval.observed import Observed
from eval.questions import Anchor, Question, dump, load
from tests.eval.replies import QUESTION, passage, quoting

READER = Scope("harbour", frozenset({"public"}))


def beir(folder: Path, *splits: str) -> Path:
    (folder / "qrels").mkdir(parents=True)
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": "old"}\n', encoding="utf-8")
    for split in splits:
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\t2\n1\td2\t0\n", "utf-8")
    return folder


def test_the_only_split_is_read_without_naming_it(tmp_path: Path) -> None:
    assert load_beir(beir(tmp_path, "dev")) == ({"1": "old"}, {"1": {"d1": 2, "d2": 0}})


def test_two_splits_need_a_choice_and_an_unknown_one_is_refused_with_those_there_are(tmp_path: Path) -> None:
    folder = beir(tmp_path, "dev", "test")
    with pytest.raises(CorpusError, match=r"2 splits \(dev, test\): choose one with --split"):
        load_beir(folder)
    with pytest.raises(CorpusError, match=r"no split 'train', there are: dev, test"):
        load_beir(folder, "train")
    assert load_beir(folder, "test")[1] == {"1": {"d1": 2, "d2": 0}}


def test_a_folder_without_judgements_says_so(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"0 splits \(none\): name a folder in BEIR's layout"):
        load_beir(tmp_path)


def test_a_folder_that_is_not_there_is_told_as_that(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"nope is not there, or is no folder"):
        load_beir(tmp_path / "nope")


def test_another_query_file_or_a_compressed_one_can_be_read(tmp_path: Path) -> None:
    folder = beir(tmp_path, "dev")
    (folder / "queries.rewrite.jsonl").write_text('{"_id": "1", "text": "new"}\n', encoding="utf-8")
    assert load_beir(folder, None, "queries.rewrite.jsonl")[0] == {"1": "new"}
    (folder / "queries.jsonl").unlink()
    with gzip.open(folder / "queries.jsonl.gz", "wt", encoding="utf-8") as lines:
        lines.write('{"_id": "1", "text": "größer"}\n')
    assert load_beir(folder)[0] == {"1": "größer"}
    with pytest.raises(
        CorpusError, match=r"has no other\.jsonl, there is: queries\.jsonl\.gz, queries\.rewrite\.jsonl"
    ):
        load_beir(folder, None, "other.jsonl")


def test_broken_lines_of_queries_and_judgements_are_numbered(tmp_path: Path) -> None:
    folder = beir(tmp_path, "dev")
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\n1\td1\tmuch\n1\td1\t1\n", "utf-8")
    with pytest.raises(CorpusError, match=r"dev\.tsv needs .* not found on line 2, line 3"):
        load_beir(folder)
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": "a"}\n{"id": 2}\n', encoding="utf-8")
    with pytest.raises(CorpusError, match=r"queries\.jsonl needs .*: line 2 \(no _id and no text\)"):
        load_beir(folder)


@pytest.mark.parametrize("grade", ["", "1.5", "--5", "NaN", "1e3", "\u0661", "9" * 5000], ids=lambda grade: grade[:9])
def test_a_grade_that_is_no_plain_whole_number_is_numbered(tmp_path: Path, grade: str) -> None:
    folder = beir(tmp_path, "dev")
    (folder / "qrels" / "dev.tsv").write_text(f"query-id\tcorpus-id\tscore\n1\td1\t-1\n1\td1\t{grade}\n", "utf-8")
    with pytest.raises(CorpusError, match=r"dev\.tsv needs .* not found on line 3\.$"):
        load_beir(folder)


# ---------------------------------------------------------------------------------------------- questions


def collection(folder: Path, queries: list[dict[str, object]], **splits: str) -> Path:
    """A folder whose splits are written as `query document grade` triples."""
    (folder / "qrels").mkdir(parents=True)
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries), encoding="utf-8")
    for name, rows in splits.items():
        lines = ["query-id corpus-id score", *(row.strip() for row in rows.split(","))]
        text = "".join("\t".join(line.split()) + "\n" for line in lines)
        (folder / "qrels" / f"{name}.tsv").write_text(text, encoding="utf-8")
    return folder


HOPS: dict[str, object] = {
    "_id": "q1",
    "text": "Which crane is older?",
    "answers": ["the blue crane", "blue"],
    "metadata": {"answerable": True, "type": "comparison"},
}
NULL: dict[str, object] = {"_id": "q2", "text": "Who painted it?", "metadata": {"answerable": False}}


def test_a_query_with_relevant_documents_is_a_question_about_whole_documents(tmp_path: Path) -> None:
    folder = collection(tmp_path, [HOPS, NULL], test="q1 d1 1, q1 d2 2, q1 d3 0")
    first, second = load_beir_questions(folder, READER)
    assert first == Question(
        id="q1",
        query="Which crane is older?",
        answer="the blue crane",
        type="comparison",
        evidence=(Anchor("d1", ""), Anchor("d2", "")),
        hops=2,
        slice="frozen",
        persona="anonymous",
        tenant="harbour",
        groups=frozenset({"public"}),
        aliases=("blue",),
    )
    assert (second.type, second.answer, second.evidence, second.hops) == ("null", "", (), 0)


def test_a_query_nobody_judged_is_no_question(tmp_path: Path) -> None:
    stray: dict[str, object] = {"_id": "q3", "text": "When?", "answers": ["at nine"]}
    unmarked: dict[str, object] = {"_id": "q4", "text": "Where?"}
    folder = collection(tmp_path, [HOPS, stray, unmarked], test="q1 d1 1, q4 d1 0")
    assert [question.id for question in load_beir_questions(folder, READER)] == ["q1"]


def test_dev_is_open_to_tuning_only_where_there_is_something_else(tmp_path: Path) -> None:
    other = HOPS | {"_id": "q5"}
    folder = collection(tmp_path / "two", [HOPS, other], dev="q1 d1 1", test="q5 d1 1")
    assert [(q.id, q.slice) for q in load_beir_questions(folder, READER)] == [("q1", "dev"), ("q5", "frozen")]
    alone = collection(tmp_path / "one", [HOPS], dev="q1 d1 1")
    assert [q.slice for q in load_beir_questions(alone, READER)] == ["frozen"]


def test_a_folder_without_judgements_is_no_question_set(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"has no judgements in qrels/\*\.tsv"):
        load_beir_questions(collection(tmp_path, [HOPS]), READER)


def test_answers_that_no_text_can_be_searched_for_are_left_out(tmp_path: Path) -> None:
    for answers in (
        ["yes"],
        ["No"],
        ["The crane was built before the war, and it was painted blue by somebody only much later on."],
    ):
        folder = collection(tmp_path / str(len(answers[0])), [HOPS | {"answers": answers}], test="q1 d1 1")
        (question,) = load_beir_questions(folder, READER)
        assert (question.answer, question.aliases) == ("", ()), answers


def test_the_turns_before_a_follow_up_come_along(tmp_path: Path) -> None:
    turns = [{"speaker": "user", "text": "Tell me of cranes."}, {"speaker": "agent", "text": "There are two."}]
    folder = collection(tmp_path, [HOPS | {"metadata": {"history": turns}}], test="q1 d1 1")
    (question,) = load_beir_questions(folder, READER)
    assert question.history == (Turn(Role.USER, "Tell me of cranes."), Turn(Role.ASSISTANT, "There are two."))


def test_every_broken_query_is_told_with_its_line(tmp_path: Path) -> None:
    broken: list[dict[str, object]] = [
        HOPS,
        {"_id": "q2", "text": " "},
        HOPS | {"_id": "q3", "answers": "blue"},
        HOPS | {"_id": "q4", "metadata": []},
        HOPS | {"_id": "q5", "metadata": {"history": [{"speaker": "user"}]}},
        HOPS,
        {"_id": "q7", "text": "half \ud800"},
    ]
    with pytest.raises(CorpusError) as caught:
        load_beir_questions(collection(tmp_path, broken, test="q1 d1 1"), READER)
    for told in (
        "line 2 (no text)",
        "line 3 (answers is no list of texts)",
        "line 4 (metadata is no object)",
        "line 5 (history is no list of turns with speaker and text)",
        "line 6 (_id 'q1' again)",
        "line 7 (half a character in text)",
    ):
        assert told in str(caught.value)


def test_judgements_of_queries_without_a_text_are_refused_rather_than_dropped(tmp_path: Path) -> None:
    folder = collection(tmp_path, [HOPS], test="q1 d1 1, q8 d1 1, q9 d1 1")
    with pytest.raises(CorpusError, match=r"judges 2 queries that have no text in queries\.jsonl, as q8, q9"):
        load_beir_questions(folder, READER)


def test_a_collection_without_a_question_says_so(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="has no question"):
        load_beir_questions(collection(tmp_path, [HOPS], test="q1 d1 0"), READER)


def test_a_file_and_a_folder_are_both_question_sets(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(dump([QUESTION]), encoding="utf-8")
    assert load_questions(path, READER) == load(path) == (QUESTION,)
    folder = collection(tmp_path / "beir", [HOPS], test="q1 d1 1")
    assert load_questions(folder, READER) == load_beir_questions(folder, READER)


def test_any_passage_of_a_gold_document_counts(tmp_path: Path) -> None:
    (question,) = load_beir_questions(collection(tmp_path, [HOPS], test="q1 d1 1, q1 d2 1"), READER)
    reply = quoting(passage("d1", "The blue crane was built in 1911."), passage("d9", "The other one is green."))
    # One of two gold documents consulted and cited; one of two citations is of a gold document.
    for name, expected in (
        ("evidence_recall@6", 0.5),
        ("full_chain_recall@6", 0.0),
        ("citation_recall", 0.5),
        ("citation_precision", 0.5),
        ("answer_correctness", 1.0),
    ):
        assert metrics((name,))[name](Observed(question, reply)) == expected, name


# ---------------------------------------------------------------------------------------------- public collections


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "questions", "null", "frozen"),
    [
        ("hotpotqa-mini", 543, 0, 343),
        ("clapnq-dev", 600, 300, 600),
        ("cmrc2018-dev", 3219, 0, 3219),
        ("mtrag-human-subset", 450, 21, 450),
        ("canard-dev", 2940, 443, 2940),
    ],
)
def test_public_collections_become_questions(name: str, questions: int, null: int, frozen: int) -> None:
    collections = os.environ.get("TIDEGATE_DATA")
    if not collections:
        pytest.skip("TIDEGATE_DATA does not name the folder of the public collections")
    loaded = load_questions(Path(collections) / "data" / name, READER)
    assert len(loaded) == questions
    assert sum(question.type == "null" for question in loaded) == null
    assert sum(question.slice == "frozen" for question in loaded) == frozen
