"""A vendor's prompt cache, simulated: which tokens of a request are read, written and neither, and what they cost.

As Amazon Bedrock describes it ("Prompt caching for faster model inference"): everything before a cache point is one
prefix, kept for `ttl_s` after its last use, and only from `minimum` tokens on; below, the call silently does not cache.
"""

import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

PIECE = re.compile(r"\w{1,5}|[^\w\s]")  # about what a tokenizer makes of English


def tokens(text: str) -> int:
    """How many tokens a text has here."""
    return len(PIECE.findall(text))


@dataclass(frozen=True)
class Counted:
    """Tokens of one request by class; `input` is what was neither read from the cache nor written to it."""

    input: int
    read: int
    write: int


@dataclass
class PromptCache:
    """The cache of one vendor. `clock` gives seconds."""

    minimum: int = 1024
    ttl_s: float = 300.0
    clock: Callable[[], float] = time.monotonic
    _used: dict[str, float] = field(default_factory=dict)  # digest of a prefix -> when it was last used
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, model_id: str, blocks: Iterable[str | None]) -> Counted:
        """The classes of a request's blocks in their order; None is a cache point."""
        now, seen, total = self.clock(), hashlib.sha256(model_id.encode()), 0
        read = cached = 0
        with self._lock:
            for block in blocks:
                if block is not None:
                    seen.update(block.encode(errors="replace") + b"\0")
                    total += tokens(block)
                elif total >= self.minimum:
                    digest = seen.hexdigest()
                    if now - self._used.get(digest, -self.ttl_s - 1) <= self.ttl_s:
                        read = total
                    self._used[digest], cached = now, total
        return Counted(total - cached, read, cached - read)


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens, by class."""

    input: float
    output: float
    read: float
    write: float

    def of(self, spent: "Spent") -> float:
        return (
            spent.input * self.input + spent.output * self.output + spent.read * self.read + spent.write * self.write
        ) / 1e6


@dataclass
class Spent:
    """Tokens of all requests so far."""

    input: int = 0
    output: int = 0
    read: int = 0
    write: int = 0


# Made up, in the proportions that vendors use: reading costs a tenth of input, writing a quarter more.
PRICES = {"sonnet": Price(3.0, 15.0, 0.3, 3.75), "haiku": Price(1.0, 5.0, 0.1, 1.25), "nova": Price(0.8, 3.2, 0.2, 0.8)}


def price_of(model_id: str) -> Price | None:
    """The price of the model, by a part of its id."""
    return next((price for part, price in PRICES.items() if part in model_id), None)
