"""A rubric: what answers are graded by, as a TOML file in our own words. Read strictly, named by its content.

The one that comes with the product is rubrics/answers.toml. What a judge makes of a rubric is the judge's business.
"""

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from domain.errors import ConfigError
from domain.judging import Grade

SHIPPED = Path(__file__).with_name("rubrics") / "answers.toml"
_KEYS = {"name": str, "version": int, "criteria": dict, "grades": dict, "scale": dict}


@dataclass(frozen=True, slots=True)
class Rubric:
    """Criteria by name, what each grade means, and what it counts in a mean (0..1). `digest` is of the file's bytes."""

    name: str
    version: int
    criteria: Mapping[str, str]
    grades: Mapping[Grade, str]
    scale: Mapping[Grade, float]
    digest: str

    @property
    def tag(self) -> str:
        """The rubric as records name it: `answers-1@0123456789ab`."""
        return f"{self.name}-{self.version}@{self.digest}"


def load(path: Path = SHIPPED) -> Rubric:
    """The rubric in a file. Raises ConfigError that names everything wrong with it at once."""
    try:
        content = path.read_bytes()
        told = tomllib.loads(content.decode())
    except (OSError, ValueError) as problem:
        raise ConfigError(
            f"The rubric {path} cannot be read ({problem}): mend it, or remove judge.rubric."
        ) from problem
    if wrong := list(_problems(told)):
        raise ConfigError(f"The rubric {path} cannot be judged by: {'; '.join(wrong)}.")
    return Rubric(
        name=told["name"],
        version=told["version"],
        criteria=told["criteria"],
        grades={grade: told["grades"][grade] for grade in Grade},
        scale={grade: float(told["scale"][grade]) for grade in Grade},
        digest=sha256(content).hexdigest()[:12],
    )


def _problems(told: Mapping[str, Any]) -> Iterator[str]:  # TOML
    yield from (f"{key} is not known" for key in told if key not in _KEYS)
    for key, kind in _KEYS.items():
        if key not in told:
            yield f"{key} is missing"
        elif not isinstance(told[key], kind) or not told[key]:
            yield f"{key} is {told[key]!r}, a {kind.__name__} that is not empty is wanted"
        elif key in ("grades", "scale") and set(told[key]) != set(Grade):
            yield f"{key} has {', '.join(told[key])}, exactly {', '.join(Grade)} are wanted"
        elif key in ("criteria", "grades"):
            yield from (f"{key}.{k} is {v!r}, text is wanted" for k, v in told[key].items() if not _is_text(v))
        elif key == "scale":
            yield from (f"scale.{k} is {v!r}, wanted is 0 to 1" for k, v in told[key].items() if not _is_share(v))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_share(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return number and 0 <= float(value) <= 1  # type: ignore[arg-type] # a number, as the line before says
