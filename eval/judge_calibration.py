"""What a judge is worth: held to answers whose grade is known, to itself, and to what must not move it.

Five figures, each with bounds, and a judge is calibrated when all of them are shown to be where they must. *Shown*
means that the bound is there and not only the mean: a judge that was asked too little has not passed. What it did not
judge counts as disagreeing with everybody, itself included.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from domain.errors import StageFailed
from domain.judging import Grade, Judgement, Submission
from domain.ports import Judge
from eval.agreement import kappa, luck
from eval.harness import Progress
from eval.intervals import Sample, interval
from eval.judge_cases import Case
from eval.judging import LEAST_JUDGED, judgements
from eval.rubric import Rubric

ALPHA = 0.05  # of each bound; the two of an interval that must hold 0 have half of it each
RESAMPLES = 1000
NOT_JUDGED = "not judged"
# The least that must be shown. Kappa .8 is "almost perfect" in Landis and Koch, 1977.
LEAST = {"kappa": 0.8, "retest": 0.95, "caught": 0.98}
UNMOVED = ("position", "verbosity")  # differences of grades whose interval has to hold 0
FEWEST_PAIRS = 100  # of fewer, an interval that holds 0 says that nobody looked


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean with the bounds of the true one, over `n` answers."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Record:
    """A judge's figures and what they are of: which judge by which rubric on which cases.

    `kappa` against the true grades and `retest` as the share of equal grades when asked again; `caught` the share of
    the ungrounded generator's answers that it calls ungrounded; `position` and `verbosity` what a grade gains, on the
    rubric's scale, when an answer is turned round and when there is more to read.
    """

    judge: str
    families: tuple[str, ...]
    rubric: str
    cases: str
    figures: Mapping[str, Figure]

    @property
    def problems(self) -> tuple[str, ...]:
        """Why this judge is not calibrated, each as a phrase; none when it is."""
        return tuple(_problems(self.figures))


async def calibrate(
    judge: Judge,
    rubric: Rubric,
    listed: Sequence[Case],
    set_digest: str,
    ungrounded: Mapping[str, Submission],
    *,
    seed: int = 7,
    workers: int = 4,
    progress: Progress = lambda done, total: None,
) -> Record:
    """The record of a judge that is asked about every case four times, and once about every `ungrounded` answer.

    Raises ValueError without a case, StageFailed when the judge could not be asked about too many: figures of that
    would be about the line to it.
    """
    asked: dict[str, Submission] = {}
    for case in listed:
        asked |= {f"{case.id}|0": case.submission, f"{case.id}|1": case.submission}
        asked |= {f"{case.id}|turned": case.turned, f"{case.id}|longer": case.longer}
    asked |= {f"{name}|ungrounded": submission for name, submission in ungrounded.items()}
    said = await judgements(judge, asked, workers=workers, progress=progress)
    silent = [each.judgement.reason for each in said.values() if not each.asked]
    if len(silent) > (1 - LEAST_JUDGED) * len(said):
        raise StageFailed(
            f"The judge {judge.name} could not be asked about {len(silent)} of {len(said)} answers, and nothing is "
            f"recorded of it: see that it is there, then try again; the first: {silent[0]}",
            "judge",
        )
    found = {name: each.judgement for name, each in said.items()}
    first, again, turned, longer = (
        [found[f"{case.id}|{way}"] for case in listed] for way in ("0", "1", "turned", "longer")
    )
    caught = [found[f"{name}|ungrounded"].grade is Grade.UNGROUNDED for name in ungrounded]
    figures = {
        "kappa": _kappa([case.grade.value for case in listed], [_label(one) for one in first], seed),
        "retest": _share([a.grade is not None and a.grade is b.grade for a, b in zip(first, again, strict=True)], seed),
        "caught": _share(caught, seed),
        "position": _moved(first, turned, rubric, seed),
        "verbosity": _moved(first, longer, rubric, seed),
    }
    return Record(judge.name, tuple(sorted(judge.families)), judge.rubric, set_digest, figures)


def _label(judgement: Judgement) -> str:
    return NOT_JUDGED if judgement.grade is None else judgement.grade.value


def _kappa(truth: Sequence[str], said: Sequence[str], seed: int) -> Figure:
    """Bounds by resampling cases, and never above what the exact bound of plain agreement leaves."""
    value, by_luck, n = kappa(truth, said), luck(truth, said), len(truth)
    means = sorted(_resampled(truth, said, seed))
    agreed = _share([t == s for t, s in zip(truth, said, strict=True)], seed)
    low, high = ((bound - by_luck) / (1 - by_luck) for bound in (agreed.low, agreed.high))
    at = round(ALPHA * RESAMPLES)
    return Figure(value, float(min(low, means[at], value)), float(max(high, means[-1 - at], value)), n)


def _resampled(truth: Sequence[str], said: Sequence[str], seed: int) -> list[float]:
    """Kappa of RESAMPLES resamples; drawing how often each pair of labels comes is the same, all at once."""
    labels, n = sorted({*truth, *said}), len(truth)
    seen = Counter(zip(truth, said, strict=True))
    shares = np.array([seen[t, s] / n for t in labels for s in labels])
    drawn = np.random.default_rng(seed).multinomial(n, shares / shares.sum(), size=RESAMPLES) / n
    pairs = drawn.reshape(RESAMPLES, len(labels), len(labels))  # [n_resamples, true, said]
    agreed = pairs.trace(axis1=1, axis2=2)
    by_luck = (pairs.sum(axis=2) * pairs.sum(axis=1)).sum(axis=1)
    beyond = np.where(by_luck < 1, (agreed - by_luck) / np.maximum(1 - by_luck, 1e-12), 1.0)
    return [float(value) for value in beyond]


def _share(held: Sequence[bool], seed: int) -> Figure:
    return _figure([float(one) for one in held], 0.0, ALPHA, seed)


def _moved(before: Sequence[Judgement], after: Sequence[Judgement], rubric: Rubric, seed: int) -> Figure:
    """Over the cases that were judged both times: what was not judged is counted by the retest and by kappa."""
    pairs = [(a.grade, b.grade) for a, b in zip(before, after, strict=True)]
    gained = [rubric.scale[b] - rubric.scale[a] for a, b in pairs if a is not None and b is not None]
    return _figure(gained, -1.0, ALPHA / 2, seed)


def _figure(values: Sequence[float], least: float, alpha: float, seed: int) -> Figure:
    if not values:
        return Figure(0.0, least, 1.0, 0)  # nothing seen: anything is possible
    sample = Sample.of(values, least, 1.0)
    low, high = interval(sample, alpha, seed)
    return Figure(sample.mean, float(low), float(high), sample.n)


def _problems(figures: Mapping[str, Figure]) -> list[str]:
    wrong = []
    for name, least in LEAST.items():
        figure = figures.get(name)
        if figure is None or not figure.low >= least:  # NaN is not enough either
            wrong.append(f"{name} {_told(figure)}, shown to be at least {least:g} is wanted")
    for name in UNMOVED:
        figure = figures.get(name)
        if figure is None or figure.n < FEWEST_PAIRS or not figure.low <= 0 <= figure.high:
            wrong.append(f"{name} {_told(figure)}, an interval with 0 over at least {FEWEST_PAIRS} answers is wanted")
    return wrong


def _told(figure: Figure | None) -> str:
    if figure is None:
        return "not measured"
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}] over {figure.n}"
