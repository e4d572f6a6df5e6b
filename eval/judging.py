"""Replies before a judge: an evaluation's answers as submissions, graded, and counted by the rubric's scale.

What could not be judged has no value, so it is in no mean; when that is more than one answer in twenty, the mean is
about other questions than it says, and there is none. Which judge it is, and whether it may gate, is decided outside.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.errors import StageFailed
from domain.judging import Grade, Judgement, Passage, Submission
from domain.ports import Judge
from eval.harness import Progress, each
from eval.observed import Observed
from eval.rubric import Rubric

METRIC = "judged"
LEAST_JUDGED = 0.95  # share of the answers
GIVEN_UP_AFTER = 8  # each of them was tried as often as an answer is


@dataclass(frozen=True, slots=True)
class Said:
    """A judgement; `asked` False says that the judge could not be asked, so that asking again may give one."""

    judgement: Judgement
    asked: bool = True


def submission(observed: Observed) -> Submission | None:
    """The reply as a judge sees it; None where there is nothing to judge, or nothing to judge it by.

    That is a failed request, and a question that the library answers although nobody wrote down with what. Gold
    evidence that stands for a whole document names no sentence: then the accepted answer is the fact that is known.
    """
    question = observed.question
    sentences = tuple(anchor.text for anchor in question.evidence if anchor.text)
    if observed.failed or (observed.answerable and not (sentences or question.answer)):
        return None
    return Submission(
        question=question.query,
        accepted=tuple(text for text in (question.answer, *question.aliases) if text),
        facts=sentences or ((question.answer,) if observed.answerable and question.answer else ()),
        answer=observed.text,
        passages=tuple(Passage(p["marker"], p["title"], p["quote"]) for p in observed.passages("citations")),
        declined=observed.abstained,
    )


async def judgements(
    judge: Judge,
    submissions: Mapping[str, Submission],
    *,
    workers: int = 4,
    progress: Progress = lambda done, total: None,
) -> dict[str, Said]:
    """What the judge says of every submission, by its id. A judge that cannot be asked has not judged.

    One that could not be asked GIVEN_UP_AFTER times in a row is not asked again: nobody is there.
    """
    in_a_row = 0

    async def one(submitted: Submission) -> Said:
        nonlocal in_a_row
        if in_a_row >= GIVEN_UP_AFTER:
            return Said(Judgement(None, "not judged: not asked, the judge had been silent for long"), asked=False)
        try:
            said = Said(await judge.judge(submitted))
        except StageFailed as error:
            in_a_row += 1
            return Said(Judgement(None, f"not judged: {error.code}: {error}"), asked=False)
        in_a_row = 0
        return said

    said = await each(list(submissions.values()), one, workers, progress)
    return dict(zip(submissions, said, strict=True))


def counted(observed: Sequence[Observed], said: Mapping[str, Judgement], rubric: Rubric) -> dict[str, float | None]:
    """What every reply counts by the rubric's scale, by question id: the values of METRIC.

    A failed request counts 0; None is "not judged". Raises StageFailed when too few could be judged.
    """
    unjudged = [judgement.reason for judgement in said.values() if judgement.grade is None]
    if len(unjudged) > (1 - LEAST_JUDGED) * len(said):
        raise StageFailed(
            f"{len(unjudged)} of {len(said)} answers were not judged, at most {1 - LEAST_JUDGED:.0%} may be missing; "
            f"the first: {unjudged[0]}"
        )
    grades = {question: judgement.grade for question, judgement in said.items()}
    return {o.question.id: 0.0 if o.failed else _count(grades.get(o.question.id), rubric) for o in observed}


def _count(grade: Grade | None, rubric: Rubric) -> float | None:
    return None if grade is None else rubric.scale[grade]
