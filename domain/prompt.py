"""The prompt plan: four blocks whose order the constructor enforces, and the cache boundary after the first.

Model vendors cache the longest unchanged prefix of a request, so nothing variable may ever stand before the
boundary: the system block is byte-stable within a release and identical for every session and every turn.
What the block says is instructions.py, rendering for one vendor that vendor's file in generation/; this file only says
what comes where.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.injection import guarded
from domain.instructions import SYSTEM
from domain.types import Evidence, Turn

__all__ = ["SYSTEM", "PromptPlan", "plan", "recent"]


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """The request in its one legal order: system, evidence, history, question last.

    Frozen, so that no block can be moved or added afterwards. A plan without a system block or a question, or with
    evidence that is numbered otherwise, cannot be built. `prefix` is what a vendor may cache.
    """

    system: str
    evidence: tuple[Evidence, ...]
    history: tuple[Turn, ...]
    question: str

    def __post_init__(self) -> None:
        if not self.system.strip():
            raise ValueError("The system block is empty: it is the cached prefix and always comes first.")
        if not self.question.strip():
            raise ValueError("The question is empty: it is the last block and always present.")
        expected = tuple(f"S{i}" for i in range(1, len(self.evidence) + 1))
        found = tuple(e.sid for e in self.evidence)
        if found != expected:
            raise ValueError(f"Evidence must be numbered S1..Sn in order, got {', '.join(found)}.")

    @property
    def prefix(self) -> bytes:
        """The cacheable prefix: block 1 and nothing else."""
        return self.system.encode()


def plan(evidence: Sequence[Evidence], turns: Sequence[Turn], question: str, history_turns: int) -> PromptPlan:
    """The plan of one turn: our system block, all evidence made harmless, the last turns, the question."""
    return PromptPlan(SYSTEM, tuple(map(guarded, evidence)), recent(turns, history_turns), question)


def recent(turns: Sequence[Turn], n: int) -> tuple[Turn, ...]:
    """The last `n` turns, none for 0: what a model may look at."""
    return tuple(turns[-n:]) if n > 0 else ()
