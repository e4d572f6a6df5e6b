"""Who grades answers, by which rubric, and what of that binds a decision: part of settings.py."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from tidegate.section import Folder, ModelId, Section, Share
from tidegate.settings_generation import Region, Url


class Judge(Section):
    """The judge, and its gate. Without a floor and a max_drop it decides nothing."""

    backend: Literal["rules", "bedrock", "openai_compatible"] = Field(
        default="rules", description="rules: gold facts and citations, no model; the others: a hosted model."
    )
    model_id: ModelId | None = Field(
        default=None, description="The hosted model, never of the generator's family. Absent: none."
    )
    region: Region | None = Field(
        default=None, description="Cloud region of bedrock. Absent: the cloud client's own configuration."
    )
    endpoint_url: Url | None = Field(
        default=None,
        description="Address of the model service, of openai_compatible up to and with /v1. Absent: the vendor's.",
    )
    key_file: Folder | None = Field(
        default=None, description="File with the key of openai_compatible, read at start. Absent: no key is sent."
    )
    rubric: Folder | None = Field(default=None, description="Rubric (TOML) to grade by. Absent: the one shipped.")
    calibration: Folder | None = Field(
        default=None, description="File that `tidegate judge calibrate` wrote. Absent: this judge may not gate."
    )
    floor: Share | None = Field(default=None, description="Least mean grade. Absent: none is asked for.")
    max_drop: Share | None = Field(
        default=None, description="Most the mean grade may lose against the version people have. Absent: any drop."
    )
    min_items: int = Field(default=50, ge=1, le=1_000_000, description="Judged answers below which it is undecided.")

    @property
    def gates(self) -> bool:
        """True when its grades decide anything."""
        return self.floor is not None or self.max_drop is not None

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.backend != "rules" and self.model_id is None:
            yield "model_id", f"the id of a model, because judge.backend is {self.backend}"
        if self.backend == "rules" and self.rubric is not None:
            yield "rubric", "nothing, because judge.backend rules stands for the rubric that is shipped and reads none"
        if self.backend == "openai_compatible" and self.endpoint_url is None:
            wanted = "an address like http://127.0.0.1:11434/v1, because judge.backend is openai_compatible"
            yield "endpoint_url", wanted
        if self.gates and self.calibration is None:
            yield (
                "calibration",
                "the file that `tidegate judge calibrate` wrote, because judge.floor or judge.max_drop is set and no "
                "judge may gate before its calibration is recorded",
            )
