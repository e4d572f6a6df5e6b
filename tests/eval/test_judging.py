"""Replies before a judge: what it is shown, and what its grades count."""

from dataclasses import replace

import pytest

from domain.errors import StageFailed
from domain.judging import Grade, Judgement, Submission
from eval.client import Failure
from eval.judging import GIVEN_UP_AFTER, counted, judgements, submission
from eval.observed import Observed
from eval.questions import Anchor
from eval.rubric import load
from tests.eval.replies import QUESTION, TIDE, answer, passage
from tests.eval.submissions import ASKED

RUBRIC = load()
RIGHT, PARTLY, NONE = (Judgement(grade, "so") for grade in (Grade.RIGHT, Grade.PARTLY, None))


def observed(name: str = "q1", response: object = None, **changes: object) -> Observed:
    return Observed(replace(QUESTION, id=name, **changes), response or answer(text="x"))  # type: ignore[arg-type]


def test_a_judge_is_shown_what_is_known_and_what_is_cited() -> None:
    cited = passage(TIDE.doc_id, TIDE.text, "S3", "Tides")
    seen = submission(observed(response=answer("d9", cited=[cited], text="At nine [S3].")))
    assert seen is not None
    assert seen.accepted == ("9 kilograms", "9 kg")
    assert seen.facts == (TIDE.text, "The bell rings twice.")
    assert [(p.marker, p.title, p.quote) for p in seen.passages] == [("S3", "Tides", TIDE.text)]
    assert not seen.declined


def test_a_null_question_has_nothing_that_is_known() -> None:
    null = observed(type="null", answer="", aliases=(), evidence=(), hops=0, response=answer(status="no_sources"))
    seen = submission(null)
    assert seen is not None
    assert (seen.answerable, seen.accepted, seen.declined) == (False, (), True)


def test_evidence_without_a_sentence_leaves_the_answer_as_the_fact() -> None:
    seen = submission(observed(evidence=(Anchor("d1", ""),)))
    assert seen is not None
    assert seen.facts == ("9 kilograms",)


def test_what_nobody_can_grade_is_not_shown_to_a_judge() -> None:
    assert submission(observed(response=Failure("timeout", "late"))) is None
    assert submission(observed(evidence=(Anchor("d1", ""),), answer="", aliases=())) is None


def test_grades_count_by_the_scale_and_a_failed_request_counts_nothing() -> None:
    replies = [observed("q1"), observed("q2"), observed("q3", Failure("timeout", "late"))]
    assert counted(replies, {"q1": RIGHT, "q2": PARTLY}, RUBRIC) == {"q1": 1.0, "q2": 0.5, "q3": 0.0}


def test_what_is_not_judged_has_no_value() -> None:
    replies = [observed(f"q{n}") for n in range(40)]
    said = {f"q{n}": RIGHT for n in range(39)} | {"q39": NONE}
    assert counted(replies, said, RUBRIC)["q39"] is None


def test_when_too_much_is_not_judged_there_is_no_mean() -> None:
    replies = [observed(f"q{n}") for n in range(40)]
    said = {f"q{n}": RIGHT for n in range(37)} | {f"q{n}": NONE for n in range(37, 40)}
    with pytest.raises(StageFailed, match="3 of 40 answers were not judged"):
        counted(replies, said, RUBRIC)


async def test_a_judge_that_cannot_be_asked_has_not_judged() -> None:
    class Gone:
        name, rubric, families = "gone", "r", frozenset({"qwen"})

        async def judge(self, submission: Submission) -> Judgement:
            raise StageFailed(f"nobody there to grade {submission.question}")

    said = (await judgements(Gone(), {"q1": ASKED}))["q1"]
    assert (said.judgement.grade, said.asked) == (None, False)
    assert "nobody there" in said.judgement.reason


async def test_a_judge_that_is_silent_for_long_is_not_asked_again_and_one_silence_is_no_reason_to_stop() -> None:
    class Deaf:
        name, rubric, families = "deaf", "r", frozenset({"qwen"})

        def __init__(self, answers_every: int) -> None:
            self.asked, self.answers_every = 0, answers_every

        async def judge(self, submission: Submission) -> Judgement:
            self.asked += 1
            if self.asked % self.answers_every:
                raise StageFailed("nobody there")
            return RIGHT

    many = {f"q{n}": ASKED for n in range(100)}
    gone, shaky = Deaf(1000), Deaf(GIVEN_UP_AFTER)
    said = await judgements(gone, many, workers=1)
    assert gone.asked == GIVEN_UP_AFTER
    assert {one.asked for one in said.values()} == {False}
    await judgements(shaky, many, workers=1)
    assert shaky.asked == 100
