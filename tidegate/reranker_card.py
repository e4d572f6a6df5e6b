"""The card of a trained reranker: what it is, what it learnt from, what dev said, and what it must not be tested on.

Every number has its count and its interval; what is not known is said to be not known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eval.ranking_gain import Gain
    from retrieval.pair_looks import Chosen


@dataclass(frozen=True, slots=True)
class SetFacts:
    """One set that was learnt from: how many lists, how many were kept to choose by, where it comes from."""

    name: str
    learnt: int
    chosen_by: int
    source: str  # origin and licence as its SOURCE.md says, or ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything a card tells."""

    command: str
    base: str
    started_from: str  # a folder's name, or ""
    steps: int
    minutes: float
    processes: int
    seed: int
    encoder: str
    reading_share: float
    sets: Sequence[SetFacts]
    left_out: Mapping[str, int]
    missed: int  # questions of which the first stage found no right passage
    gains: "Mapping[str, Gain]"  # dev set -> mix against fusion
    over_prior: "Mapping[str, Gain]"  # dev set -> mix against the feature reranker


def gains(chosen: "Sequence[Chosen]", before: str) -> "dict[str, Gain]":
    """By dev set, what the mix gains over `fusion` or `prior`."""
    from eval.ranking_gain import gain

    return {
        name: gain(
            {str(i): getattr(one, before) for i, one in enumerate(chosen) if one.set == name},
            {str(i): one.mixed for i, one in enumerate(chosen) if one.set == name},
        )
        for name in dict.fromkeys(one.set for one in chosen)
    }


def card(facts: Facts) -> str:
    """The card as Markdown."""
    learnt, chosen = sum(s.learnt for s in facts.sets), sum(s.chosen_by for s in facts.sets)
    start = f", trained further from `{facts.started_from}`" if facts.started_from else ""
    lines = [
        "# A reranker of Tidegate",
        "",
        f"Reads question and passage together: `{facts.base}`{start}. Its reading has a share of "
        f"{facts.reading_share:g} beside the feature reranker's score, each standardised over the list. English, and "
        "other text in Latin script only as far as the base knows it.",
        "",
        f"Made by `{facts.command}`: {facts.steps} steps in {facts.minutes:.0f} minutes of {facts.processes} "
        f"process(es), seed {facts.seed}, hard negatives found with encoder `{facts.encoder}` and convex fusion.",
        "",
        f"## Learnt from: {learnt} lists",
        "",
        "| set | learnt | chosen by | origin and licence |",
        "|---|---|---|---|",
        *(f"| {s.name} | {s.learnt} | {s.chosen_by} | {_cell(s.source) or 'not stated'} |" for s in facts.sets),
        "",
        *([f"Left out: {_left_out(facts.left_out)}.", ""] if facts.left_out else []),
        f"For {facts.missed} questions the first stage found no right passage; those that do not choose were learnt "
        "from all the same.",
        "",
        f"## What dev says: {chosen} lists, none of them learnt from",
        "",
        "nDCG@10 of the first 20 hits, with the 95 % interval of the paired difference. Weights and share were chosen "
        "on these lists, so the differences are a little too good: measure on other collections with `tidegate bench "
        "quality`.",
        "",
        "| set | lists | fusion | with this | difference to fusion | difference to the feature reranker |",
        "|---|---|---|---|---|---|",
        *(_row(name, found, facts.over_prior[name]) for name, found in facts.gains.items()),
        "",
        "## Not to be tested on",
        "",
        f"The sets above, the collections they were made of, and anything else over their passages: "
        f"{', '.join(s.name for s in facts.sets)}.",
        "",
    ]
    return "\n".join(lines)


def _row(name: str, fusion: "Gain", prior: "Gain") -> str:
    means = f"{fusion.n} | {fusion.before:.3f} | {fusion.after:.3f}"
    return f"| {name} | {means} | {_interval(fusion)} | {_interval(prior)} |"


def _interval(gain: "Gain") -> str:
    return f"{gain.difference:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"


def _left_out(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{count} questions ({reason})" for reason, count in reasons.items())


def _cell(text: str) -> str:
    """The text in one cell of a table."""
    return " ".join(text.replace("|", "/").split())
