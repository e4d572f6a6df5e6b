"""The fault injector really is at fault."""

from domain.prompt import SYSTEM, PromptPlan
from domain.types import Delta, Draft
from generation.ungrounded import UngroundedGenerator
from tests.generation.evidence import evidence


async def test_it_invents_a_marker_and_a_source_and_never_cites_what_it_was_given() -> None:
    plan = PromptPlan(SYSTEM, evidence("One.", "Two."), (), "What?")
    *deltas, draft = [piece async for piece in UngroundedGenerator().generate(plan)]
    assert isinstance(draft, Draft)
    assert draft.text == "".join(piece.text for piece in deltas if isinstance(piece, Delta))
    assert "[S3]" in draft.text
    assert "Source:" in draft.text
    assert "[S1]" not in draft.text
    assert "[S2]" not in draft.text
