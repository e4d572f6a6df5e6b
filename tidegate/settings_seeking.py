"""How evidence is looked for: part of settings.py. What the two ways do is domain/seeking.py."""

from typing import Literal

from pydantic import Field

from tidegate.section import Section, Share


class Seeking(Section):
    """How evidence is looked for."""

    mode: Literal["rounds", "agent"] = Field(
        default="rounds",
        description="rounds: a search, and a wider one when it was thin; agent: a question is taken apart.",
    )
    steps: int = Field(default=4, ge=1, le=12, description="Steps an agent takes, at most.")
    covered: Share = Field(default=0.6, description="Share of a part's words that one passage has, to cover it.")
