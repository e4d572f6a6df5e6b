"""What tokens cost: four classes, their prices, and how much of a prompt came from the vendor's cache.

Not measured is None and never 0: without a price nobody knows a cost, and a model that does not say what it used has
cost something. An answer that asked no model cost nothing, which is known.
"""

from dataclasses import dataclass

from domain.types import Usage


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars per million tokens of one model, by class."""

    input_usd: float
    output_usd: float
    cache_read_usd: float
    cache_write_usd: float


def cost_usd(usage: Usage, prices: Prices | None) -> float | None:
    """Dollars of one call; None without prices, or when the model did not say what it used."""
    if prices is None or not usage.measured:
        return None
    return (
        usage.input_tokens * prices.input_usd
        + usage.output_tokens * prices.output_usd
        + usage.cache_read_tokens * prices.cache_read_usd
        + usage.cache_write_tokens * prices.cache_write_usd
    ) / 1_000_000


def prompt_tokens(usage: Usage) -> int:
    """All tokens of the prompt: each is in exactly one of three classes."""
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens


def cache_read_share(usage: Usage) -> float | None:
    """The share of the prompt that was read from the cache, 0..1; None when no prompt was sent, or nothing is known."""
    total = prompt_tokens(usage)
    return usage.cache_read_tokens / total if usage.measured and total else None
