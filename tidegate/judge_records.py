"""Calibrations of judges as files: what a judge was shown to be worth, named by its content and never changed.

Figures are kept, not a verdict about them: whether they are enough is asked again whenever a judge is to gate.
"""

import json
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.errors import ConfigError
from retrieval.jsonrecords import keep_record

if TYPE_CHECKING:
    from eval.judge_calibration import Record

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
        figures = {name: Figure(**figure) for name, figure in told["figures"].items()}
        return Record(told["judge"], tuple(told["families"]), told["rubric"], told["cases"], figures)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ConfigError(f"judge.calibration {path} cannot be read ({problem!r}): {AGAIN}.") from problem


def _name(told: dict[str, Any]) -> str:  # JSON
    content = json.dumps(told, sort_keys=True).encode()
    return f"judge-{sha256(content).hexdigest()[:12]}.json"
