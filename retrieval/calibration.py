"""Calibrations as files: those that `tidegate calibrate` writes, and the trigger's bars that come with the product.

A file is named by its content, so that a setting which names it pins what it says, and never changes once written.
Chances belong to the library they were measured on, so none are shipped. What the curves are is domain/calibration.py;
fitting them is eval/calibrating.py.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from domain.calibration import Calibration, Curve, Order, Signal
from domain.errors import ConfigError
from retrieval.jsonrecords import keep_record

BARS = Path(__file__).with_name("weights") / "trigger_bars.json"
REFERENCE = "minilm"  # the encoder whose cosines the trigger's bar is written in


def shipped_bar(embedder: str) -> Curve | None:
    """The bar that comes with the encoder of this tag, as Calibration.bar; None for one that has none."""
    bars = _json(BARS, "reinstall Tidegate: the file is part of it")["bars"]
    return _curve(bars[embedder]) if embedder in bars else None


def read(path: Path) -> Calibration:
    """The calibration in a file of `write`. Raises ConfigError when it is not there or is not what its name says."""
    record = _json(path, "make it again with `tidegate calibrate`, or remove answering.calibration")
    if path.name != name_of(record):
        raise ConfigError(
            f"{path} was changed after it was written (its content is that of {name_of(record)}): make it again with "
            "`tidegate calibrate`, or remove answering.calibration."
        )
    return calibration_of(record, path)


def write(folder: Path, calibration: Calibration, measured: Mapping[str, object]) -> Path:
    """The file that now holds the calibration, with what was `measured` of it, in a folder that is made if need be.

    Raises StorageError when the disk does not take it.
    """
    record = record_of(calibration) | {"measured": dict(measured)}
    path = folder / name_of(record)
    keep_record(path, record)
    return path


def name_of(record: Mapping[str, object]) -> str:
    """The file name of a record: twelve hex digits of its content."""
    content = json.dumps(record, sort_keys=True, allow_nan=False).encode()
    return f"calibration-{sha256(content).hexdigest()[:12]}.json"


def record_of(calibration: Calibration) -> dict[str, Any]:  # JSON
    """The calibration as JSON data."""
    return {
        "embedder": calibration.embedder,
        "relevance": _points(calibration.relevance),
        "bar": _points(calibration.bar),
        "orders": [
            {"method": order.method, "signal": order.signal.value, "chance": _points(order.chance)}
            for order in calibration.orders
        ],
    }


def calibration_of(record: Mapping[str, Any], path: Path) -> Calibration:
    """The calibration in JSON data of `path`, which ConfigError names when they are none."""
    try:
        return Calibration(
            embedder=str(record["embedder"]),
            relevance=_curve(record["relevance"]),
            bar=None if record["bar"] is None else _curve(record["bar"]),
            orders=tuple(
                Order(str(order["method"]), Signal(order["signal"]), _curve(order["chance"]))
                for order in record["orders"]
            ),
        )
    except (KeyError, TypeError, ValueError) as problem:
        raise ConfigError(
            f"{path} holds no calibration ({problem!r}): make one with `tidegate calibrate`, or remove "
            "answering.calibration."
        ) from problem


def _points(curve: Curve | None) -> dict[str, list[float]] | None:
    return None if curve is None else {"scores": list(curve.scores), "values": list(curve.values)}


def _curve(points: Mapping[str, Any]) -> Curve:
    return Curve(tuple(points["scores"]), tuple(points["values"]))


def _json(path: Path, way_out: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"), parse_constant=_no_number)
    except (OSError, ValueError, RecursionError) as problem:
        raise ConfigError(f"The calibration {path} cannot be read ({problem}): {way_out}.") from problem
    if not isinstance(content, dict):
        raise ConfigError(f"The calibration {path} is a {type(content).__name__}, an object is wanted: {way_out}.")
    return content


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")
