"""Citations of small answers: what holds, what counts, and what a changed digit does to both."""

from dataclasses import replace
from typing import Any

import pytest

from eval.client import Failure
from eval.metrics import metrics
from eval.observed import Observed
from eval.questions import Question
from tests.eval.replies import BELL, QUESTION, TIDE, answer, passage, quoting

NULL = replace(QUESTION, answer="", type="null", evidence=(), hops=0, aliases=())
CRANE = passage("d3", "The crane lifts 9 kilograms. It was built on 3 March 1911 by Ostler.", "S1", "Crane VX-33")


def value(name: str, question: Question, response: Any) -> float | None:
    return metrics((name,))[name](Observed(question, response))


def sentences(response: Any, question: Question = QUESTION) -> tuple[float | None, float | None]:
    """Sentence citation precision and recall."""
    return value("sentence_citation_precision", question, response), value(
        "sentence_citation_recall", question, response
    )


def told(text: str, *cited: dict[str, str]) -> dict[str, Any]:
    return answer(cited=cited or [CRANE], text=text)


# ---------------------------------------------------------------------------------------------- against gold evidence


def test_citation_recall_is_the_share_of_gold_sentences_that_are_cited() -> None:
    assert value("citation_recall", QUESTION, quoting(passage("d1", TIDE.text))) == 0.5
    assert value("citation_recall", QUESTION, answer()) == 0


def test_a_citation_holds_when_its_passage_has_a_gold_sentence() -> None:
    right, wrong = passage("d2", f"Listen. {BELL.text}"), passage("d3", BELL.text)
    assert value("citation_precision", QUESTION, quoting(right)) == 1, "an intermediate fact holds as well"
    assert value("citation_precision", QUESTION, quoting(right, wrong, wrong)) == pytest.approx(1 / 3)


def test_naming_the_answer_does_not_make_a_citation_hold() -> None:
    # In "which is heavier, A or B" the answer stands in every passage about A.
    assert value("citation_precision", QUESTION, quoting(passage("d1", "The crane of 9 kilograms was green."))) == 0


def test_every_citation_on_a_null_question_is_wrong_and_none_is_not_eligible() -> None:
    assert value("citation_precision", NULL, quoting(passage("d1", TIDE.text))) == 0
    assert value("citation_precision", NULL, answer(status="no_sources")) is None
    assert value("citation_precision", QUESTION, answer(text="Perhaps.")) is None


def test_a_gold_passage_cited_for_something_it_does_not_say_does_not_hold() -> None:
    gold = passage("d1", TIDE.text)
    for wrong in ("High water is at ten [S1].", "The lamp is lit by gas [S1]."):
        reply = answer(cited=[gold], text=wrong)
        assert value("citation_precision", QUESTION, reply) == 0, wrong
        assert value("citation_recall", QUESTION, reply) == 0, wrong


# ---------------------------------------------------------------------------------------------- sentence by sentence


def test_a_quoted_sentence_is_supported_and_a_changed_one_is_not() -> None:
    assert sentences(told("The crane lifts 9 kilograms [S1].")) == (1, 1)
    assert sentences(told("The VX-33 was built on 1911-03-03 by Ostler [S1].")) == (1, 1), "the title is cited as well"
    for wrong in ("The crane lifts 7 kilograms [S1].", "The VX-35 was built by Ostler [S1].", "It was blue [S1]."):
        assert sentences(told(wrong)) == (0, 0), wrong


def test_precision_is_a_share_of_citations_and_recall_a_share_of_sentences() -> None:
    # Three sentences: cited well, cited with a wrong number, not cited. Precision 1/2, recall 1/3.
    reply = told("The crane lifts 9 kilograms [S1]. It was built by Ostler in 1912 [S1]. Nobody uses it.")
    assert sentences(reply) == pytest.approx((1 / 2, 1 / 3))


def test_passages_that_support_a_sentence_only_together_all_hold_and_an_idle_one_does_not() -> None:
    first, second = passage("d1", "The bell weighs 40 kilograms."), passage("d2", "The lamp weighs 12 kilograms.", "S2")
    idle = passage("d3", "The harbour has 21 berths.", "S3")
    both = "The bell weighs 40 kilograms and the lamp weighs 12 kilograms"
    assert sentences(told(f"{both} [S1][S2].", first, second)) == (1, 1)
    assert sentences(told(f"{both} [S1][S2][S3].", first, second, idle)) == pytest.approx((2 / 3, 1))
    assert sentences(told(f"{both} [S1].", first)) == (0, 0)


def test_a_second_source_that_says_the_same_holds_too() -> None:
    again = passage("d8", "Nine kilograms is what the crane lifts.", "S2")
    assert sentences(told("The crane lifts 9 kilograms [S1][S2].", CRANE, again)) == (1, 1)


def test_sentences_that_claim_nothing_need_no_citation() -> None:
    for nothing in ("What does it lift?", "Here is what the sources say:", "# Cranes", "The sources do not say when."):
        assert sentences(told(f"{nothing}\nThe crane lifts 9 kilograms [S1].")) == (1, 1), nothing


def test_a_source_that_no_sentence_cites_supports_nothing() -> None:
    spare = passage("d8", "The crane lifts 9 kilograms.", "S2")
    assert sentences(told("# Cranes [S2]\nThe crane lifts 9 kilograms [S1].", CRANE, spare)) == (0.5, 1)


def test_declined_failed_and_uncited_are_three_things() -> None:
    assert sentences(answer(status="no_sources", text="The library has no source for this question.")) == (None, None)
    assert sentences(Failure("timeout", "too slow")) == (0, 0)
    assert sentences(answer(text="The crane lifts 9 kilograms.")) == (None, 0)
