"""What signals are worth, as a file: the weights that come with the product, and those that `tidegate train-abstention`
writes.

Numbers as JSON beside what was measured of them. What they are is domain/covering.py; learning them is
eval/covering_training.py.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from domain.covering import Covering, Tree
from domain.errors import ConfigError
from domain.evidence_signals import SIGNALS

SHIPPED = Path(__file__).with_name("weights") / "covering_minilm.json"
WAY_OUT = "make it again with `tidegate train-abstention`, or remove abstaining.weights"


def read(path: Path = SHIPPED) -> Covering:
    """The weights in a file of `record_of`. Raises ConfigError naming the file, what is wrong and the way out."""
    try:
        record = json.loads(path.read_text("utf-8"))
        named = tuple(record["signals"])
        if named != SIGNALS:
            changed = sorted(set(named) ^ set(SIGNALS)) or ["their order"]
            raise ConfigError(f"{path} was learned from other signals than these ({', '.join(changed)}): {WAY_OUT}.")
        return Covering(
            encoder=str(record["encoder"]),
            start=float(record["start"]),
            trees=tuple(
                Tree(tuple(map(int, tree["asks"])), tuple(map(float, tree["bars"])), tuple(map(float, tree["leaves"])))
                for tree in record["trees"]
            ),
            bar=float(record["bar"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ConfigError(f"{path} holds no weights of abstention ({problem!r}): {WAY_OUT}.") from problem


def record_of(covering: Covering, measured: Mapping[str, object]) -> dict[str, Any]:  # JSON
    """The weights as JSON data, with what was `measured` of them."""
    return {
        "encoder": covering.encoder,
        "signals": list(SIGNALS),
        "bar": covering.bar,
        "measured": dict(measured),
        "start": covering.start,
        "trees": [{"asks": tree.asks, "bars": tree.bars, "leaves": tree.leaves} for tree in covering.trees],
    }
