"""Calibrations of judges as files: what a judge was shown to be worth, named by its content and never changed.

Figures are kept, not a verdict about them: whether they are enough is asked again whenever a judge is to gate.
"""

import json
from dataclasses import asdict
from hashlib import sha256
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.errors import ConfigError
from retrieval.jsonrecords import keep_record

if TYPE_CHECKING:
    from eval.judge_calibration import Record

ROUNDING = 1e-9
AGAIN = "make it again with `tidegate judge calibrate`, and set judge.calibration to the file it names"


def write(folder: Path, record: "Record") -> Path:
    """The file that now holds the record, in a folder that is made if need be. Raises StorageError."""
    told = asdict(record)
    path = folder / _name(told)
    keep_record(path, told)
    return path


def read(path: Path) -> "Record":
    """The record in a file of `write`. Raises ConfigError when it is not there or is not what its name says."""
    from eval.judge_calibration import Figure, Record

    try:
        told = json.loads(path.read_text("utf-8"))
        if path.name != _name(told):
            raise ConfigError(f"judge.calibration {path} was changed after it was written: {AGAIN}.")
        if wrong := _wrong(told):
            raise ConfigError(f"judge.calibration {path} is no calibration ({wrong}): {AGAIN}.")
        figures = {name: Figure(**figure) for name, figure in told["figures"].items()}
        return Record(told["judge"], tuple(told["families"]), told["rubric"], told["cases"], figures)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ConfigError(f"judge.calibration {path} cannot be read ({problem!r}): {AGAIN}.") from problem


def _wrong(told: Any) -> str:  # JSON
    """What keeps it from being a record; empty when nothing does. The right name says only that nobody changed it."""
    if not isinstance(told, dict) or set(told) != {"judge", "families", "rubric", "cases", "figures"}:
        return "it has not exactly the fields judge, families, rubric, cases and figures"
    if wrong := [name for name in ("judge", "rubric", "cases") if not isinstance(told[name], str) or not told[name]]:
        return f"{wrong[0]} is {_shown(told[wrong[0]])}, a text is wanted"
    if not isinstance(told["families"], list) or not all(isinstance(one, str) for one in told["families"]):
        return f"families is {_shown(told['families'])}, a list of texts is wanted"
    if not isinstance(told["figures"], dict):
        return f"figures is {_shown(told['figures'])}, an object is wanted"
    broken = [name for name, figure in told["figures"].items() if not _is_figure(figure)]
    return f"figure {broken[0]} is {_shown(told['figures'][broken[0]])}" if broken else ""


def _is_figure(told: Any) -> bool:  # JSON
    """True for a mean between its bounds, none of them above 1, over a number of answers."""
    if not isinstance(told, dict) or set(told) != {"value", "low", "high", "n"}:
        return False
    if not all(isinstance(told[name], int | float) and not isinstance(told[name], bool) for name in told):
        return False
    rising = [told["low"], told["value"], told["high"], 1.0]
    in_order = all(a <= b + ROUNDING for a, b in pairwise(rising))  # False for NaN
    return isinstance(told["n"], int) and told["n"] >= 0 and isfinite(told["low"]) and in_order


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _name(told: dict[str, Any]) -> str:  # JSON
    content = json.dumps(told, sort_keys=True).encode()
    return f"judge-{sha256(content).hexdigest()[:12]}.json"
