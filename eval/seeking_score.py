"""What the steps of an agent were worth: whether it stopped at the right moment, and how many steps found nothing new.

Scored from a trace and the documents that hold the evidence, without a judge. A run is complete from the step on after
which every one of those documents has been found. An agent that says "covered" claims to be complete:

    stop precision   of the runs that stopped as covered, those that were complete
    stop recall      of the runs that were complete at some step, those that stopped as covered right then
    repeats          of all steps after a first one, those that found no chunk which an earlier one had not

A share of nothing is None: unmeasured is not zero.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from domain.seeking import ENOUGH
from domain.types import RetrievalRound


@dataclass(frozen=True, slots=True)
class Run:
    """One question's steps: the chunks that each found, whether it stopped as covered, and the documents needed."""

    steps: tuple[frozenset[str], ...]
    covered: bool
    needed: frozenset[str]

    @property
    def complete_at(self) -> int | None:
        """The number of the step (from 1) after which all that is needed was found; None when it never was."""
        found: set[str] = set()
        for number, step in enumerate(self.steps, 1):
            found |= {chunk_id.rpartition("#")[0] for chunk_id in step}
            if self.needed <= found:
                return number
        return None


@dataclass(frozen=True, slots=True)
class SeekingScore:
    """Shares 0..1 over `n` runs, None where there is nothing to share; `steps` is the mean number of steps."""

    n: int
    full_chain: float
    stop_precision: float | None
    stop_recall: float | None
    repeats: float | None
    steps: float


def run_of(rounds: Sequence[RetrievalRound], stopped: str, needed: Set[str]) -> Run:
    """The run that `rounds` and `stopped` of a trace tell of. `needed` are ids of documents."""
    steps = tuple(frozenset(chunk_id for chunk_id, _ in each.candidates) for each in rounds)
    return Run(steps, stopped == ENOUGH, frozenset(needed))


def score(runs: Sequence[Run]) -> SeekingScore:
    """The score of these runs. Raises ValueError for none."""
    if not runs:
        raise ValueError("No run to score: an agent's steps are judged on at least one question.")
    claimed = [run.complete_at is not None for run in runs if run.covered]
    could = [run.covered and run.complete_at == len(run.steps) for run in runs if run.complete_at is not None]
    later = [repeat for run in runs for repeat in _repeats(run)]
    return SeekingScore(
        n=len(runs),
        full_chain=sum(run.complete_at is not None for run in runs) / len(runs),
        stop_precision=_share(claimed),
        stop_recall=_share(could),
        repeats=_share(later),
        steps=sum(len(run.steps) for run in runs) / len(runs),
    )


def _repeats(run: Run) -> list[bool]:
    """For every step after the first, whether it found nothing new."""
    return [step <= frozenset[str]().union(*run.steps[:i]) for i, step in enumerate(run.steps) if i]


def _share(claims: Sequence[bool]) -> float | None:
    return sum(claims) / len(claims) if claims else None
