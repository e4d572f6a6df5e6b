"""How many questions a verdict takes, and what a question set of this size can see: told before anything is judged.

Everything here is approximate and errs on the side of more questions; what decides is verdicts.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from math import ceil, sqrt
from statistics import NormalDist

from domain.releases import Scorecard
from eval.gates import Gate
from eval.pairing import Slices, pair

MOST = 10_000_000  # more questions than anybody asks: beyond it there is no number
# Assumed where there is nothing to compare with: what two sensible chunkers of the sample library differ by.
ASSUMED_SD = 0.19
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Detectable:
    """What the questions at hand can tell about the metric of one gate.

    Of `questions` in the set, `pairs` are eligible in both versions, or expected to be. `sd` is the standard deviation
    of their differences, `assumed` where there was nothing to compare with. `effect` is the smallest drop that FAILs
    with the wanted power, None when not even losing everything would, as below `min_items` pairs. `needed` is the size
    of the whole set at which the `planned` drop is told from no change, None when no number is enough. Both are of the
    gate by itself: one of a slice (`sliced`) must also stand out among all slices to FAIL, which takes more.
    """

    label: str
    questions: int
    pairs: int
    sd: float
    assumed: bool
    max_drop: float
    min_items: int
    sliced: bool
    effect: float | None
    planned: float
    needed: int | None

    def __str__(self) -> str:
        sd = f"sd {self.sd:.3f}{' (assumed)' if self.assumed else ''}"
        if self.effect is not None:
            seen = f"{'at best ' if self.sliced else ''}a drop of {self.effect:.3f}"
        else:
            seen = f"no drop at all{f' below min_items {self.min_items}' if self.pairs < self.min_items else ''}"
        about = "at least" if self.sliced else "about"
        enough = f"{about} {self.needed} questions" if self.needed is not None else "no number of questions"
        more = "" if self.needed is not None else f": it is not above max_drop {self.max_drop}"
        return (
            f"{self.label}: {self.pairs} of {self.questions} questions pair, {sd}: they can tell {seen}; "
            f"telling {self.planned:.3f} takes {enough}{more}"
        )


def detectable(
    candidate: Scorecard,
    baseline: Scorecard | None,
    gates: Sequence[Gate],
    slices: Slices,
    *,
    alpha: float,
    power: float,
    effect: float,
) -> tuple[Detectable, ...]:
    """What this question set can detect, one per gate with a max_drop, in their order; `str` of each is for people."""
    told = []
    for gate in gates:
        if gate.max_drop is None:
            continue
        pairs = pair(candidate, baseline, gate, slices)
        n, sd = (len(pairs.differences), pairs.sd) if baseline else (len(pairs.candidate), ASSUMED_SD)
        share = n / pairs.asked if pairs.asked else 0.0
        able = smallest_effect(n, sd, gate.max_drop, alpha, power) if n >= gate.min_items else None
        needed = questions_needed(sd, effect, gate.max_drop, alpha, power)
        told.append(
            Detectable(
                label=gate.label,
                questions=pairs.asked,
                pairs=n,
                sd=sd,
                assumed=baseline is None,
                max_drop=gate.max_drop,
                min_items=gate.min_items,
                sliced=bool(gate.slice),
                effect=able,
                planned=effect,
                needed=ceil(max(needed, gate.min_items) / share) if needed and share else None,
            )
        )
    return tuple(told)


def questions_needed(sd: float, effect: float, max_drop: float, alpha: float, power: float) -> int | None:
    """The pairs at which a drop of `effect` FAILs and an unchanged version PASSes, each with at least `power`.

    None when no number does: a drop that is not above `max_drop` is tolerated, however surely it is known. A drop is
    taken to come in its loudest form, whole questions lost, which adds effect * (1 - effect) to the variance.
    """
    if effect <= max_drop or max_drop <= 0:
        return None
    z, loud = _quantile(power), sqrt(sd**2 + effect * (1 - effect))

    def enough(n: int) -> bool:
        passes = half_width(n, sd, 1.0, alpha) + z * sd / sqrt(n) <= max_drop
        reaches = z * loud / sqrt(n) <= effect - max_drop
        return passes and reaches and half_width(n, loud, 1.0, alpha) + z * loud / sqrt(n) <= effect

    return first(enough)


def smallest_effect(n: int, sd: float, max_drop: float, alpha: float, power: float) -> float | None:
    """The smallest drop that FAILs with at least `power` over `n` pairs; None when none does."""
    if n < 1:
        return None
    z = _quantile(power)
    for thousandths in count(max(1, ceil(max_drop * 1000))):
        effect = thousandths / 1000
        if effect > 1:
            return None
        loud = sqrt(sd**2 + effect * (1 - effect))
        noise = z * loud / sqrt(n)
        if noise <= effect - max_drop and half_width(n, loud, 1.0, alpha) + noise <= effect:
            return effect
    return None


def to_settle(distance: float, sd: float, reach: float, alpha: float) -> int | None:
    """The pairs at which an interval is narrow enough to end `distance` from its mean, everything staying as seen."""
    return first(lambda n: half_width(n, sd, reach, alpha) < distance) if distance > 0 else None


def half_width(n: int, sd: float, reach: float, alpha: float) -> float:
    """About how far the exact bound lies from the mean of `n` values, `reach` being the way to the furthest value.

    The mean, spread and skew of n + 1 exponential weights of which one pulls with `reach`, by Cornish and Fisher.
    """
    z, spread = _NORMAL.inv_cdf(1 - alpha), reach**2 + n * sd**2
    return (reach + z * sqrt(spread) + (z**2 - 1) * reach**3 / (3 * spread)) / n


def _quantile(power: float) -> float:
    """The normal quantile of a power, with a fifth of the chance to miss kept back: the sd is an estimate too."""
    return _NORMAL.inv_cdf(1 - 0.8 * (1 - power))


def first(enough: Callable[[int], bool]) -> int | None:
    """The smallest number from 1 to MOST that is enough, given that all larger ones are too."""
    if not enough(MOST):
        return None
    low, high = 0, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
