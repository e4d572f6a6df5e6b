"""Does the evidence cover the question? A learned weighing of signals, and the three answers that follow from it.

What is weighed is evidence_signals.py; the weights were learned elsewhere (eval/covering_training.py) and are only read
here. Decided before anybody writes, so that no generator is asked about what the library does not tell. A failed search
never comes here: it is an error, and no answer of this file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, isfinite

from domain.evidence_signals import SIGNALS, signals, wanted
from domain.grounding import passage
from domain.names import has, written
from domain.parting import parts_of
from domain.specifics import spelled, stated, states
from domain.types import Evidence, Hit

DEPTH = 3  # questions that a tree asks on the way to a leaf


class Cover(StrEnum):
    """How far the evidence covers a question. UNDECIDED: nobody learned what these signals are worth."""

    COVERED = "covered"
    PARTLY = "partly_covered"
    NOT_COVERED = "not_covered"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Coverage:
    """The decision on one question: `chance`, 0..1, that it is covered, and the signals that say so, by name.

    `lacking` are the things, as the question spells them, that a partly covered question names and no passage does.
    """

    cover: Cover = Cover.UNDECIDED
    chance: float | None = None
    bar: float | None = None
    lacking: tuple[str, ...] = ()
    signals: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """A full tree of DEPTH levels, its nodes row by row: a value below the node's bar goes left, any other right.

    `asks` are places in SIGNALS. Raises ValueError for a tree of another size or of signals that are not there.
    """

    asks: tuple[int, ...]
    bars: tuple[float, ...]
    leaves: tuple[float, ...]

    def __post_init__(self) -> None:
        nodes = 2**DEPTH - 1
        if (len(self.asks), len(self.bars), len(self.leaves)) != (nodes, nodes, nodes + 1):
            raise ValueError(f"a tree has {nodes} nodes and {nodes + 1} leaves")
        if not all(map(isfinite, (*self.bars, *self.leaves))) or not all(0 <= ask < len(SIGNALS) for ask in self.asks):
            raise ValueError(f"a tree asks for one of {len(SIGNALS)} signals and has finite numbers")

    def at(self, values: Sequence[float]) -> float:
        """The leaf that the values, in the order of SIGNALS, lead to."""
        node = 0
        for _ in range(DEPTH):
            node = 2 * node + (1 if values[self.asks[node]] < self.bars[node] else 2)
        return self.leaves[node - len(self.asks)]


@dataclass(frozen=True, slots=True)
class Covering:
    """What signals are worth: trees whose leaves add up, from `start` on, to the log-odds that a question is covered.

    `bar` is the chance under which it is declined. `encoder` is the one whose cosines were learned from.
    """

    encoder: str
    start: float
    trees: tuple[Tree, ...]
    bar: float

    def chance(self, known: Mapping[str, float]) -> float:
        """The chance, 0..1, that evidence with these signals covers its question."""
        values = [known[name] for name in SIGNALS]
        return 1 / (1 + exp(-(self.start + sum(tree.at(values) for tree in self.trees))))


def decide(question: str, evidence: Sequence[Evidence], hits: Sequence[Hit], covering: Covering | None) -> Coverage:
    """Whether the packed evidence covers the question. `hits` are those it was packed from.

    UNDECIDED without weights, and where no hit has a cosine: not measured is not alike to nothing.
    """
    if covering is None or not evidence or not any(hit.cosine is not None for hit in hits):
        return Coverage()
    known = signals(question, evidence, hits)
    chance = covering.chance(known)
    shown = tuple((name, round(known[name], 4)) for name in SIGNALS)
    found = Coverage(Cover.COVERED, round(chance, 4), covering.bar, signals=shown)
    if chance < covering.bar:
        return replace(found, cover=Cover.NOT_COVERED)
    lacking = unnamed(question, evidence)
    return replace(found, cover=Cover.PARTLY, lacking=lacking) if lacking else found


def unnamed(question: str, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """What a question of several parts names and no passage does, when something else of it is named.

    A question of one part is covered or it is not: a name that its sources spell otherwise is nothing that it lacks.
    """
    if not parts_of(question):
        return ()
    want, texts = wanted(question), [passage(one) for one in evidence]
    spellings = spelled(question)
    gone = [name for name in want.names if not any(has(written(text), name) for text in texts)]
    gone += [spellings[one] for one in want.identifiers if not any(states(stated(text), one) for text in texts)]
    return tuple(gone) if len(gone) < want.subjects else ()
