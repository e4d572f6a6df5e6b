"""Which hosted models cache a prompt prefix, and from how many tokens on.

Below the minimum a call succeeds and silently does not cache, so this is checked before the first call instead.
Minimums as documented by the vendors (Amazon Bedrock user guide, "Prompt caching for faster model inference";
Anthropic, "Prompt caching"), read in 2026. They change: extend the table, or pass another one.
"""

import re
from collections.abc import Mapping

from domain.errors import CannotCache

MINIMUM_TOKENS: Mapping[str, int] = {  # part of the model id -> smallest cacheable prefix, in tokens
    "anthropic.claude-3-5-sonnet-20241022": 1024,
    "anthropic.claude-3-7-sonnet": 1024,
    "anthropic.claude-sonnet-4-2025": 1024,
    "anthropic.claude-sonnet-4-5": 1024,
    "anthropic.claude-sonnet-4-6": 2048,
    "anthropic.claude-opus-4-2025": 1024,
    "anthropic.claude-opus-4-1": 1024,
    "anthropic.claude-opus-4-5": 4096,
    "anthropic.claude-opus-4-6": 4096,
    "anthropic.claude-3-5-haiku": 2048,
    "anthropic.claude-haiku-4-5": 4096,
    "amazon.nova-micro": 1000,
    "amazon.nova-lite": 1000,
    "amazon.nova-pro": 1000,
    "amazon.nova-premier": 1000,
}


def check_cacheable(
    model_id: str, prefix_tokens: int, table: Mapping[str, int] = MINIMUM_TOKENS, minimum: int | None = None
) -> None:
    """Returns when `model_id` caches a prefix of `prefix_tokens`; raises CannotCache, for the operator, when not.

    `minimum` is the smallest prefix in tokens where the operator knows better than the table. Ids of inference profiles
    (`eu.anthropic...`) and their ARNs are known by the model id inside them.
    """
    if minimum is None:
        minimum = minimum_tokens(model_id, table)
    way_out = "choose another generation.model_id, or set generation.allow_uncached: true to pay the full price"
    if minimum is None:
        raise CannotCache(
            f"Model {model_id!r} is not known to cache prompt prefixes: {way_out}, or generation.cache_minimum to the "
            "smallest prefix in tokens that it caches."
        )
    if prefix_tokens < minimum:
        raise CannotCache(
            f"Model {model_id!r} caches prefixes of {minimum} tokens or more and the system block has at least "
            f"{prefix_tokens}, so nothing may be cached: {way_out}."
        )


def least_tokens(text: str) -> int:
    """A number of tokens that `text` has at least, whatever the tokenizer.

    Vendors do not publish their tokenizers. What is in use cuts at blanks and between words and punctuation before it
    looks for subwords, so no token spans two of these pieces; a run of one kind of punctuation counts once.
    """
    return len(_PIECE.findall(text))


_PIECE = re.compile(r"\w+|[^\w\s]+")


def minimum_tokens(model_id: str, table: Mapping[str, int] = MINIMUM_TOKENS) -> int | None:
    """The smallest cacheable prefix of a model in tokens, or None when it is not known to cache at all."""
    return next((table[part] for part in sorted(table, key=len, reverse=True) if part in model_id), None)
