"""One question with what the service gave back for it: what every metric is a function of."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.costs import Prices
from domain.types import Status
from eval.client import Body, Failure
from eval.questions import Question


@dataclass(frozen=True, slots=True)
class Limits:
    """What a good answer takes at most, and what tokens cost, where that is known."""

    slo_ms: float
    cost_cap_usd: float
    prices: Prices | None = None
    rewriter_prices: Prices | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """One question with what the service gave back for it, and after how many milliseconds.

    Without a latency or without limits, what needs them was not measured: None, as for a question not eligible.
    """

    question: Question
    response: Body | Failure
    latency_ms: float | None = None
    limits: Limits | None = None

    @property
    def answerable(self) -> bool:
        """True when the library holds the answer for this reader."""
        return self.question.type != "null"

    @property
    def failed(self) -> bool:
        """True when the request gave no answer of any kind."""
        return isinstance(self.response, Failure)

    @property
    def status(self) -> str:
        """How the answer ended, in the service's words; empty when the request failed."""
        return "" if isinstance(self.response, Failure) else self.response["status"]

    @property
    def relevance(self) -> float | None:
        """The chance, as the service put it, that the best passage holds evidence; None where it said nothing, or
        where passages of earlier turns stand before the best one.
        """
        if isinstance(self.response, Failure) or self.question.history or not self.response["consulted"]:
            return None
        chance: float | None = self.response.get("relevance")
        return chance

    @property
    def abstained(self) -> bool:
        """True when the service itself said that the library does not cover the question. A failure says nothing."""
        return self.status == Status.NO_SOURCES

    @property
    def text(self) -> str:
        """The text of the answer; empty when the request failed."""
        return "" if isinstance(self.response, Failure) else self.response["answer"]

    def passages(self, kind: str) -> Sequence[Body]:
        """The `citations` or the `consulted` passages; none when the request failed."""
        return [] if isinstance(self.response, Failure) else self.response[kind]
