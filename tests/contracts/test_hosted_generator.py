"""What every Generator over a network promises beside the contract of all: how faults end, before and in the stream.

Every fault runs against a server of our own for each vendor, spoken to by the real client.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from domain.errors import StageFailed, StageTimeout, Throttled, UpstreamDenied, UpstreamInterrupted
from domain.ports import Generator
from domain.prompt import SYSTEM, PromptPlan
from domain.types import Delta, Draft, StopReason, Usage
from generation.bedrock import BedrockGenerator
from generation.efforts import Effort
from generation.openai_compatible import OpenAICompatibleGenerator
from tests.bedrock_stub import BedrockStub, Reply
from tests.generation.evidence import evidence
from tests.stubs.openai import OpenAIStub

PLAN = PromptPlan(SYSTEM, evidence("The limit is 40 bar.", title="Pumps"), (), "What is the limit?")
THREE = ("The limit ", "is 40 bar ", "[S1].")
ONCE = Effort(attempts=1)
TWICE = Effort(attempts=2, backoff_s=0.01)


@dataclass
class Hosted:
    generator: Generator
    stub: Any


@asynccontextmanager
async def bedrock(replies: list[Reply], **options: Any) -> AsyncIterator[Hosted]:
    with BedrockStub(replies) as stub, stub.client() as client:
        yield Hosted(BedrockGenerator(client, "anthropic.claude-sonnet-4-5-20250929-v1:0", **options), stub)


@asynccontextmanager
async def openai_compatible(replies: list[Reply], **options: Any) -> AsyncIterator[Hosted]:
    with OpenAIStub(replies) as stub:
        async with stub.client(key="made-up-secret") as client:
            yield Hosted(OpenAICompatibleGenerator(client, "qwen3:8b", **options), stub)


@pytest.fixture(params=[bedrock, openai_compatible], ids=lambda made: made.__name__)
def hosted(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return request.param


async def spoken(generator: Generator, heard: list[str]) -> Draft:
    async with aclosing(generator.generate(PLAN)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Draft):
                return piece
            heard.append(piece.text)
    raise AssertionError("no draft")


async def test_a_reply_comes_as_it_was_sent_with_its_tokens_by_class(hosted: Callable[..., Any]) -> None:
    usage = (("inputTokens", 7), ("outputTokens", 3), ("totalTokens", 2011), ("cacheReadInputTokens", 2001))
    heard: list[str] = []
    async with hosted([Reply(THREE, usage=usage)]) as there:
        draft = await spoken(there.generator, heard)
    assert heard == list(THREE)
    assert (draft.text, draft.stop) == ("".join(THREE), StopReason.END)
    assert draft.usage == Usage(input_tokens=7, output_tokens=3, cache_read_tokens=2001, cache_write_tokens=0)


@pytest.mark.parametrize(
    ("breaks", "error"),
    [
        ("close", UpstreamInterrupted),
        ("no end", UpstreamInterrupted),
        ("throttlingException", Throttled),
        ("modelStreamErrorException", UpstreamInterrupted),
        ("internalServerException", UpstreamInterrupted),
        ("serviceUnavailableException", UpstreamInterrupted),
        ("silence", StageTimeout),
        ("bad checksum", UpstreamInterrupted),
        ("bad length", UpstreamInterrupted),
        ("not json", UpstreamInterrupted),
        ("empty delta", UpstreamInterrupted),
    ],
)
@pytest.mark.parametrize("after", [0, 3])
async def test_a_stream_that_breaks_ends_in_one_error_and_repeats_nothing(
    hosted: Callable[..., Any], breaks: str, error: type[StageFailed], after: int
) -> None:
    heard: list[str] = []
    patience_s = 0.5 if breaks == "silence" else 30.0
    async with hosted([Reply(THREE[:after], breaks=breaks)], effort=TWICE, read_timeout_s=patience_s) as there:
        with pytest.raises(error) as caught:
            await spoken(there.generator, heard)
        # Before the first text nobody saw anything, so a second attempt is fine; silence has cost its time already.
        assert len(there.stub.requests) == (2 if after == 0 and breaks != "silence" else 1)
    assert type(caught.value) is error
    assert heard == list(THREE[:after])
    assert caught.value.retryable
    for secret in ("made-up", "123456789012", "slow down"):
        assert secret not in str(caught.value)


async def test_a_break_before_the_first_text_is_mended_by_another_attempt(hosted: Callable[..., Any]) -> None:
    heard: list[str] = []
    async with hosted([Reply((), breaks="throttlingException"), Reply(THREE)], effort=TWICE) as there:
        draft = await spoken(there.generator, heard)
    assert "".join(heard) == draft.text == "".join(THREE)


async def test_an_event_that_nobody_knows_yet_harms_nothing(hosted: Callable[..., Any]) -> None:
    async with hosted([Reply(THREE, breaks="unknown event")], effort=ONCE) as there:
        assert (await spoken(there.generator, [])).text == "".join(THREE)


@pytest.mark.parametrize(
    ("reply", "error", "calls"),
    [
        (Reply(refuse=(429, "ThrottlingException"), retry_after="7"), Throttled, 1),  # its wait is over the deadline
        (Reply(refuse=(429, "ThrottlingException")), Throttled, 2),
        (Reply(refuse=(500, "InternalServerException")), StageFailed, 2),
        (Reply(refuse=(503, "ServiceUnavailableException")), StageFailed, 2),
        (Reply(refuse=(408, "ModelTimeoutException")), StageTimeout, 1),
        (Reply(refuse=(400, "ValidationException")), UpstreamDenied, 1),
        (Reply(refuse=(401, "UnrecognizedClientException")), UpstreamDenied, 1),
        (Reply(refuse=(403, "AccessDeniedException")), UpstreamDenied, 1),
        (Reply(refuse=(404, "ResourceNotFoundException")), UpstreamDenied, 1),
        (Reply(delay_s=30), StageTimeout, 1),
    ],
    ids=lambda value: str(value.refuse or "silence") if isinstance(value, Reply) else "",
)
async def test_a_refusal_is_repeated_only_where_that_may_help(
    hosted: Callable[..., Any], reply: Reply, error: type[StageFailed], calls: int
) -> None:
    effort = Effort(attempts=2, backoff_s=0.01, deadline_s=6.5 if reply.retry_after else 60.0)
    async with hosted([reply], effort=effort, read_timeout_s=0.5 if reply.delay_s else 30.0) as there:
        with pytest.raises(error) as caught:
            await spoken(there.generator, [])
        assert len(there.stub.requests) == calls
    assert type(caught.value) is error
    assert caught.value.retryable == (error is not UpstreamDenied)
    assert caught.value.retry_after_s == (7.0 if reply.retry_after else None)
    assert "made-up" not in str(caught.value)


async def test_one_deadline_is_over_attempts_and_stream_together(hosted: Callable[..., Any]) -> None:
    slow, heard = Reply(("word ",) * 100, pause_s=0.2), list[str]()
    async with hosted([slow], effort=Effort(deadline_s=1.5), read_timeout_s=30) as there:
        with pytest.raises(StageTimeout, match=r"within 1\.5 s.*generation\.deadline_s"):
            await spoken(there.generator, heard)
        assert 1 <= len(heard) <= 8
        assert await asyncio.to_thread(there.stub.left_early.wait, 2.0)


async def test_who_leaves_in_the_middle_closes_the_connection_upstream(hosted: Callable[..., Any]) -> None:
    async with hosted([Reply(("word ",) * 1000, pause_s=0.05)]) as there:
        pieces = there.generator.generate(PLAN)
        assert isinstance(await anext(pieces), Delta)
        await pieces.aclose()
        assert await asyncio.to_thread(there.stub.left_early.wait, 2.0)


async def test_who_leaves_before_the_first_byte_closes_it_too(hosted: Callable[..., Any]) -> None:
    async with hosted([Reply(THREE, delay_s=60)], read_timeout_s=60) as there:
        task = asyncio.create_task(spoken(there.generator, []))
        while not there.stub.open:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(there.stub.left_early.wait, 2.0)


ENDS = {
    "end_turn": StopReason.END,
    "max_tokens": StopReason.LENGTH,
    "content_filtered": StopReason.FILTERED,
    "tool_use": StopReason.TOOL,
    "some_new_reason": StopReason.UNKNOWN,
}


@pytest.mark.parametrize("said", sorted(ENDS))
async def test_only_a_known_normal_end_is_a_normal_end(hosted: Callable[..., Any], said: str) -> None:
    async with hosted([Reply(("Hm.",), stop_reason=said)]) as there:
        assert (await spoken(there.generator, [])).stop is ENDS[said]


async def test_a_model_that_does_not_say_what_it_used_used_something(hosted: Callable[..., Any]) -> None:
    async with hosted([Reply(THREE, usage=())]) as there:
        draft = await spoken(there.generator, [])
    assert not draft.usage.measured


def test_the_two_servers_have_the_same_faults() -> None:
    from tests import bedrock_stub
    from tests.stubs import openai

    assert set(bedrock_stub.MALFORMED) == set(openai.MALFORMED)


def test_the_stop_reasons_are_those_of_the_service_and_new_ones_are_noticed() -> None:
    import botocore.session

    from generation.bedrock import STOP_REASONS

    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    known = service.operation_model("Converse").output_shape.members["stopReason"].enum
    malformed = {"malformed_model_output", "malformed_tool_use"}  # no normal ends, so they stay unknown
    assert set(known) - malformed == set(STOP_REASONS)
