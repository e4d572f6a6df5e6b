"""The one list among the settings whose items have keys: amended gate by gate, and wrong in a place one can point at.

Part of loading.py.
"""

import difflib
from collections.abc import Mapping, Sequence

from pydantic_core import ErrorDetails

from tidegate import keys
from tidegate.effective import shown
from tidegate.settings_release import GateLine
from tidegate.yamlfile import Entry

Places = tuple[Mapping[str, str], ...]  # per gate: key -> where it is written; "" is the gate itself


def places(value: object, label: str) -> Places:
    """Where each key of each gate stands in the file called `label`; empty for what is no list."""
    if not isinstance(value, list):
        return ()
    rows = [[entry for entry in row if isinstance(entry, Entry)] if isinstance(row, tuple) else [] for row in value]
    return tuple(
        {"": f"{label}:{row[0].line}", **{entry.key: f"{label}:{entry.line}" for entry in row}} if row else {}
        for row in rows
    )


def amend(rows: object, amendments: Mapping[str, object]) -> object:
    """The list with each amendment, `METRIC.KEY`, made to the gate of that metric over all questions.

    A gate that is not in the list is added at its end. What is not a list of gates is handed on, for the model to
    refuse.
    """
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        return rows
    amended = [shown("", row) if isinstance(row, GateLine) else row for row in rows]
    for path, value in amendments.items():
        metric, _, key = path.partition(".")
        there = next((row for row in amended if isinstance(row, dict) and _is_over_all(row, metric)), None)
        if there is None:
            amended.append({"metric": metric, key: value})
        else:
            amended[amended.index(there)] = {**there, key: value}
    return amended


def amendable(rows: object, index: int) -> str:
    """The metric by which the gate at this place is amended, "" for one that is not."""
    row = rows[index] if isinstance(rows, Sequence) and index < len(rows) else None
    return str(row.get("metric", "")) if isinstance(row, Mapping) and not row.get("slice") else ""


def explain(detail: ErrorDetails, rows: object) -> tuple[str, str, str]:
    """(key of the value inside its gate, what was got and is wanted, nearest valid word) of one refused gate."""
    index, name = int(detail["loc"][2]), str(detail["loc"][3]) if len(detail["loc"]) > 3 else ""
    row = rows[index] if isinstance(rows, Sequence) and index < len(rows) else None
    if not name or not isinstance(row, Mapping):
        return "", f"got {keys.printable(keys.GATES, row)}, wanted a gate like {{metric: recall@6, floor: 0.7}}", ""
    value = row.get(name)
    if name not in GateLine.model_fields:
        near = difflib.get_close_matches(name, GateLine.model_fields, n=1)
        return name, f"is not a key of a gate (got {keys.printable(name, value)})", next(iter(near), "")
    got = f"got {keys.printable(name, value)}" if name in row else "is missing"
    near_metric = keys.nearest_metric(value) if name == "metric" and isinstance(value, str) else ""
    return name, f"{got}, wanted {keys.wanted(GateLine.model_fields[name])}", near_metric


def _is_over_all(row: Mapping[str, object], metric: str) -> bool:
    return row.get("metric") == metric and not row.get("slice")
