"""What settings are made of: the frozen section, and the scalar types that more than one section uses.

The text beside a pattern is what an error says is wanted.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError


def _named(value: object) -> object:
    """Refuses a blank path, which would mean the folder that one happens to stand in."""
    if isinstance(value, str) and not value.strip():
        raise ValueError("blank")
    return value


Name = Annotated[str, StringConstraints(max_length=200, pattern=r"^\S(.*\S)?$"), "text without blanks at its ends"]
ModelId = Annotated[str, StringConstraints(max_length=2048, pattern=r"^[\w.:/-]+$"), "a model id without blanks"]
# Strict mode would refuse the text a YAML file can hold.
Folder = Annotated[Path, BeforeValidator(_named), Field(strict=False)]
Names = Annotated[tuple[Name, ...], Field(strict=False), "a list of names"]  # ... and the list
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0.001, le=600)]


class Section(BaseModel):
    """A group of settings: frozen, without unknown keys, without silent conversions, without NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Every (key, what is wanted) where two values, each fine alone, cannot both stand. Usually none."""
        return iter(())

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if found := tuple(self.contradictions()):
            text = "; ".join(f"{key}: wanted {wanted}" for key, wanted in found)
            raise PydanticCustomError("contradiction", "{text}", {"text": text, "found": found})
        return self
