"""What every Rewriter promises."""

from collections.abc import Iterator

import pytest

from domain.ports import Rewriter
from domain.types import Query, RewriteStatus
from generation.bedrock_rewriter import BedrockRewriter
from generation.rewriting import AsTyped, RulesRewriter
from tests.bedrock_stub import BedrockStub, Reply
from tests.generation.evidence import assistant, user

HISTORY = (user("What is the limit of pump P3?"), assistant("40 bar [S1]."))


@pytest.fixture(params=["rules", "as typed", "bedrock"])
def rewriter(request: pytest.FixtureRequest) -> Iterator[Rewriter]:
    if request.param in ("rules", "as typed"):
        yield RulesRewriter() if request.param == "rules" else AsTyped()
        return
    with BedrockStub([Reply(("What oil does pump P3 need?",))]) as stub, stub.client() as client:
        yield BedrockRewriter(client, "amazon.nova-lite-v1:0")


async def test_a_first_turn_is_searched_as_typed(rewriter: Rewriter) -> None:
    rewrite = await rewriter.rewrite("and its oil?", ())
    assert (rewrite.query, rewrite.status) == (Query("and its oil?"), RewriteStatus.NOT_NEEDED)


async def test_the_effective_query_is_never_blank_and_only_a_used_rewrite_differs(rewriter: Rewriter) -> None:
    for question in ("and its oil?", "What oil does pump P9 need?", "???", "它呢？", "x" * 2000):
        rewrite = await rewriter.rewrite(question, HISTORY)
        assert rewrite.query.text.strip()
        assert rewrite.status is RewriteStatus.USED or rewrite.query.text == question
        assert bool(rewrite.reason) == (rewrite.status is RewriteStatus.FALLBACK)


async def test_a_paraphrase_keeps_the_query_and_adds_at_most_one_variant(rewriter: Rewriter) -> None:
    for query in (Query("What oil does pump P3 need?"), Query("???"), Query("oil?", ("oil",))):
        found = await rewriter.paraphrase(query)
        wider = found.query
        assert found.status is (RewriteStatus.UNCHANGED if wider == query else RewriteStatus.USED)
        assert wider.text == query.text
        assert wider.variants[: len(query.variants)] == query.variants
        assert len(wider.variants) <= len(query.variants) + 1
        assert len({*wider.variants, wider.text}) == len(wider.variants) + 1
