"""What the prompt's shape is worth: a thousand conversations against a vendor's cache, with simulated time."""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from domain.costs import Prices, cost_usd, prompt_tokens
from domain.prompt import SYSTEM, plan
from domain.types import Draft, Usage
from generation.bedrock import BedrockGenerator
from tests.generation.evidence import assistant, evidence, user
from tests.stubs.prompt_cache import PromptCache, tokens

MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0"
PRICES = Prices(input_usd=3.0, output_usd=15.0, cache_read_usd=0.3, cache_write_usd=3.75)
SETTLED_S = 600.0  # after that the cache is in its steady state


class Vendor:
    """A client without a network: what the generator sends is counted through a simulated cache."""

    def __init__(self) -> None:
        self.now = 0.0
        self.cache = PromptCache(minimum=1024, ttl_s=300.0, clock=lambda: self.now)

    def converse_stream(self, *, modelId: str, system: Any, messages: Any, **_: Any) -> Mapping[str, "Stream"]:
        blocks = [*system, *(block for message in messages for block in message["content"])]
        counted = self.cache.count(modelId, [None if "cachePoint" in block else block["text"] for block in blocks])
        usage = {
            "inputTokens": counted.input,
            "outputTokens": 40,
            "cacheReadInputTokens": counted.read,
            "cacheWriteInputTokens": counted.write,
        }
        return {"stream": Stream(usage)}


class Stream:
    def __init__(self, usage: Mapping[str, int]) -> None:
        self.usage = usage

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield {"contentBlockDelta": {"delta": {"text": "It is so [S1]."}}}
        yield {"messageStop": {"stopReason": "end_turn"}}
        yield {"metadata": {"usage": self.usage}}

    def close(self) -> None:
        pass


def turns(sessions: int, seconds_between: float, seed: int = 7) -> list[tuple[float, int, int]]:
    """(when, session, turn), in the order of time: sessions come at random, of one to three turns each."""
    drawn, now, asked = random.Random(seed), 0.0, []
    for session in range(sessions):
        now += drawn.expovariate(1 / seconds_between)
        when = now
        for turn in range(drawn.randint(1, 3)):
            asked.append((when, session, turn))
            when += drawn.expovariate(1 / 40)
    return sorted(asked)


async def spent(sessions: int, seconds_between: float, **options: Any) -> list[Usage]:
    """What every answer used once the cache has settled."""
    vendor = Vendor()
    generator = BedrockGenerator(vendor, MODEL, **options)
    used = []
    for when, session, turn in turns(sessions, seconds_between):
        vendor.now = when
        history = [user("Earlier?"), assistant("So.")] * turn
        asked = plan(evidence(f"Passage of session {session}. " * 20), history, f"Question {turn}?", 10)
        *_, draft = [piece async for piece in generator.generate(asked)]
        assert isinstance(draft, Draft)
        if when >= SETTLED_S:
            used.append(draft.usage)
    return used


@pytest.mark.slow
async def test_over_a_thousand_sessions_the_prefix_comes_from_the_cache() -> None:
    used = await spent(1000, seconds_between=20.0)
    prefix = tokens(SYSTEM)
    assert len(used) > 1500
    assert {usage.cache_read_tokens + usage.cache_write_tokens for usage in used} == {prefix}
    share = sum(usage.cache_read_tokens for usage in used) / (prefix * len(used))
    assert share >= 0.9


async def test_reading_makes_the_long_prefix_cheaper_than_a_short_one_that_cannot_be_cached() -> None:
    cached = await spent(100, seconds_between=20.0)
    bare = await spent(100, seconds_between=20.0, cache_prefix=False)
    cost, full = (sum(cost_usd(usage, PRICES) or 0.0 for usage in used) / len(used) for used in (cached, bare))
    assert all(usage.cache_read_tokens == 0 for usage in bare)
    assert [prompt_tokens(usage) for usage in cached] == [prompt_tokens(usage) for usage in bare]
    # The prefix at a tenth of the price costs what a block of a tenth of its length would: under 300 tokens.
    short = 300 * PRICES.input_usd / 1e6
    assert cost < full - tokens(SYSTEM) * PRICES.input_usd / 1e6 + short


async def test_a_library_that_is_asked_too_seldom_pays_for_writing_instead() -> None:
    used = await spent(50, seconds_between=3000.0)
    reads = sum(usage.cache_read_tokens > 0 for usage in used) / len(used)
    assert reads < 0.9, "the vendor forgets after five minutes: say so before promising a share"
