"""The roles of a question's terms."""

import pytest

from generation.asking import asked, innermost


def test_subjects_qualifiers_and_words_are_told_apart() -> None:
    wanted = asked("How heavy was pump P3 in 2023?")
    assert [term.shown for term in wanted.subjects] == ["P3"]
    assert [term.shown for term in wanted.qualifiers] == ["2023"]
    assert [term.shown for term in wanted.words] == ["heavy"]  # "pump" only labels P3


@pytest.mark.parametrize(
    ("question", "fact", "other"),
    [
        ("When was it opened?", "It was opened on 3 May.", "It was opened by the mayor."),
        ("How heavy is it?", "It comes to 505 kilograms.", "It comes in 505 colours."),
        ("How long did it last?", "It lasted 12 minutes.", "It lasted."),
        ("How many are there?", "There are 12.", "There are several."),
        ("Who runs it?", "It is run by Ada Holm.", "It is run well."),
        ("Why did it fail?", "It failed because of dust.", "It failed."),
        ("主阀门什么时候关闭？", "2024年关闭。", "已经关闭。"),
    ],
)
def test_the_question_word_says_what_kind_of_fact_is_wanted(question: str, fact: str, other: str) -> None:
    wanted = asked(question)
    assert wanted.cue is not None
    assert wanted.cue.met(fact, wanted.known)
    assert not wanted.cue.met(other, wanted.known)


def test_a_name_in_the_question_does_not_answer_who() -> None:
    wanted = asked("Who runs the company Northwind?")
    assert wanted.cue is not None
    assert not wanted.cue.met("The company Northwind is run well.", wanted.known)


def test_now_prefers_the_newer_and_originally_the_older_source() -> None:
    assert asked("What is the current price?").freshness > asked("What is the price?").freshness > 0
    assert asked("What was the original price?").freshness < 0


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        ("Who runs the operator of the site hit by E7?", "the site hit by E7"),
        ("How deep is the water at the site where E7 occurred in May?", "the site where E7 occurred"),
        ("When was the maker of the E7 founded?", "the maker of the E7"),
        ("How heavy is the E7?", ""),
        ("Who makes E7?", ""),
    ],
)
def test_the_innermost_phrase_is_what_leads_to_the_subject_first(question: str, phrase: str) -> None:
    assert innermost(question, asked(question).subjects[0]) == phrase
