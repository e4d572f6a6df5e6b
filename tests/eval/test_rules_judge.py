"""The judge that is a rule, on answers that can be graded by eye."""

import pytest

from domain.judging import Grade
from eval.rules_judge import RulesJudge
from tests.eval.submissions import saying

JUDGE = RulesJudge("code", "answers-1@digest")


@pytest.mark.parametrize(
    ("answer", "grade"),
    [
        ("Pump P3 was built by Fulmar Pumps [S2].", Grade.RIGHT),
        ("Pump P3 was built by Fulmar Pumps [S2]. The bell rings twice [S1].", Grade.RIGHT),
        ("Pump P3 was built by Fulmar Pumps [S2]. It has cost 7 million crowns [S1].", Grade.PARTLY),
        ("Pump P3 lifts 40 tons [S2].", Grade.WRONG),
        ("High water is at 9 o'clock [S1].", Grade.WRONG),
        ("Pump P3 was built by Fulmar Pumps.", Grade.UNGROUNDED),
        ("Pump P3 was built by Fulmar Pumps [S1].", Grade.UNGROUNDED),
        ("Pump P3 was built by Fulmar Pumps [S9].", Grade.UNGROUNDED),
        ("Pump P3 was built by Greyfin Castings [S2].", Grade.UNGROUNDED),
        ("The sources do not say who built pump P3.", Grade.WRONG),
    ],
)
async def test_the_grade_follows_from_facts_and_citations(answer: str, grade: Grade) -> None:
    judgement = await JUDGE.judge(saying(answer))
    assert judgement.grade is grade, judgement.reason


async def test_a_fact_that_is_told_without_the_answer_is_partly() -> None:
    two = ("Pump P3 was built by Fulmar Pumps and lifts 40 tons.", "High water is at 9 o'clock.")
    asked = saying("High water is at 9 o'clock [S1].", facts=two)
    assert (await JUDGE.judge(asked)).grade is Grade.PARTLY


async def test_without_an_answer_in_the_library_declining_is_right_and_answering_is_wrong() -> None:
    none = {"accepted": (), "facts": ()}
    declined = await JUDGE.judge(saying("The library has nothing on this question.", declined=True, **none))
    answered = await JUDGE.judge(saying("High water is at 9 o'clock [S1].", **none))
    assert (declined.grade, answered.grade) == (Grade.RIGHT, Grade.WRONG)


async def test_declining_what_the_library_answers_is_wrong() -> None:
    assert (await JUDGE.judge(saying("Nothing on this.", declined=True))).grade is Grade.WRONG
