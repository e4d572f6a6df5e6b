"""A question set to learn from: dev questions alone, whatever the set looks like, and the passages that answer them."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from domain.errors import CorpusError
from domain.types import Chunk, Role, SourceRef, Turn
from eval.questions import Anchor, Question, dump
from retrieval.pair_sets import folded
from tests.tidegate.tiny import settings, write_corpus
from tidegate.training_sets import from_questions, taken


def chunk(doc_id: str, ordinal: int, text: str) -> Chunk:
    return Chunk(f"{doc_id}#{ordinal}", text, ordinal, "", SourceRef(doc_id, "", "", "", ""), "t", frozenset())


CHUNKS = (
    chunk("crane", 0, "The blue crane was built in 1931."),
    chunk("crane", 1, "It lifts four tonnes of steel."),
    chunk("gate", 0, "The sea gate closes at six metres."),
)


def question(id: str, query: str = "", **more: object) -> Question:
    plain = Question(
        id=id, query=query or f"What is {id}?", answer="four tonnes", type="inference",
        evidence=(Anchor("crane", "It lifts four tonnes"),), hops=1, slice="dev", persona="p", tenant="t",
        groups=frozenset(),
    )  # fmt: skip
    return replace(plain, **more)  # type: ignore[arg-type]


def test_the_passage_that_holds_the_sentence_is_right_and_its_neighbours_are_unclear() -> None:
    (asked,) = taken("set", [question("a")], CHUNKS).training.asked
    assert (asked.right, asked.unclear) == ((1,), (0,))


def test_of_a_document_the_passage_with_most_words_in_common_is_right() -> None:
    whole = question("a", "What does the crane lift, steel?", evidence=(Anchor("crane", ""),))
    (asked,) = taken("set", [whole], CHUNKS).training.asked
    assert (asked.right, asked.unclear) == ((1,), (0,))


def test_no_frozen_question_is_ever_learnt_from() -> None:
    for seed in range(50):
        rng = random.Random(seed)
        questions = [
            question(f"q{i}", f"What about thing {rng.randrange(6)}?", slice=rng.choice(["dev", "frozen", "frozen"]))
            for i in range(12)
        ]
        frozen = {folded(q.query) for q in questions if q.slice == "frozen"}
        try:
            learnt = {folded(asked.question) for asked in taken("set", questions, CHUNKS).training.asked}
        except CorpusError:
            continue
        assert learnt
        assert not learnt & frozen


def test_what_is_left_out_is_counted_by_reason() -> None:
    questions = [
        question("good"),
        question("frozen", slice="frozen"),
        question("null", type="null", evidence=(), answer="", hops=0),
        question("next", history=(Turn(Role.USER, "And the crane?"),)),
        question("lost", evidence=(Anchor("nowhere", ""),)),
        question("twin", "What is FROZEN?"),
    ]
    found = taken("set", questions, CHUNKS)
    assert [asked.question for asked in found.training.asked] == ["What is good?"]
    assert found.left_out == {
        "frozen": 1, "unanswerable": 1, "follow-ups": 1, "not found in the corpus": 1, "same words as a frozen one": 1,
    }  # fmt: skip


def test_a_set_without_dev_questions_is_refused_with_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(dump([question("a", slice="frozen")]), "utf-8")
    with pytest.raises(CorpusError, match="none for training"):
        from_questions(settings(tmp_path / "data"), file, write_corpus(tmp_path / "corpus"))


def test_questions_about_another_library_are_refused_with_counts(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(dump([question("a")]), "utf-8")
    with pytest.raises(CorpusError, match="1 are not found in the corpus"):
        from_questions(settings(tmp_path / "data"), file, write_corpus(tmp_path / "corpus"))
