"""The rules of follow-ups and the checks on anybody's rewrite."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.answering import answer, outcome
from domain.naming import Naming
from domain.ports import Stages
from domain.types import Done, Query, Rewrite, RewriteStatus, Session, Turn
from generation.rewriting import RulesRewriter, accept, standalone, with_keywords
from generation.terms import Kind, terms
from tests.fakes import RULES, FakeRetriever, FakeRewriter, ScriptedGenerator, ask, chunk, hits
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


# ---------------------------------------------------------------------------------------------- whatever a model says

OIL = "and its oil?"
PLAYED = {  # what the rewriter said -> what is searched for
    "": OIL,
    "   ": OIL,
    "\u200b\u2060": OIL,
    "I'm sorry, I can't help with that.": OIL,
    "Sure! Here is the rewritten query:\n\nwhat is the oil grade": OIL,
    '{"rewrite": ': OIL,
    '{"a":' * 5000: OIL,
    '{"query": "what oil \\ud800 does pump P3 need?"}': OIL,
    "what oil\x00 does pump P3 need?": OIL,
    "**what oil does pump P3 need?**": OIL,
    "The oil grade for pump P3 is ISO 46.": OIL,
    '"what oil does pump P3 need?"': "what oil does pump P3 need?",
    "x " * 5000: OIL,
}


@pytest.mark.parametrize("said", PLAYED, ids=lambda said: repr(said[:24]))
async def test_whatever_a_rewriter_says_the_answer_is_found_with_a_sound_query_and_is_not_what_it_said(
    said: str,
) -> None:
    class Playing(FakeRewriter):
        async def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
            return accept(question, history, said)

    retriever = FakeRetriever(hits(chunk("pump#0", "Pump P3 takes oil of grade 46.")))
    stages = Stages(Playing(), retriever, None, ScriptedGenerator())
    end = await outcome(answer(ask(OIL, session=Session("s1", P3)), stages, RULES, Naming(())))
    assert isinstance(end, Done)
    reply = end.answer
    assert (retriever.asked[0][0].text, reply.rewrite.query.text) == (PLAYED[said], PLAYED[said])
    assert reply.rewrite.status is (RewriteStatus.FALLBACK if PLAYED[said] == OIL else RewriteStatus.USED)
    assert bool(reply.rewrite.reason) == (reply.rewrite.status is RewriteStatus.FALLBACK)
    assert reply.text == "It is so [S1]."


IDENTIFIERS = st.from_regex(
    r"(?:[A-Z]{2,5}[-_][0-9]{1,4}|ERR_[A-Z]{3,8}|[a-z]{2,4}\.[a-z0-9]{1,3}[0-9]|v[0-9]\.[0-9]{1,2})", fullmatch=True
)
AROUND = st.sampled_from(
    [
        "what about {}?",
        "and {}?",
        "it and {}?",
        "{} is it broken?",
        "So {}",
        "does it need {}",
        "why {}?",
        "{}",
        "他的{}？",
    ]
)


def _named(text: str) -> set[str]:
    return {key for term in terms(text) if term.kind is Kind.IDENTIFIER for key in term.keys}


@pytest.mark.slow
@given(identifier=IDENTIFIERS | st.sampled_from(["IT-7", "so.py3", "or_1", "HE-12", "it.x9", "P3"]), around=AROUND)
@settings(deadline=None, max_examples=150)
def test_every_identifier_of_a_question_is_in_what_is_searched_for(identifier: str, around: str) -> None:
    question = around.format(identifier)
    for history in (P3, (user("hello"), assistant("Ada Holm runs Northwind [S1].")), ()):
        assert _named(question) <= _named(standalone(question, history))
        for said in ("what is the limit of pump P3?", identifier.lower(), question, "who runs Northwind?", ""):
            assert _named(question) <= _named(accept(question, history, said).query.text)


def test_a_part_of_an_identifier_is_no_pronoun_and_no_continuation() -> None:
    assert standalone("and IT-7?", P3) == "IT-7 limit pump?"
    assert "SO-7" in standalone("SO-7 oil?", P3)


def test_where_no_question_named_anything_the_replies_are_read() -> None:
    history = (user("where was he born?"), assistant("Kurt Vonnegut was born in Indianapolis [S1]."))
    alone = standalone("who were his parents?", history)
    assert "Kurt Vonnegut" in alone
    assert "Indianapolis" in alone
    assert alone.startswith("who were")
    assert "S1" not in alone
