"""What every Judge promises."""

import pytest

from domain.judging import Grade, Judgement
from domain.ports import Judge
from eval.model_judge import ModelJudge
from eval.rubric import load
from eval.rules_judge import RulesJudge
from tests.eval.submissions import ASKED, saying
from tests.fakes import ScriptedGenerator

REPLIES = {"model": '{"grade": "right", "reason": "it is"}', "broken model": "Excellent!"}


@pytest.fixture(params=["rules", *REPLIES])
def judge(request: pytest.FixtureRequest) -> Judge:
    if request.param == "rules":
        return RulesJudge("code", load().tag)
    return ModelJudge(ScriptedGenerator((REPLIES[request.param],)), "model@code", frozenset({"qwen"}), load())


async def test_a_judgement_has_a_reason_and_a_grade_or_none(judge: Judge) -> None:
    for submission in (ASKED, saying(""), saying("???"), saying("x" * 5000), saying("", facts=(), accepted=())):
        judgement = await judge.judge(submission)
        assert isinstance(judgement, Judgement)
        assert judgement.grade is None or isinstance(judgement.grade, Grade)
        assert judgement.reason.strip()
        assert judgement.grade is not None or judgement.reason.startswith("not judged: ")


async def test_asked_again_it_says_the_same(judge: Judge) -> None:
    assert await judge.judge(ASKED) == await judge.judge(ASKED)


def test_a_judge_is_pinned_by_name_and_rubric(judge: Judge) -> None:
    assert judge.name
    assert judge.rubric == load().tag
    assert judge.families
