"""When a question is declined: part of settings.py. What is weighed is domain/covering.py."""

from typing import Literal

from pydantic import Field

from tidegate.section import Folder, Section, Share


class Abstaining(Section):
    """Who decides that the library does not cover a question."""

    mode: Literal["learned", "generator"] = Field(
        default="learned",
        description="learned: signals of the evidence, before anybody writes; generator: whoever writes the answer.",
    )
    weights: Folder | None = Field(
        default=None,
        description="File that `tidegate train-abstention` wrote. Absent: the shipped one, which knows the bundled "
        "encoder; under another one the generator decides.",
    )
    bar: Share | None = Field(
        default=None,
        description="Chance of being covered under which a question is declined. Absent: as the weights say.",
    )
