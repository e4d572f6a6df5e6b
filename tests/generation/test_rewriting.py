"""The rules of follow-ups and the checks on anybody's rewrite."""

import pytest

from domain.types import Query, Rewrite, RewriteStatus, Turn
from generation.rewriting import RulesRewriter, accept, standalone, with_keywords
from tests.generation.evidence import assistant, user

P3 = (user("What is the limit of pump P3?"), assistant("40 bar [S1]."))


@pytest.mark.parametrize(
    ("question", "history", "alone"),
    [
        ("and its oil?", P3, "pump P3 oil?"),
        ("When was it installed?", P3, "When was pump P3 installed?"),
        ("oil grade?", P3, "oil grade pump P3?"),
        ("What about P4?", P3, "P4 limit pump?"),
        ("and its CEO?", (user("How much did Northwind Robotics earn?"),), "Northwind Robotics CEO?"),
        ("who made it?", (user("What is pump P3?"), user("and its oil?")), "who made pump P3?"),
        ("它的油呢？", (user("P3泵的冷却液是什么？"),), "P3的油呢？"),
    ],
)
def test_a_follow_up_gets_the_subject_it_leaves_unsaid(question: str, history: tuple[Turn, ...], alone: str) -> None:
    assert standalone(question, history) == alone


@pytest.mark.parametrize("question", ["Who runs Northwind Robotics?", "ERR_CONN_RESET", "What oil does pump P9 need?"])
def test_a_question_with_a_subject_of_its_own_stays_as_it_is(question: str) -> None:
    assert standalone(question, P3) == question


def test_a_subject_that_nobody_named_is_not_made_up() -> None:
    assert standalone("is it theirs?", (user("hello there"),)) == "is it theirs?"


async def test_the_rules_say_what_became_of_the_question() -> None:
    rules = RulesRewriter()
    assert (await rules.rewrite("and its oil?", ())).status is RewriteStatus.NOT_NEEDED
    assert (await rules.rewrite("and its oil?", P3)).status is RewriteStatus.USED
    assert (await rules.rewrite("What oil does pump P9 need?", P3)).status is RewriteStatus.UNCHANGED


def test_a_paraphrase_holds_the_keywords_and_identifiers_in_parts() -> None:
    assert with_keywords(Query("Which filter does AR-7 need?")).variants == ("filter AR-7 AR 7",)
    assert with_keywords(Query("filter AR-7 AR 7")) == Query("filter AR-7 AR 7")
    assert with_keywords(Query("what is it?")) == Query("what is it?")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("I'm sorry, I can't help with that.", "refused"),
        ("Sure! Here is your new question:\n\nwhat is the oil grade", "wrapped"),
        ('{"rewrite": ', "plain text"),
        ("Pump P3 runs on ISO 46 oil.", "statement"),
        ("x " * 5000, "characters"),
        ("What is the capital of oil in Norway?", "nobody spoke of"),
        ("how do cats sleep", "something else"),
        ("What is the limit of pump P3?", "something else"),  # lost the oil
    ],
)
def test_nonsense_leaves_the_question_and_says_why(raw: str, reason: str) -> None:
    rewrite = accept("and its oil?", P3, raw)
    assert (rewrite.query, rewrite.status) == (Query("and its oil?"), RewriteStatus.FALLBACK)
    assert reason in rewrite.reason


@pytest.mark.parametrize(
    "raw",
    ['"what oil does pump P3 need?"', "“what oil does pump P3 need?”", '{"query": "what oil does pump P3 need?"}'],
)
def test_quotes_and_a_lone_json_string_are_taken_off(raw: str) -> None:
    assert accept("and its oil?", P3, raw) == Rewrite(Query("what oil does pump P3 need?"), RewriteStatus.USED)


def test_identifiers_of_the_question_survive_a_rewrite() -> None:
    rewrite = accept("and its reset, ERR_CONN_RESET?", P3, "what is the reset of pump P3?")
    assert rewrite.query.text == "what is the reset of pump P3? ERR_CONN_RESET"


def test_repeating_the_question_is_no_rewrite() -> None:
    assert accept("What oil?", P3, "what oil?").status is RewriteStatus.UNCHANGED
