"""The judge that is a rule: gold facts, and claims held to what they cite. No model, no cost, the same tomorrow.

It cannot read: an answer counts as given when an accepted spelling stands in a claim that rests on its sources, and a
fact as told when a claim has its words, numbers, dates and names. Whoever says the same in quite other words is graded
lower than he deserves; nobody is graded higher for sounding well.
"""

from dataclasses import dataclass

from domain.grounding import MARKERS, prose_sentences, unmarked
from domain.judging import NO_MODEL, Grade, Judgement, Submission
from domain.support import supports, unstated
from eval.citations import asserts
from eval.metrics import folded


@dataclass(frozen=True, slots=True)
class RulesJudge:
    """The Judge without a model. `code` is a digest of the rules, `rubric` the tag of the rubric they stand for."""

    code: str
    rubric: str

    @property
    def name(self) -> str:
        """What judges, with the digest of its rules."""
        return f"rules@{self.code}"

    @property
    def families(self) -> frozenset[str]:
        """No model's."""
        return NO_MODEL

    async def judge(self, submission: Submission) -> Judgement:
        """The grade; a rule always has one."""
        claims = [s for s in prose_sentences(submission.answer) if asserts(s)]
        if submission.declined or not claims:
            if submission.answerable:
                return Judgement(Grade.WRONG, "it declines, and the library has the answer")
            return Judgement(Grade.RIGHT, "it declines, and the library has no answer")
        resting = [unmarked(claim) for claim in claims if rests(claim, submission)]
        said = f"{len(resting)} of {len(claims)} claims rest on what they cite"
        if not resting:
            return Judgement(Grade.UNGROUNDED, said)
        if not submission.answerable:
            return Judgement(Grade.WRONG, f"{said}, and the library has no answer")
        if _given(resting, submission):
            whole = len(resting) == len(claims)
            return Judgement(Grade.RIGHT if whole else Grade.PARTLY, f"{said}, and the answer is given")
        told = sum(any(_tells(claim, fact) for claim in resting) for fact in submission.facts)
        grade = Grade.PARTLY if told else Grade.WRONG
        return Judgement(grade, f"{said}, the answer is not given, {told} of {len(submission.facts)} facts are told")


def rests(claim: str, submission: Submission) -> bool:
    """True when the passages that the claim cites support it and state every number, date, identifier and name."""
    cited = set(MARKERS.findall(claim))
    texts = [f"{passage.title}\n\n{passage.quote}" for passage in submission.passages if passage.marker in cited]
    said = unmarked(claim)
    return bool(texts) and supports(texts, said) and not unstated(texts, said)


def _tells(claim: str, fact: str) -> bool:
    return supports([claim], fact) and not unstated([claim], fact)


def _given(resting: list[str], submission: Submission) -> bool:
    text = folded(" ".join(resting))
    return any(folded(spelling).strip() and folded(spelling) in text for spelling in submission.accepted)
