import json
from dataclasses import replace
from pathlib import Path

import pytest

from domain.errors import BadRequest, CorpusError
from domain.types import Role, Scope, Turn
from eval.questions import Anchor, Question, dump, fingerprint, load, slices, suggestions

EXAMPLE = Question(
    id="q1",
    query="How heavy is the AR-7?",
    answer="9 kilograms",
    type="inference",
    evidence=(Anchor("d1", "The AR-7 weighs 9 kilograms."),),
    hops=1,
    slice="dev",
    persona="visitor",
    tenant="harbour",
    groups=frozenset({"public", "staff"}),
    aliases=("9 kg",),
)
FOLLOW_UP = replace(
    EXAMPLE,
    id="q2",
    query="And its price in Ōmura?",
    history=(Turn(Role.USER, "Tell me of the AR-7."),),
    slice="frozen",
)
NULL = replace(EXAMPLE, id="q3", query="What colour is it?", answer="", type="null", evidence=(), hops=0, aliases=())


def written(tmp_path: Path, *records: object) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


def record(**changes: object) -> dict[str, object]:
    return json.loads(dump([EXAMPLE])) | changes


def test_questions_come_back_from_a_file_as_they_were_written(tmp_path: Path) -> None:
    path = written(tmp_path, dump([EXAMPLE, FOLLOW_UP, NULL]))
    assert load(path) == (EXAMPLE, FOLLOW_UP, NULL)


def test_every_problem_of_a_file_is_told_at_once_with_its_line_and_field(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        record(query=" ", hops=1.5),
        "not json\n",
        "[1]\n",
        record(id="q9", type="guess", slice="train", colour="red"),
        record(id="q8", groups="public", evidence=[{"doc_id": "d1"}], history=[{"role": "judge", "text": "x"}]),
    )
    with pytest.raises(BadRequest) as caught:
        load(path)
    message = str(caught.value)
    for told in (
        ":1 query: must be text, not ' '",
        ":1 hops: must be a whole number from 0, not 1.5",
        ":2 is not JSON",
        ":3 must be an object, not list",
        ":4 type: must be one of inference, comparison, temporal, null, not 'guess'",
        ":4 slice: must be one of dev, frozen, not 'train'",
        ":4 colour: is not known",
        ":5 groups: must be a list of names, not 'public'",
        ":5 evidence[1].text: must be text, not None",
        ":5 history[1].role: must be one of user, assistant, not 'judge'",
    ):
        assert told in message


def test_evidence_may_be_a_whole_document_when_the_file_says_so(tmp_path: Path) -> None:
    (question,) = load(written(tmp_path, record(evidence=[{"doc_id": "d1", "text": ""}])))
    assert question.evidence == (Anchor("d1", ""),)
    with pytest.raises(BadRequest, match=r"evidence\[1\]\.text: must be text, not ' '"):
        load(written(tmp_path, record(evidence=[{"doc_id": "d1", "text": " "}])))


@pytest.mark.parametrize(
    "half",
    [
        {"id": "\udc00"},
        {"query": "a\ud800b"},
        {"groups": ["\ud800"]},
        {"history": [{"role": "user", "text": "\udfff"}]},
    ],
    ids=lambda half: next(iter(half)),
)
def test_half_a_character_is_refused_by_its_field(tmp_path: Path, half: dict[str, object]) -> None:
    with pytest.raises(BadRequest, match=rf":1 {next(iter(half))}: has half a character, which no text can carry"):
        load(written(tmp_path, record(**half)))


def test_a_problem_shows_no_more_than_the_beginning_of_a_long_value(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r":1 hops: must be a whole number from 0, not 'yyy") as caught:
        load(written(tmp_path, record(hops="y" * 100_000)))
    assert len(str(caught.value)) < 1000


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    lacking = record()
    del lacking["persona"]
    with pytest.raises(BadRequest, match=r":1 persona: is missing"):
        load(written(tmp_path, lacking))


def test_an_id_that_occurs_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r":3 id: 'q1' is also on line 1"):
        load(written(tmp_path, record(), record(id="q2"), record()))


@pytest.mark.parametrize(
    "contradiction",
    [{"type": "null"}, {"answer": ""}, {"evidence": []}, {"hops": 0}],
    ids=["null with an answer", "no answer", "no evidence", "no hops"],
)
def test_a_question_that_contradicts_itself_is_refused(tmp_path: Path, contradiction: dict[str, object]) -> None:
    with pytest.raises(BadRequest, match=":1 type: "):
        load(written(tmp_path, record(**contradiction)))


def test_an_empty_question_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="holds no question"):
        load(written(tmp_path, "\n\n"))


def test_a_missing_or_binary_question_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"gone\.jsonl cannot be read: there is no such file\."):
        load(tmp_path / "gone.jsonl")
    (tmp_path / "bad.jsonl").write_bytes(b"\xff\xfe\xc3\x28")
    with pytest.raises(CorpusError, match=r"bad\.jsonl cannot be read"):
        load(tmp_path / "bad.jsonl")


def test_the_fingerprint_ignores_order_and_sees_every_change() -> None:
    before = fingerprint([EXAMPLE, FOLLOW_UP, NULL])
    assert before == fingerprint([NULL, EXAMPLE, FOLLOW_UP])
    changed = [
        replace(EXAMPLE, answer="10 kilograms"),
        replace(EXAMPLE, groups=frozenset({"public"})),
        replace(EXAMPLE, evidence=(Anchor("d2", EXAMPLE.evidence[0].text),)),
    ]
    assert len({before, *(fingerprint([question, FOLLOW_UP, NULL]) for question in changed)}) == 4


def test_slices_tell_the_kind_of_the_first_evidence_or_why_they_cannot() -> None:
    minutes = replace(EXAMPLE, evidence=(Anchor("minutes-0012", "A."), Anchor("report-0001", "B.")), hops=2)
    assert slices(minutes) == {
        "slice": "dev",
        "type": "inference",
        "hops": "2",
        "source": "minutes",
        "persona": "visitor",
        "tenant": "harbour",
    }
    for untold in ("history.md", "h164800daad5b", "0027bff8d2a891ff-41576-43247"):
        assert slices(replace(EXAMPLE, evidence=(Anchor(untold, "A."),)))["source"] == "unknown"
    assert slices(NULL)["source"] == "none"


def test_suggestions_are_answerable_by_the_reader_and_need_no_conversation() -> None:
    secret = replace(EXAMPLE, id="q4", groups=frozenset({"legal"}))
    elsewhere = replace(EXAMPLE, id="q5", tenant="northshore")
    reader = Scope("harbour", frozenset({"public", "staff"}))
    assert suggestions([NULL, FOLLOW_UP, secret, elsewhere, EXAMPLE], reader) == (EXAMPLE,)


# ---------------------------------------------------------------------------------------------- our examples

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_example_questions_load_and_stand_on_sentences_of_the_example_corpus() -> None:
    questions = load(EXAMPLES / "questions.jsonl")
    assert len(questions) == 10
    assert {question.type for question in questions} == {"inference", "comparison", "temporal", "null"}
    for question in questions:
        for anchor in question.evidence:
            text = (EXAMPLES / "corpus" / anchor.doc_id).read_text(encoding="utf-8")
            assert anchor.text in " ".join(text.split())


def test_the_example_corpus_has_a_public_and_a_closed_part() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((EXAMPLES / "corpus").glob("*.md"))]
    assert 5 <= len(texts) <= 8
    assert all(text.startswith("---\n") and "\ntitle: " in text and "\npublished: " in text for text in texts)
    assert {line for text in texts for line in text.splitlines() if line.startswith("groups:")} == {
        "groups: [public]",
        "groups: [staff]",
    }
