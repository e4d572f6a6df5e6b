"""The gate list: what a version must reach, and how little it may lose, before people see it. Data, not code.

A list without a recall gate and a citation gate is refused: those two are why the product exists, and each needs a
floor, because a first version has nothing else to be held to. How a gate is judged is verdicts.py.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.errors import ConfigError
from domain.releases import Outcome, Verdict

REQUIRED = {
    "recall": ("recall", "evidence_recall", "full_chain_recall"),
    "citation": ("citation_recall", "citation_precision"),
}

# Metrics over a closed list of our own instead of the questions. That list is not a sample of anything that is asked
# for, so a floor is held to its mean as it is: 126 attacks could never prove .98 of all attacks there are.
CLOSED = frozenset({"attack_resistance"})


@dataclass(frozen=True, slots=True)
class Gate:
    """What is asked of the mean of `metric` over the eligible questions of `slice` ("" is all of them).

    At least `floor`, and at most `max_drop` below the version people have now; one of the two may be None. Below
    `min_items` questions nothing is decided. An `advisory` gate is told and decides nothing.
    """

    metric: str
    slice: str = ""  # "dimension=value", e.g. "type=comparison"
    floor: float | None = None
    max_drop: float | None = None
    min_items: int = 50
    advisory: bool = False

    @property
    def label(self) -> str:
        """The gate as a verdict calls it."""
        return f"{self.metric} [{self.slice}]" if self.slice else self.metric


def gates(rows: Sequence[Mapping[str, Any]]) -> tuple[Gate, ...]:
    """Checked gates from rows as YAML holds them. Raises ConfigError naming every problem at once.

    Any: a row is whatever somebody wrote.
    """
    known = set(Gate.__dataclass_fields__)
    wrong = [
        f"gate {number} has no key {key!r} (there are {', '.join(sorted(known))})"
        for number, row in enumerate(rows, 1)
        for key in sorted(set(row) - known)
    ]
    wrong += [f"gate {number} names no metric" for number, row in enumerate(rows, 1) if "metric" not in row]
    listed = [Gate(**{key: row[key] for key in known & set(row)}) for row in rows if "metric" in row]
    if found := [*wrong, *_unknown_metrics(listed), *problems(listed)]:
        raise ConfigError(f"evaluation.gates cannot guard a promotion: {'; '.join(found)}.")
    return tuple(listed)


def problems(listed: Sequence[Gate]) -> Iterator[str]:
    """What is wrong with a list of gates, each as the end of a sentence; whether metrics exist is not looked at."""
    for gate in listed:
        for key, bound in (("floor", gate.floor), ("max_drop", gate.max_drop)):
            # NaN is no number in 0..1 either: every comparison with it is false.
            if bound is not None and not 0.0 <= bound <= 1.0:
                yield f"{gate.label} has {key} {bound!r}, which is not in 0..1"
        if gate.floor is None and gate.max_drop is None:
            yield f"{gate.label} has neither a floor nor a max_drop"
        if gate.slice and gate.metric in CLOSED:
            yield f"{gate.label} names a slice of the questions, which {gate.metric} is not about: leave slice out"
        if gate.min_items < 1:
            yield f"{gate.label} has min_items {gate.min_items}, which is below 1"
    labels = [gate.label for gate in listed]
    yield from (f"{label} is listed twice" for label in sorted({one for one in labels if labels.count(one) > 1}))
    binding = {gate.metric.partition("@")[0] for gate in listed if _guards(gate)}
    for kind, names in REQUIRED.items():
        if binding.isdisjoint(names):
            yield f"no {kind} gate over all questions has a floor and is binding (one of: {', '.join(names)})"


def worst(verdicts: Sequence[Verdict]) -> Outcome:
    """The worst outcome of the gates that bind; nothing bound is nothing measured: ERROR."""
    return max((verdict.outcome for verdict in verdicts if not verdict.advisory), default=Outcome.ERROR)


def digest(listed: Sequence[Gate]) -> str:
    """A fingerprint of the gate list, which a decision is bound to; the order of the list does not enter."""
    rows = sorted(
        json.dumps([g.metric, g.slice, _number(g.floor), _number(g.max_drop), g.min_items, g.advisory]) for g in listed
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]


def _guards(gate: Gate) -> bool:
    return gate.floor is not None and not gate.slice and not gate.advisory


def _number(bound: float | None) -> float | None:
    """A bound as one spelling: 1 and 1.0 are the same gate."""
    return None if bound is None else float(bound)


def _unknown_metrics(listed: Sequence[Gate]) -> list[str]:
    from eval.metrics import metrics  # brings an HTTP client, which settings that name a gate do not need

    try:
        metrics(tuple(dict.fromkeys(gate.metric for gate in listed if gate.metric not in CLOSED)))
    except ConfigError as error:
        return [str(error).rstrip(".")]
    return []
