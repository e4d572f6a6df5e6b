"""What becomes of a claim that its sources do not state: part of settings.py."""

from typing import Literal

from pydantic import Field

from tidegate.section import Section


class Citations(Section):
    """How far citations must hold. Which claims do is domain/grounding.py."""

    unsupported: Literal["flag", "drop"] = Field(
        default="flag",
        description="A claim that its sources do not state. flag: shown, and named in the answer; drop: not shown, "
        "which holds every sentence back until the next one begins.",
    )
