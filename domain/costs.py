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


def answer_cost_usd(
    usage: Usage, prices: Prices | None, rewriting: Usage, rewriter_prices: Prices | None
) -> float | None:
    """Dollars of one answer: its text, and what rewriting its question took. None where either is not known.

    Where no model rewrote, its price is not asked for: most answers have none, and rules cost nothing.
    """
    written = cost_usd(usage, prices)
    rewritten = 0.0 if rewriting == Usage() else cost_usd(rewriting, rewriter_prices)
    return None if written is None or rewritten is None else written + rewritten


def total(first: Usage, second: Usage) -> Usage:
    """The tokens of both, class by class; not measured where one of them is not."""
    return Usage(
        first.input_tokens + second.input_tokens,
        first.output_tokens + second.output_tokens,
        first.cache_read_tokens + second.cache_read_tokens,
        first.cache_write_tokens + second.cache_write_tokens,
        first.measured and second.measured,
    )


def prompt_tokens(usage: Usage) -> int:
    """All tokens of the prompt: each is in exactly one of three classes."""
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens


def cache_read_share(usage: Usage) -> float | None:
    """The share of the prompt that was read from the cache, 0..1; None when no prompt was sent, or nothing is known."""
    total = prompt_tokens(usage)
    return usage.cache_read_tokens / total if usage.measured and total else None
