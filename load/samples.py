"""What one request gave, as numbers, and the file that a run leaves of them: one JSON object a line.

Percentiles, thresholds and plots are all made from these, so that none of them is rounded by whoever counted. A request
that failed has its reason and no latency.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sample:
    """One request. None is "there is none": a search has no first text, a reply without usage no tokens.

    Times are milliseconds since the request was *due*: with an arrival rate that is when it should have been sent, so
    that a stalled server or client delays nothing out of sight. `token_ms` is between the first text and the end of the
    text, for each token after the first piece.
    """

    kind: str  # answer, follow_up, stream, search
    due_s: float  # seconds since the run began
    complete_ms: float | None = None
    first_ms: float | None = None
    token_ms: float | None = None
    citations_ms: float | None = None
    citations_complete: bool | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    failure: str = ""


def write(path: Path, samples: Iterable[Sample]) -> None:
    """Adds samples to a file, whole lines only."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(asdict(sample), allow_nan=False)}\n" for sample in samples)


def read(path: Path) -> list[Sample]:
    """The samples of a file, in the order they were due. Raises ValueError with the line that cannot be read."""
    names = {field.name for field in fields(Sample)}
    found: list[Sample] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            told = json.loads(line)
            if not isinstance(told, dict) or not set(told) <= names:
                raise ValueError("not a sample")
            found.append(Sample(**told))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}:{number} is no sample ({error}): run the load again.") from error
    return sorted(found, key=lambda sample: sample.due_s)


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that `share` (0..1) of all do not exceed; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]
