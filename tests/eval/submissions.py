"""Answers before a judge, short enough to grade by eye."""

from dataclasses import replace

from domain.judging import Passage, Submission

TIDE = Passage("S1", "Tide table", "High water is at 9 o'clock. The bell rings twice.")
PUMP = Passage("S2", "Pump P3", "Pump P3 was built by Fulmar Pumps and lifts 40 tons.")
ASKED = Submission(
    question="Who built pump P3?",
    accepted=("Fulmar Pumps",),
    facts=("Pump P3 was built by Fulmar Pumps and lifts 40 tons.",),
    answer="Pump P3 was built by Fulmar Pumps [S2].",
    passages=(TIDE, PUMP),
)


def saying(answer: str, **changes: object) -> Submission:
    """The same question with another answer."""
    return replace(ASKED, answer=answer, **changes)  # type: ignore[arg-type] # names of fields
