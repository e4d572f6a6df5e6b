"""Costs by class of token, and what nobody knows is None."""

from dataclasses import replace

import pytest

from domain.answering import answer, outcome
from domain.costs import Prices, answer_cost_usd, cache_read_share, cost_usd, prompt_tokens, total
from domain.errors import StageTimeout, UpstreamInterrupted
from domain.naming import Naming
from domain.ports import Stages
from domain.types import Done, Failed, Trace, Usage
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


CHEAP = Prices(input_usd=0.1, output_usd=0.4, cache_read_usd=0.0, cache_write_usd=0.0)
REWRITTEN = Usage(input_tokens=2000, output_tokens=50)


def test_what_rewriting_took_is_part_of_what_an_answer_cost() -> None:
    # (2000 * .1 + 50 * .4) / 1e6 = .00022 dollars beside the .0105 of the answer
    assert answer_cost_usd(SPENT, PRICES, REWRITTEN, CHEAP) == pytest.approx(0.01072)
    assert answer_cost_usd(SPENT, PRICES, Usage(), None) == pytest.approx(0.0105), "no model rewrote"


@pytest.mark.parametrize(
    ("prices", "rewriting", "rewriter_prices"),
    [(PRICES, REWRITTEN, None), (None, REWRITTEN, CHEAP), (PRICES, Usage(measured=False), CHEAP)],
    ids=["no price of the rewriter", "no price of the generator", "the rewriter did not say"],
)
def test_a_part_that_nobody_knows_makes_the_whole_unknown(
    prices: Prices | None, rewriting: Usage, rewriter_prices: Prices | None
) -> None:
    assert answer_cost_usd(SPENT, prices, rewriting, rewriter_prices) is None


def test_adding_tokens_keeps_the_classes_apart_and_knows_no_more_than_its_parts() -> None:
    assert total(SPENT, REWRITTEN) == Usage(3000, 250, 10_000, 400)
    assert not total(SPENT, Usage(measured=False)).measured


async def rewritten(rewriter: FakeRewriter, *, deeper: bool) -> Trace:
    generator = ScriptedGenerator(usage=SPENT)
    rules = replace(RULES, prices=PRICES, rewriter_prices=CHEAP)
    asked = replace(ask("and its oil?"), deeper=deeper)
    done = await outcome(answer(asked, Stages(rewriter, FakeRetriever(FOUND), None, generator), rules, Naming(())))
    assert isinstance(done, Done)
    return done.answer.trace


async def test_a_rewrite_and_a_paraphrase_are_counted_once_each_beside_the_answer() -> None:
    trace = await rewritten(FakeRewriter(to="oil of pump P3", usage=REWRITTEN), deeper=True)
    assert (trace.usage, trace.rewriting) == (SPENT, total(REWRITTEN, REWRITTEN))
    assert trace.cost_usd == pytest.approx(0.0105 + 2 * 0.00022)


async def test_what_a_rewriter_that_failed_took_is_not_known_and_so_is_the_cost() -> None:
    trace = await rewritten(FakeRewriter(error=StageTimeout("It said nothing.", "rewrite")), deeper=False)
    assert (trace.rewriting.measured, trace.cost_usd) == (False, None)


async def test_what_a_broken_answer_cost_is_not_known() -> None:
    broken = ScriptedGenerator(error=UpstreamInterrupted("It broke.", "generate"))
    failed = await ended(broken, FakeRetriever(FOUND), PRICES)
    assert isinstance(failed, Failed)
    assert failed.trace is not None
    assert failed.trace.cost_usd is None
