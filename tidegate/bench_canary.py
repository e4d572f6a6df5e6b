"""`tidegate bench canary`: how soon, and how surely, a canary is told from stable, on simulated traffic.

Every simulated request is a real question of the sample library with what real versions got for it. Two versions
that do equally well answer in random order; in a drop of 5 points a share of the canary's requests gets what a worse
version got. The betting is the one that live canaries are watched with.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import ceil, log, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.config import AsJson
from tidegate.console import Code, complain, loaded, say, say_json
from tidegate.progress import progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    from domain.releases import Scorecard

METRIC = "evidence_recall@6"  # the share of the evidence that is found: what live `coverage` stands for without gold
QUESTIONS = 600
DROP = 0.05
ALPHA = 0.05
POWER = 0.9  # of the fixed-size test; the watched one finds more, which is not counted in its favour
HORIZON = 2_000  # requests after which a drop counts as missed

MOST_RATIO = 0.2
MOST_FALSE_ALARMS = ALPHA


@dataclass(frozen=True, slots=True)
class Pool:
    """What three versions got for each question: two that do equally well, and a worse one; [n_questions] each."""

    one: "NDArray[np.float64]"
    other: "NDArray[np.float64]"
    worse: "NDArray[np.float64]"

    def share(self, drop: float) -> float:
        """The share of requests answered by the worse version with which the mean drops by exactly `drop`."""
        return drop / float(((self.one + self.other) / 2.0 - self.worse).mean())

    def draw(self, random: "Generator", n: int, drop: float) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
        """`n` requests as the canary and as stable answered them. Without a drop the two are exchangeable."""
        import numpy as np

        asked, swapped = random.integers(len(self.one), size=n), random.random(n) < 0.5
        canary = np.where(swapped, self.other[asked], self.one[asked])
        stable = np.where(swapped, self.one[asked], self.other[asked])
        lost = random.random(n) < (self.share(drop) if drop else 0.0)
        return np.where(lost, self.worse[asked], canary), stable


@dataclass(frozen=True, slots=True)
class Found:
    """What `bench canary` finds. Requests are means over the runs; a missed drop counts with the whole horizon.

    `false_alarm` is the share of runs without a drop in which the wealth ever reached 1 / alpha, whatever the observed
    drop was then. `false_pass` is the share of runs with the drop in which it was ever excluded. `pass_requests` is the
    median until an equally good canary is known to be. A live canary watches several metrics, which share alpha, and
    turns back only when the observed drop is as large as the tolerated one too, here the true one: `turned_back` is the
    share of runs with the drop that do within the horizon, after `turned_back_requests` in the median.
    """

    requests_ratio: float
    requests_ratio_median: float
    paired_requests: float
    paired_requests_median: float
    unpaired_requests: int
    unpaired_requests_at_reached_power: int
    false_alarm: float
    false_pass: float
    missed: float
    pass_requests: float
    turned_back: float
    turned_back_requests: float
    alpha: float
    power: float
    drop: float
    runs: int
    horizon: int
    questions: int


def canary(
    ctx: typer.Context,
    runs: Annotated[
        int, typer.Option(min=10, max=100_000, help="Simulated canaries with the drop; as many without.")
    ] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the traffic.")] = 1,
    as_json: AsJson = False,
) -> Code:
    """Simulate canaries: how soon is a drop seen?

    Half of them have a drop of 5 points and half have none. Exit code 1 when one of the figures is not what is wanted.
    """
    from tidegate.bench_scores import CHUNKINGS, scorecards

    with progress() as report:
        cards = scorecards(loaded(ctx).settings, CHUNKINGS, [METRIC], report, QUESTIONS)
        report("simulating canaries", 0, 0)
        found = simulate(pool(cards), runs, seed)
    if as_json:
        say_json(asdict(found))
    else:
        for name, value in asdict(found).items():
            say(f"{name:<36} {value:g}")
    misses = shortfalls(found)
    for text in misses:
        complain(text)
    return Code.REFUSED if misses else Code.DONE


def shortfalls(found: Found) -> list[str]:
    """What was not reached, with the numbers; empty when all was.

    The drop is drawn as exactly the one to exclude, so `false_pass` comes near alpha in truth: it is allowed three
    standard deviations of the draw more.
    """
    draw = 3.0 * sqrt(ALPHA * (1.0 - ALPHA) / found.runs)
    wanted = (
        ("requests_ratio", found.requests_ratio, MOST_RATIO),
        ("false_alarm", found.false_alarm, MOST_FALSE_ALARMS),
        ("false_pass", found.false_pass, ALPHA + draw),
        ("missed", found.missed, 1.0 - POWER),
    )
    return [f"{name} is {value:.4g}, wanted at most {most:.4g}" for name, value, most in wanted if not value <= most]


def pool(cards: "Mapping[str, Scorecard]") -> Pool:
    """The values of the questions that are eligible for METRIC, which depends on the question alone."""
    import numpy as np

    one, other, worse = (card.values[METRIC] for card in cards.values())
    eligible = sorted(question for question, value in one.items() if value is not None)
    return Pool(*(np.array([per[question] for question in eligible], dtype=float) for per in (one, other, worse)))


def simulate(values: Pool, runs: int, seed: int, horizon: int = HORIZON) -> Found:
    """`runs` canaries with the drop and as many without, each watched after every one of `horizon` requests."""
    import numpy as np

    alarms, passes, seen, wrong, turned = [], [], [], [], []
    for run in range(runs):
        same, dropped = (
            np.subtract(*values.draw(np.random.default_rng((seed, kind, run)), horizon, drop))
            for kind, drop in ((0, 0.0), (1, DROP))
        )
        alarms.append(worse_after(same))
        passes.append(fine_after(same))
        seen.append(worse_after(dropped))
        wrong.append(fine_after(dropped))
        turned.append(turned_back_after(dropped))
    needed = np.array([horizon if after is None else after for after in seen])
    missed = float(np.mean([after is None for after in seen]))
    # Nothing missed in n runs shows no more than a miss in 3 / n of them (rule of three).
    reached = min(1.0 - missed, 1.0 - 3.0 / runs)
    fixed = unpaired_requests(values, ALPHA, POWER)
    return Found(
        requests_ratio=float(needed.mean()) / fixed,
        requests_ratio_median=float(np.median(needed)) / fixed,
        paired_requests=float(needed.mean()),
        paired_requests_median=float(np.median(needed)),
        unpaired_requests=fixed,
        unpaired_requests_at_reached_power=unpaired_requests(values, ALPHA, max(reached, POWER)),
        false_alarm=float(np.mean([after is not None for after in alarms])),
        false_pass=float(np.mean([after is not None for after in wrong])),
        missed=missed,
        pass_requests=float(np.median([horizon if after is None else after for after in passes])),
        turned_back=float(np.mean([after is not None for after in turned])),
        turned_back_requests=float(np.median([horizon if after is None else after for after in turned])),
        alpha=ALPHA,
        power=POWER,
        drop=DROP,
        runs=runs,
        horizon=horizon,
        questions=len(values.one),
    )


def worse_after(differences: "NDArray[np.float64]") -> int | None:
    """After how many requests the canary is known to be worse; None when it never is."""
    from eval.sequences import Wealth, dropped

    return _first(Wealth([0.0], dropped(DROP)).add(-differences)[:, 0] >= log(1.0 / ALPHA))


def fine_after(differences: "NDArray[np.float64]") -> int | None:
    """After how many requests the drop is excluded; None when it never is."""
    from eval.sequences import Wealth, unchanged

    return _first(Wealth([-DROP], unchanged(DROP)).add(differences)[:, 0] >= log(1.0 / ALPHA))


def turned_back_after(differences: "NDArray[np.float64]") -> int | None:
    """After how many requests eval/canary.py would fail one of its metrics for this; None when it never does."""
    import numpy as np

    from eval.canary import ALARMS, LIFELONG
    from eval.sequences import Restarts, Wealth, dropped

    alpha = ALPHA / ALARMS
    wealth = Wealth([0.0], dropped(DROP)).add(-differences)[:, 0]
    worse = np.maximum.accumulate(wealth) >= log(1.0 / (LIFELONG * alpha))
    in_all = _first(worse & (np.cumsum(differences) <= -DROP * np.arange(1, len(differences) + 1)))
    lately = Restarts(0.0, dropped(DROP), (1.0 - LIFELONG) * alpha, DROP)
    lately.add(-differences)
    if lately.alarm is None:
        return in_all
    return lately.alarm.upto if in_all is None else min(in_all, lately.alarm.upto)


def unpaired_requests(values: Pool, alpha: float, power: float) -> int:
    """Requests, both versions together, of the test that compares two independent groups once, at a size fixed before.

    n per version = (z[1 - alpha] + z[power])^2 (var_canary + var_stable) / drop^2, one-sided, with the variances that
    the simulated values really have: canary as with the drop, stable as without.
    """
    import numpy as np

    share = values.share(DROP)
    good = np.concatenate([values.one, values.other])
    mean = (1.0 - share) * good.mean() + share * values.worse.mean()
    square = (1.0 - share) * (good**2).mean() + share * (values.worse**2).mean()
    z = NormalDist().inv_cdf(1.0 - alpha) + NormalDist().inv_cdf(power)
    return 2 * ceil(z**2 * float(square - mean**2 + good.var()) / DROP**2)


def _first(true: "NDArray[np.bool_]") -> int | None:
    return int(true.argmax()) + 1 if true.any() else None
