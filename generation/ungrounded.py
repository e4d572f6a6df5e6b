"""A generator that cites badly on purpose: fault injection for the citation, grounding and naming policies and gates.

Never an answer to show people: a gate that passes it is broken.
"""

from collections.abc import AsyncGenerator

from domain.prompt import PromptPlan
from domain.types import Delta, Draft, StopReason


class UngroundedGenerator:
    """The Generator that claims without markers, invents markers and names sources nobody retrieved. Deterministic."""

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        """Three claims in a fixed order, one delta each, then a Draft that pretends to be a normal end."""
        beyond = len(plan.evidence) + 1  # the first number that packing did not give out
        pieces = (
            f"It is common knowledge that the answer to this is well known: {plan.question.strip()} ",
            f"Every expert agrees on it [S{beyond}][S0]. ",
            "(Source: The Complete Handbook, p. 4)",
        )
        for piece in pieces:
            yield Delta(piece)
        yield Draft("".join(pieces), StopReason.END)
