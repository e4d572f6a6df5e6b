"""BedrockRewriter: nothing a model says or fails to say may harm the turn (the oddities of case 31)."""

import pytest

from domain.types import Query, RewriteStatus
from generation.bedrock_rewriter import BedrockRewriter
from tests.generation.evidence import assistant, user
from tests.stubs.bedrock import BedrockStub, Reply

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


@pytest.mark.parametrize(
    "reply",
    [
        Reply(("",)),
        Reply(refuse=(429, "ThrottlingException")),
        Reply(refuse=(403, "AccessDeniedException")),
        Reply(delay_s=30),
    ],
    ids=["blank", "throttled", "denied", "silent"],
)
async def test_a_rewriter_that_fails_leaves_the_question_and_says_why(reply: Reply) -> None:
    with BedrockStub([reply]) as stub, stub.client() as client:
        rewrite = await BedrockRewriter(client, MODEL, timeout_s=0.3).rewrite("and its oil?", HISTORY)
    assert (rewrite.query, rewrite.status) == (Query("and its oil?"), RewriteStatus.FALLBACK)
    assert rewrite.reason


async def test_the_prompt_is_the_same_for_every_conversation() -> None:
    with BedrockStub([Reply(("What oil does pump P3 need?",))]) as stub, stub.client() as client:
        rewriter = BedrockRewriter(client, MODEL)
        await rewriter.rewrite("and its oil?", HISTORY)
        await rewriter.rewrite("and P4?", (user("What oil does P3 need?"),))
        assert stub.requests[0]["system"] == stub.requests[1]["system"]


async def test_a_paraphrase_is_one_more_variant_beside_the_query() -> None:
    with BedrockStub([Reply(("lubricant for pump P3",))]) as stub, stub.client() as client:
        query = await BedrockRewriter(client, MODEL).paraphrase(Query("What oil does pump P3 need?"))
    assert query == Query("What oil does pump P3 need?", ("lubricant for pump P3",))


async def test_a_paraphrase_that_fails_falls_back_to_keywords() -> None:
    with BedrockStub([Reply(refuse=(500, "InternalServerException"))]) as stub, stub.client() as client:
        query = await BedrockRewriter(client, MODEL).paraphrase(Query("What oil does pump P3 need?"))
    assert query.variants == ("oil pump P3",)
