"""Is any part of the question set worse? Many parts are looked at, and the chance of one false alarm is held for all.

A slice is too small to be shown as good as before, so it is only watched, and in two ways: `by_signs` sees many
questions that got a little worse, `by_share` a few that were lost altogether. Each has half of the false alarms.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, lgamma, log, log1p

import numpy as np

from eval.pairing import Pairs

FLIPS = 4000
LEAST_PAIRS = 20  # fewer say nothing that the reader should be woken for
WAYS = 2
# What a slice must reach by its own signs before its share is looked at: one that merely changes much more often than
# the rest is told no more often than this. Four lost and none won are 2 ** -4 = .0625, so four are the fewest told.
ALONE = 0.1


@dataclass(frozen=True, slots=True)
class Watched:
    """Paired differences of one metric within one slice, by question id, and the drop that would matter.

    `lost` of its questions had something and now have nothing, `won` of them the other way round. Of all questions of
    the metric the slice is `share`, and `turned` of all were lost or won.
    """

    metric: str
    slice: str
    differences: Mapping[str, float]
    max_drop: float
    lost: int = 0
    won: int = 0
    turned: int = 0
    share: float = 1.0

    @property
    def label(self) -> str:
        """The slice as a verdict calls it."""
        return f"{self.metric} [{self.slice}]"

    @property
    def drop(self) -> float:
        """How far the mean fell; negative when it rose."""
        return -fsum(self.differences.values()) / len(self.differences)


def watched(metric: str, pairs: Pairs, slices: Mapping[str, Mapping[str, str]], max_drop: float) -> tuple[Watched, ...]:
    """The slices of one metric that can be watched: at least LEAST_PAIRS pairs, and not simply every question."""
    parts: dict[str, list[str]] = {}
    for question in pairs.differences:
        for dimension, value in slices.get(question, {}).items():
            parts.setdefault(f"{dimension}={value}", []).append(question)
    most = len(pairs.differences) - 1
    some = {name: inside for name, inside in sorted(parts.items()) if LEAST_PAIRS <= len(inside) <= most}
    return cut(metric, pairs, some, max_drop)


def cut(metric: str, pairs: Pairs, parts: Mapping[str, Collection[str]], max_drop: float) -> tuple[Watched, ...]:
    """Slices by name and the questions in them, one at least, out of all `pairs` of a metric."""
    differences = pairs.differences
    lost = {q for q in differences if pairs.candidate[q] == 0 < pairs.baseline[q]}
    won = {q for q in differences if pairs.baseline[q] == 0 < pairs.candidate[q]}
    return tuple(
        Watched(
            metric=metric,
            slice=name,
            differences={q: differences[q] for q in inside},
            max_drop=max_drop,
            lost=len(lost.intersection(inside)),
            won=len(won.intersection(inside)),
            turned=len(lost) + len(won),
            share=len(inside) / len(differences),
        )
        for name, inside in parts.items()
    )


def chances(tests: Sequence[Watched], seed: int) -> tuple[float, ...]:
    """Per test, how likely *any* of them would look this much worse if nothing had changed; small means worse.

    Looked at in two ways, so the smaller chance is doubled, and the one by share holds for one slice: it is multiplied
    by their number (Bonferroni).
    """
    found = []
    for test, (among, alone) in zip(tests, by_signs(tests, seed), strict=True):
        counted = len(tests) * by_share(test) if alone <= ALONE else 1.0
        found.append(min(1.0, WAYS * min(among, counted)))
    return tuple(found)


def by_share(test: Watched) -> float:
    """How likely a part of this share, drawn at random, would hold as many of the turned questions as the slice lost.

    To `by_signs` a lost question is a coin toss; here it is as rare as it is in the whole set. A slice may turn more
    often than the rest without being worse, and must not be told for it: won questions count in the whole and not in
    the slice, which allows for twice as often, and the share is at least what would lose as many as the slice won.
    Added up exactly: `turned` questions, each in the slice with that chance.
    """
    n = test.turned
    if test.lost == 0 or test.share >= 1.0:
        return 1.0
    share = max(test.share, test.won / n)
    ways = [lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) for k in range(test.lost, n + 1)]
    return fsum(exp(w + k * log(share) + (n - k) * log1p(-share)) for k, w in enumerate(ways, test.lost))


def by_signs(tests: Sequence[Watched], seed: int) -> tuple[tuple[float, float], ...]:
    """Per test, how likely any of them, and how likely this one alone, would be as low if nothing had changed.

    If nothing changed, which version a question's two values came from is a coin toss, so each sign of a difference
    is as likely as the other. All differences of one question are flipped together, in every metric and slice: they
    are not independent, and pretending so would cost power. Differences are scaled by their root sum of squares.
    Source: Westfall and Young, Resampling-Based Multiple Testing, 1993 (single-step, over a shared resampling).
    """
    ids = sorted({question for test in tests for question, d in test.differences.items() if d})
    if not ids:
        return ((1.0, 1.0),) * len(tests)
    place = {question: row for row, question in enumerate(ids)}
    scaled = np.zeros((len(ids), len(tests)))  # [n_questions, n_tests]
    for column, test in enumerate(tests):
        for question, d in test.differences.items():
            if d:
                scaled[place[question], column] = d
    norms = np.sqrt((scaled**2).sum(axis=0))
    scaled /= np.where(norms > 0, norms, 1.0)
    seen = scaled.sum(axis=0) + 1e-9  # [n_tests], the more negative the worse; sums equal on paper count as equal
    signs = np.random.default_rng(seed).integers(0, 2, size=(FLIPS, len(ids)), dtype=np.int8)
    flipped = (2.0 * signs - 1.0) @ scaled  # [n_flips, n_tests]
    among = np.searchsorted(np.sort(flipped.min(axis=1)), seen, side="right")
    alone = (flipped <= seen).sum(axis=0)
    # What was seen is one of the equally likely outcomes, hence the + 1.
    return tuple(
        (float((1 + a) / (FLIPS + 1)), float((1 + b) / (FLIPS + 1))) for a, b in zip(among, alone, strict=True)
    )
