"""`tidegate bench gate`: how often the gate is wrong, on versions of which it is known whether they are worse.

The values are those of the sample library cut in two ways, the gates those of the settings, the number of questions
the one that is printed before a verdict. What is simulated and how is eval/gate_trials.py.
"""

import multiprocessing
import os
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import ConfigError
from domain.releases import Outcome
from tidegate.config import AsJson
from tidegate.console import Code, complain, loaded, note, say, say_json
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from domain.releases import Scorecard
    from eval.gate_trials import Population, Said, Trial, Truth
    from eval.gates import Gate
    from eval.pairing import Slices
    from tidegate.settings import Settings

PAIR = ("heading-200", "sentence-200")
SLICE_SHARE, SLICE_EFFECT = 0.05, 0.1
TOLD = ("itself",)  # nothing is asked of these, so a quarter of the trials is enough
BATCH = 50  # trials per task: a few seconds, so that progress is seen

# What must hold: at most, or at least. `alpha` is added where an error rate is allowed to be alpha.
AT_MOST = {"aa_fail": 0.01, "worse_pass": 0.01, "slice_false_alarm": 0.0}
BOUNDS = {
    "promoted_3pt": ("at most", 0.01),
    "power_3pt": ("at least", 0.9),
    "power_slice": ("at least", 0.8),
    "power_slice_faded": ("at least", 0.8),
    "degenerate_inconclusive": ("at least", 1.0),
    "more_questions_flip": ("at most", 0.0),
}


@dataclass(frozen=True, slots=True)
class Found:
    """What `bench gate` finds: shares of `simulations` trials; `same_fail` of a quarter as many.

    `n` questions are asked, the most that a gate of `target`'s list needs to tell `effect`. `aa_fail` and `aa_promoted`
    are of versions that did not change on average, `same_fail` of a version against itself. `worse_pass` is the target
    gate alone, on a version worse by exactly its max_drop; `power_3pt` too, worse by `effect`. In `power_slice` a few
    questions of `slice` are lost in every metric, so many that the largest of its means is 10 points lower on average;
    in `power_slice_faded` its mean of the target is 10 points lower, every question a little.
    """

    n: int
    alpha: float
    simulations: int
    target: str
    effect: float
    slice: str
    aa_fail: float
    aa_promoted: float
    same_fail: float
    worse_pass: float
    power_3pt: float
    promoted_3pt: float
    power_slice: float
    power_slice_faded: float
    slice_false_alarm: float
    degenerate_inconclusive: float
    more_questions_flip: int
    seconds: float


def gate(
    ctx: typer.Context,
    simulations: Annotated[int, typer.Option(min=10, max=1_000_000, help="Comparisons of each kind.")] = 2_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 1,
    as_json: AsJson = False,
) -> Code:
    """Simulate comparisons: how often is the gate wrong?

    Of versions that are equal, worse, or worse in one slice, with the values of the sample library and the gates of
    the settings. Exit code 1 when one of the figures is not what is wanted.
    """
    from eval.gates import CLOSED
    from eval.questions import load, slices
    from tidegate.bench_scores import CHUNKINGS, at_home, scorecards
    from tidegate.sample import questions_path

    settings = loaded(ctx).settings
    # Attacks are no questions that could be drawn, and their gate has no drop.
    listed = (line.gate for line in settings.evaluation.gates if not line.advisory)
    gates = tuple(gate for gate in listed if gate.metric not in CLOSED)
    with progress() as report:
        cuts = {name: CHUNKINGS[name] for name in PAIR}
        cards = scorecards(settings, cuts, [each.metric for each in gates], report)
        parts = {question.id: slices(question) for question in load(questions_path(at_home(settings)))}
        one, other = (cards[name] for name in PAIR)
        found = simulate(settings, gates, one, other, parts, simulations, seed, report)
    if as_json:
        say_json(asdict(found))
    else:
        for name, value in asdict(found).items():
            say(f"{name:<24} {value}")
    missed = shortfalls(found)
    for text in missed:
        complain(text)
    return Code.REFUSED if missed else Code.DONE


def simulate(
    settings: "Settings",
    gates: "tuple[Gate, ...]",
    one: "Scorecard",
    other: "Scorecard",
    slices: "Slices",
    simulations: int,
    seed: int,
    report: Report,
    workers: int | None = None,
) -> Found:
    """All trials, on as many processes as there are cores; the same seed gives the same figures on any number."""
    from eval.gate_trials import Truth, degenerate, flips, population

    began = time.monotonic()
    everything = population(one, other, slices, [each.metric for each in gates])
    trial = planned(settings, gates, one, other, slices, everything)
    said: dict[Truth, list[Said]] = {truth: [] for truth in Truth}
    for truth, some in _all(everything, trial, simulations, seed, workers):
        said[truth] += some
        report("judging", sum(map(len, said.values())), 0)
    some_seeds = range(seed, seed + max(10, simulations // 50))
    nothing_known = [outcome for each in some_seeds for outcome in degenerate(everything, trial, each)]
    flipped = [flips(everything, trial, truth, each) for each in some_seeds for truth in (Truth.SAME, Truth.DROP)]
    same = said[Truth.SAME]
    return Found(
        n=trial.n,
        alpha=trial.alpha,
        simulations=simulations,
        target=trial.target.label,
        effect=trial.effect,
        slice=trial.slice,
        aa_fail=_share(each.outcome is Outcome.FAIL for each in same),
        aa_promoted=_share(each.outcome is Outcome.PASS for each in same),
        same_fail=_share(each.outcome is Outcome.FAIL for each in said[Truth.ITSELF]),
        worse_pass=_share(each.target is Outcome.PASS for each in said[Truth.LIMIT]),
        power_3pt=_share(each.target is Outcome.FAIL for each in said[Truth.DROP]),
        promoted_3pt=_share(each.outcome is Outcome.PASS for each in said[Truth.DROP]),
        power_slice=_share(each.outcome is not Outcome.PASS for each in said[Truth.LOST]),
        power_slice_faded=_share(each.outcome is not Outcome.PASS for each in said[Truth.FADED]),
        slice_false_alarm=_share(each.slices is Outcome.FAIL for each in same),
        degenerate_inconclusive=_share(outcome is Outcome.INCONCLUSIVE for outcome in nothing_known),
        more_questions_flip=sum(flipped),
        seconds=round(time.monotonic() - began, 1),
    )


def planned(
    settings: "Settings",
    gates: "tuple[Gate, ...]",
    one: "Scorecard",
    other: "Scorecard",
    slices: "Slices",
    everything: "Population",
) -> "Trial":
    """Trials with as many questions as the gate that needs the most asks for; that gate is the one that is tried."""
    from eval.gate_trials import Trial
    from eval.planning import detectable

    chosen = settings.evaluation
    lines = detectable(other, one, gates, slices, alpha=chosen.alpha, power=chosen.power, effect=chosen.effect)
    for line in lines:
        note(str(line))
    needs = {line.label: line.needed for line in lines if line.needed is not None}
    if not needs:
        raise ConfigError(
            f"No gate over all questions has a max_drop below {chosen.effect}: lower one in evaluation.gates, or raise "
            "evaluation.effect."
        )
    hardest = max(needs, key=lambda label: needs[label])
    # Floors hold a version to a level, whatever it is compared with: how often they are missed says nothing here.
    drops = tuple(replace(each, floor=None) for each in gates if each.max_drop is not None)
    target = next(each for each in drops if each.label == hardest)
    return Trial(
        n=needs[hardest],
        gates=drops,
        target=target,
        effect=chosen.effect,
        slice=small_slice(everything, target.metric),
        slice_effect=SLICE_EFFECT,
        alpha=chosen.alpha,
    )


def small_slice(everything: "Population", metric: str) -> str:
    """The slice whose share is nearest to 5 %, of those with enough left to lose."""
    names = sorted({f"{dimension}={value}" for part in everything.slices for dimension, value in part.items()})
    able = [name for name in names if everything.mean(metric, name) > 2 * SLICE_EFFECT]
    if not able:
        raise ConfigError(f"No slice of the sample library has a {metric} that could fall by {SLICE_EFFECT}.")
    return min(able, key=lambda name: (abs(everything.share(name) - SLICE_SHARE), name))


def shortfalls(found: Found) -> list[str]:
    """What was not reached, with the numbers; empty when all was."""
    bounds = {name: ("at most", found.alpha + more) for name, more in AT_MOST.items()} | BOUNDS
    missed = []
    for name, (way, bound) in bounds.items():
        value = getattr(found, name)
        if (value > bound) if way == "at most" else (value < bound):
            missed.append(f"{name} is {value:.4f}, wanted {way} {bound:g}, over {found.simulations} simulations")
    return missed


def _all(
    everything: "Population", trial: "Trial", simulations: int, seed: int, workers: int | None
) -> "Iterable[tuple[Truth, list[Said]]]":
    from eval.gate_trials import Truth, trials

    tasks = [
        (truth, range(seed + first, seed + min(first + BATCH, simulations)))
        for first in range(0, simulations, BATCH)
        for truth in Truth
        if truth not in TOLD or first < simulations / 4
    ]
    count = workers or len(os.sched_getaffinity(0))
    if count == 1:
        yield from ((truth, trials(everything, trial, truth, seeds)) for truth, seeds in tasks)
        return
    # A fresh interpreter each: this one may have threads, which do not survive a fork.
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(trials, everything, trial, truth, seeds): truth for truth, seeds in tasks}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def _share(hits: Iterable[bool]) -> float:
    each = list(hits)
    return round(sum(each) / len(each), 4)
