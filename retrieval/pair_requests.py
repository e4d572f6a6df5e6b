"""What the pair engine keeps of a request: its pairs, who else waits for them, and what its caller is given.

No threads and no clock here; all of it is guarded by the lock of pair_engine.py.
"""

from concurrent.futures import Future
from dataclasses import dataclass, field

from domain.errors import StageFailed
from retrieval.pairs import JoinedPair


@dataclass(frozen=True, slots=True)
class Reading:
    """The logit of each hit in the order given, None where time ran out; how many that were read lost their end."""

    logits: tuple[float | None, ...]
    truncated: int


@dataclass(slots=True)
class Ran:
    """What the engine has computed so far, for figures: tokens are short of padded tokens by what nobody needed."""

    batches: int = 0
    pairs: int = 0
    tokens: int = 0
    padded_tokens: int = 0

    def add(self, pairs: int, tokens: int, padded_tokens: int) -> None:
        """Counts one batch more."""
        self.batches += 1
        self.pairs += pairs
        self.tokens += tokens
        self.padded_tokens += padded_tokens


@dataclass(slots=True, eq=False)
class WaitingPair:
    """A distinct pair and everybody who waits for it."""

    key: bytes
    joined: JoinedPair
    cost: int  # tokens that are computed for it, its padding included
    askers: "list[Request]" = field(default_factory=list)
    running: bool = False


class Request:
    """One caller's pairs: `todo` in the first stage's order, `places` of each key in the list of logits."""

    def __init__(self, deadline: float, urgency: tuple[float, int], pairs: int) -> None:
        self.deadline, self.urgency = deadline, urgency
        self.future: Future[Reading] = Future()
        self.todo: dict[bytes, WaitingPair] = {}
        self.places: dict[bytes, list[int]] = {}
        self.logits: list[float | None] = [None] * pairs
        self.truncated = [False] * pairs
        self.begun = False

    def settle(self) -> None:
        """Gives the caller what there is, unless it left."""
        if self.future.set_running_or_notify_cancel():
            in_part = sum(cut for cut, logit in zip(self.truncated, self.logits, strict=True) if logit is not None)
            self.future.set_result(Reading(tuple(self.logits), in_part))

    def fail(self, error: StageFailed) -> None:
        """Tells the caller, unless it left."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)
