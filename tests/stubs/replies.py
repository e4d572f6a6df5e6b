"""What a scripted model says, how it fails, and how slow it is. Shared by all model services of our own."""

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Reply:
    """One scripted reply.

    `chunks` come one event each, `pause_s` apart, then `stop_reason` and `usage`: None has the tokens counted, through
    the simulated prompt cache, and an empty one is not told. `refuse` = (HTTP status, error code) answers before the
    first byte instead. `breaks` ends the stream after the chunks in another way: "close" cuts the connection, "silence"
    says nothing more until the caller leaves, "no end" ends without a stop reason, "bad checksum", "bad length", "not
    json" and "empty delta" are malformed events, "unknown event" is one that nobody knows yet and ends well; anything
    else is sent as an exception event. `delay_s` passes before anything is sent.
    """

    chunks: tuple[str, ...] = ()
    stop_reason: str = "end_turn"
    usage: tuple[tuple[str, int], ...] | None = (("inputTokens", 10), ("outputTokens", 5), ("totalTokens", 15))
    refuse: tuple[int, str] | None = None
    retry_after: str | None = None
    breaks: str = ""
    delay_s: float = 0.0
    pause_s: float = 0.0


@dataclass(frozen=True)
class Latency:
    """Seconds before the first piece of a reply, and between two of them."""

    first_s: float = 0.0
    piece_s: float = 0.0


@dataclass
class Faults:
    """Shares of requests that are throttled, fail, or are cut in the middle of the reply; the same seed, the same ones.

    `stop_reason` is how the others end.
    """

    throttled: float = 0.0
    failed: float = 0.0
    cut: float = 0.0
    stop_reason: str = "end_turn"
    seed: int = 7
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def strike(self, reply: Reply) -> Reply:
        """The reply, or what becomes of it."""
        drawn = self._random.random()
        if drawn < self.throttled:
            return Reply(refuse=(429, "ThrottlingException"), retry_after="1")
        if drawn < self.throttled + self.failed:
            return Reply(refuse=(503, "ServiceUnavailableException"))
        if drawn < self.throttled + self.failed + self.cut:
            half = max(1, len(reply.chunks) // 2)
            return replace(reply, chunks=reply.chunks[:half], breaks="close")
        return replace(reply, stop_reason=self.stop_reason)


class Script:
    """Replies in order, one per request; the last one repeats. Empty: there is no script."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.replies = replies
        self._played = 0
        self._lock = threading.Lock()

    def next(self) -> Reply | None:
        with self._lock:
            reply = self.replies[min(self._played, len(self.replies) - 1)] if self.replies else None
            self._played += 1
        return reply
