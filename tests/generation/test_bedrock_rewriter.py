"""BedrockRewriter: nothing a model says may harm the turn, and a model that says nothing is a failed stage."""

import pytest

from domain.errors import StageFailed, StageTimeout, Throttled, UpstreamDenied
from domain.types import Query, RewriteStatus, Usage
from generation.bedrock_rewriter import BedrockRewriter
from tests.bedrock_stub import BedrockStub, Reply
from tests.generation.evidence import assistant, user

MODEL = "amazon.nova-lite-v1:0"
HISTORY = (user("What is the limit of pump P3?"), assistant("40 bar [S1]."))


async def test_a_first_turn_needs_no_rewrite_and_no_call() -> None:
    with BedrockStub([Reply(("x",))]) as stub, stub.client() as client:
        rewrite = await BedrockRewriter(client, MODEL).rewrite("What oil does P3 need?", ())
        assert (rewrite.status, stub.requests) == (RewriteStatus.NOT_NEEDED, [])


async def test_a_good_rewrite_is_used_without_its_quotes() -> None:
    with BedrockStub([Reply(('"What oil does pump P3 need?"',))]) as stub, stub.client() as client:
        rewrite = await BedrockRewriter(client, MODEL).rewrite("and its oil?", HISTORY)
    assert (rewrite.query.text, rewrite.status) == ("What oil does pump P3 need?", RewriteStatus.USED)


async def test_a_blank_rewrite_leaves_the_question_and_says_why() -> None:
    with BedrockStub([Reply(("",))]) as stub, stub.client() as client:
        rewrite = await BedrockRewriter(client, MODEL).rewrite("and its oil?", HISTORY)
    assert (rewrite.query, rewrite.status) == (Query("and its oil?"), RewriteStatus.FALLBACK)
    assert rewrite.reason == "the rewrite is empty"


@pytest.mark.parametrize(
    ("reply", "kind", "timeout_s"),
    [
        (Reply(refuse=(429, "ThrottlingException")), Throttled, 10.0),
        (Reply(refuse=(403, "AccessDeniedException")), UpstreamDenied, 10.0),
        (Reply(delay_s=30), StageTimeout, 0.3),
    ],
    ids=["throttled", "denied", "silent"],
)
async def test_a_model_that_does_not_answer_is_a_failed_stage(
    reply: Reply, kind: type[StageFailed], timeout_s: float
) -> None:
    with BedrockStub([reply]) as stub, stub.client() as client:
        rewriter = BedrockRewriter(client, MODEL, timeout_s=timeout_s)
        with pytest.raises(kind):
            await rewriter.rewrite("and its oil?", HISTORY)
        with pytest.raises(kind):
            await rewriter.paraphrase(Query("What oil does pump P3 need?"))


async def test_the_prompt_is_the_same_for_every_conversation() -> None:
    with BedrockStub([Reply(("What oil does pump P3 need?",))]) as stub, stub.client() as client:
        rewriter = BedrockRewriter(client, MODEL)
        await rewriter.rewrite("and its oil?", HISTORY)
        await rewriter.rewrite("and P4?", (user("What oil does P3 need?"),))
        assert stub.requests[0]["system"] == stub.requests[1]["system"]


async def test_a_paraphrase_is_one_more_variant_beside_the_query() -> None:
    with BedrockStub([Reply(("lubricant for pump P3",))]) as stub, stub.client() as client:
        query = (await BedrockRewriter(client, MODEL).paraphrase(Query("What oil does pump P3 need?"))).query
    assert query == Query("What oil does pump P3 need?", ("lubricant for pump P3",))


async def test_a_blank_paraphrase_gives_way_to_keywords() -> None:
    with BedrockStub([Reply(("",))]) as stub, stub.client() as client:
        query = (await BedrockRewriter(client, MODEL).paraphrase(Query("What oil does pump P3 need?"))).query
    assert query.variants == ("oil pump P3",)


async def test_what_the_model_used_comes_with_what_it_said() -> None:
    counted = (("inputTokens", 120), ("outputTokens", 9), ("totalTokens", 129))
    with BedrockStub([Reply(("What oil does pump P3 need?",), usage=counted)]) as stub, stub.client() as client:
        rewriter = BedrockRewriter(client, MODEL)
        rewrite = await rewriter.rewrite("and its oil?", HISTORY)
        wider = await rewriter.paraphrase(Query("Which lubricant does P3 take?"))
        first = await rewriter.rewrite("What oil does P3 need?", ())
    assert rewrite.usage == wider.usage == Usage(120, 9)
    assert first.usage == Usage(), "nobody was asked"


async def test_a_model_that_does_not_say_what_it_used_is_not_taken_to_be_free() -> None:
    with BedrockStub([Reply(("What oil does pump P3 need?",), usage=())]) as stub, stub.client() as client:
        rewrite = await BedrockRewriter(client, MODEL).rewrite("and its oil?", HISTORY)
    assert not rewrite.usage.measured
