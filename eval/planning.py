"""How many questions a verdict takes, and what a question set of this size can see: told before anything is judged."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.releases import Scorecard
from eval.gates import Gate


@dataclass(frozen=True, slots=True)
class Detectable:
    """What the questions at hand can tell about one gate's metric.

    `pairs` are the questions eligible in both versions, `sd` is that of their differences, assumed where there was
    nothing to compare with (`assumed`). `effect` is the smallest drop that is seen with the wanted power, None when
    not even losing everything would be; `needed` the questions of the whole set at which the planned effect is, None
    when no number of them suffices.
    """

    label: str
    pairs: int
    sd: float
    assumed: bool
    effect: float | None
    needed: int | None

    def __str__(self) -> str:
        return self.label


def detectable(
    candidate: Scorecard,
    baseline: Scorecard | None,
    gates: Sequence[Gate],
    *,
    alpha: float,
    power: float,
    effect: float,
) -> tuple[Detectable, ...]:
    """What this question set can detect, one per gate with a max_drop; `str` of each is a line for people."""
    return ()
