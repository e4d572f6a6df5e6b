"""Costs by class of token, and what nobody knows is None."""

from dataclasses import replace

import pytest

from domain.answering import answer, outcome
from domain.costs import Prices, cache_read_share, cost_usd, prompt_tokens
from domain.errors import UpstreamInterrupted
from domain.naming import Naming
from domain.ports import Stages
from domain.types import Done, Failed, Usage
from tests.fakes import RULES, FakeRetriever, FakeRewriter, ScriptedGenerator, ask, chunk, hits

PRICES = Prices(input_usd=3.0, output_usd=15.0, cache_read_usd=0.3, cache_write_usd=3.75)
SPENT = Usage(input_tokens=1000, output_tokens=200, cache_read_tokens=10_000, cache_write_tokens=400)
FOUND = hits(chunk("d1#0", "It is so."))


def test_every_class_has_its_price() -> None:
    # (1000 * 3 + 200 * 15 + 10000 * .3 + 400 * 3.75) / 1e6 = (3000 + 3000 + 3000 + 1500) / 1e6 dollars
    assert cost_usd(SPENT, PRICES) == pytest.approx(0.0105)
    assert cost_usd(Usage(), PRICES) == 0, "no model was asked"


def test_without_a_price_or_without_counts_a_cost_is_not_measured() -> None:
    assert cost_usd(SPENT, None) is None
    assert cost_usd(Usage(measured=False), PRICES) is None


def test_the_three_classes_of_a_prompt_add_up_and_the_cached_share_is_of_all_of_them() -> None:
    assert prompt_tokens(SPENT) == 11_400
    assert cache_read_share(SPENT) == pytest.approx(10_000 / 11_400)
    assert cache_read_share(Usage()) is cache_read_share(Usage(measured=False)) is None


async def ended(generator: ScriptedGenerator, found: FakeRetriever, prices: Prices | None) -> Done | Failed:
    stages = Stages(FakeRewriter(), found, None, generator)
    return await outcome(answer(ask("Is it so?"), stages, replace(RULES, prices=prices), Naming(())))


async def test_an_answer_says_in_its_trace_what_it_cost() -> None:
    done = await ended(ScriptedGenerator(usage=SPENT), FakeRetriever(FOUND), PRICES)
    assert isinstance(done, Done)
    assert done.answer.trace.cost_usd == pytest.approx(0.0105)
    unpriced = await ended(ScriptedGenerator(usage=SPENT), FakeRetriever(FOUND), None)
    assert isinstance(unpriced, Done)
    assert unpriced.answer.trace.cost_usd is None


async def test_where_nothing_is_found_no_model_is_asked_and_it_costs_nothing() -> None:
    done = await ended(ScriptedGenerator(usage=SPENT), FakeRetriever(), PRICES)
    assert isinstance(done, Done)
    assert done.answer.trace.cost_usd == 0


async def test_what_a_broken_answer_cost_is_not_known() -> None:
    broken = ScriptedGenerator(error=UpstreamInterrupted("It broke.", "generate"))
    failed = await ended(broken, FakeRetriever(FOUND), PRICES)
    assert isinstance(failed, Failed)
    assert failed.trace is not None
    assert failed.trace.cost_usd is None
