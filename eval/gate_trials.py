"""What the gate says about versions whose truth is known: made from the real values of two real versions.

Every trial asks the same `judge` as `tidegate gate` does. A question's two values come from two versions that cut the
library differently, and a coin says which of them is the candidate's: so nothing changed on average, while single
questions change as they do in life. A worse version then loses whole questions, the loudest way to lose a point.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan

import numpy as np
from numpy.typing import NDArray

from domain.errors import ConfigError
from domain.releases import Outcome, Scorecard
from eval.gates import Gate, worst
from eval.pairing import Slices
from eval.verdicts import judge

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Population:
    """Real questions to draw from: the slices of each, and per metric its values in two versions, NaN not eligible."""

    slices: tuple[Mapping[str, str], ...]
    values: Mapping[str, Floats]  # metric -> [n_questions, 2]

    def share(self, name: str) -> float:
        """Share of the questions that are in a slice, `dimension=value`."""
        return sum(_inside(each, name) for each in self.slices) / len(self.slices)

    def mean(self, metric: str, name: str) -> float:
        """Mean of a metric over the eligible questions of a slice in both versions; 0 without one."""
        rows = [row for row, each in enumerate(self.slices) if _inside(each, name)]
        eligible = self.values[metric][rows]
        eligible = eligible[~np.isnan(eligible)]
        return float(eligible.mean()) if len(eligible) else 0.0


def population(one: Scorecard, other: Scorecard, slices: Slices, metrics: Sequence[str]) -> Population:
    """The questions both versions were asked."""
    ids = sorted(slices)
    columns = {
        metric: np.array([[_number(card.values[metric][q]) for card in (one, other)] for q in ids])
        for metric in metrics
    }
    return Population(tuple(slices[q] for q in ids), columns)


class Truth(StrEnum):
    """What is true of the candidate in a trial."""

    ITSELF = "itself"  # nothing changed at all
    SAME = "same"  # nothing changed on average
    LIMIT = "limit"  # worse by exactly the max_drop of the gate
    DROP = "drop"  # worse by the effect that the number of questions was planned for
    FADED = "faded"  # worse in one slice alone, every question of it a little
    LOST = "lost"  # worse in one slice alone, some questions of it lost in every metric


@dataclass(frozen=True, slots=True)
class Trial:
    """How trials are made: `n` questions, gates without floors, the one whose metric drops, by how much, and where."""

    n: int
    gates: tuple[Gate, ...]
    target: Gate
    effect: float
    slice: str
    slice_effect: float
    alpha: float


@dataclass(frozen=True, slots=True)
class Said:
    """What the gate said in one trial."""

    outcome: Outcome  # the worst of all gates that bind
    target: Outcome  # of the drop of the target gate alone
    slices: Outcome  # the worst of all slices


def trials(everything: Population, trial: Trial, truth: Truth, seeds: Sequence[int]) -> list[Said]:
    """What the gate said, one for each seed."""
    return [_trial(everything, trial, truth, seed) for seed in seeds]


def _trial(everything: Population, trial: Trial, truth: Truth, seed: int) -> Said:
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(everything.slices), trial.n)
    first = rng.integers(0, 2, trial.n)
    stable = {metric: column[drawn, first] for metric, column in everything.values.items()}
    second = first if truth is Truth.ITSELF else 1 - first
    candidate = {metric: column[drawn, second] for metric, column in everything.values.items()}
    parts = [everything.slices[row] for row in drawn]
    if truth in (Truth.LIMIT, Truth.DROP):
        drop = trial.effect if truth is Truth.DROP else trial.target.max_drop or 0.0
        lose(candidate, (trial.target.metric,), np.ones(trial.n, dtype=bool), drop, rng)
    elif truth in (Truth.FADED, Truth.LOST):
        within = np.array([_inside(part, trial.slice) for part in parts])
        if truth is Truth.FADED:
            fade(candidate[trial.target.metric], within, trial.slice_effect)
        else:
            lose(candidate, tuple(candidate), within, trial.slice_effect, rng)
    verdicts = judge(
        _card("candidate", candidate),
        _card("stable", stable),
        trial.gates,
        {f"q{i}": part for i, part in enumerate(parts)},
        alpha=trial.alpha,
        seed=seed,
    )
    by_name = {verdict.gate: verdict.outcome for verdict in verdicts}
    watched = [outcome for name, outcome in by_name.items() if name.endswith(" slices")]
    return Said(worst(verdicts), by_name[f"{trial.target.label} max_drop"], max(watched, default=Outcome.PASS))


def degenerate(everything: Population, trial: Trial, seed: int) -> list[Outcome]:
    """What the target gate says where nothing can be known: few questions without a difference, or too few at all.

    Only questions that are eligible are drawn: a set without one is not small but not measured.
    """
    values = everything.values[trial.target.metric]
    eligible = np.flatnonzero(~np.isnan(values).any(axis=1))
    rng = np.random.default_rng(seed)
    said = []
    for n in (1, 5, 20, 50, 100, 140):
        same = values[rng.choice(eligible, n), 0]
        said.append(_target(trial, same, same, seed))
    for n in (1, 5, 20, trial.target.min_items - 1):
        rows = rng.choice(eligible, n)
        said += [_target(trial, values[rows, one], values[rows, 1 - one], seed) for one in (0, 1)]
    return said


def flips(everything: Population, trial: Trial, truth: Truth, seed: int) -> bool:
    """True when asking the same again, twice, four times and eight times over, turned PASS into FAIL or back."""
    rng = np.random.default_rng(seed)
    drawn, first = rng.integers(0, len(everything.slices), trial.n // 4), rng.integers(0, 2, trial.n // 4)
    values = everything.values[trial.target.metric]
    stable, candidate = values[drawn, first], values[drawn, 1 - first]
    if truth is not Truth.SAME:
        lose({"": candidate}, ("",), np.ones(len(drawn), dtype=bool), trial.effect, rng)
    said = {_target(trial, np.tile(stable, times), np.tile(candidate, times), seed) for times in (1, 2, 4, 8)}
    return {Outcome.PASS, Outcome.FAIL} <= said


def _target(trial: Trial, stable: Floats, candidate: Floats, seed: int) -> Outcome:
    """The drop of the target gate alone."""
    metric = trial.target.metric
    cards = _card("candidate", {metric: candidate}), _card("stable", {metric: stable})
    return judge(*cards, (trial.target,), {}, alpha=trial.alpha, seed=seed)[0].outcome


def lose(
    values: Mapping[str, Floats],
    metrics: Sequence[str],
    within: NDArray[np.bool_],
    drop: float,
    rng: np.random.Generator,
) -> None:
    """Set whole questions to 0 in these metrics, so many that the largest of their means falls by `drop` on average.

    Every question within has the same chance. Changes the values in place.
    """
    chance = drop / max(_mean(values[metric], within, drop) for metric in metrics)
    lost = within & (rng.random(len(within)) < chance)
    for metric in metrics:
        values[metric][lost & ~np.isnan(values[metric])] = 0.0


def fade(values: Floats, within: NDArray[np.bool_], drop: float) -> None:
    """Lower every value within by the same factor, so that their mean falls by exactly `drop`. In place."""
    values[within] *= 1 - drop / _mean(values, within, drop)


def _mean(values: Floats, within: NDArray[np.bool_], drop: float) -> float:
    eligible = values[within & ~np.isnan(values)]
    mean = float(eligible.mean()) if len(eligible) else 0.0
    if mean < drop:
        raise ConfigError(f"A mean of {mean:.3f} cannot drop by {drop}: choose another metric or slice.")
    return mean


def _card(version: str, values: Mapping[str, Floats]) -> Scorecard:
    rows = {
        metric: {f"q{i}": None if isnan(value) else value for i, value in enumerate(column.tolist())}
        for metric, column in values.items()
    }
    return Scorecard(version, "drawn", rows)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _inside(part: Mapping[str, str], name: str) -> bool:
    dimension, _, value = name.partition("=")
    return part.get(dimension) == value
