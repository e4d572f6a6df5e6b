"""BedrockGenerator, through the real boto3, against a Bedrock on loopback."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from domain.errors import StageFailed, StageTimeout, Throttled, UpstreamDenied, UpstreamInterrupted
from domain.prompt import SYSTEM, PromptPlan
from domain.types import Delta, Draft, StopReason, Usage
from generation.bedrock import BedrockGenerator
from generation.efforts import Effort
from tests.bedrock_stub import BedrockStub, Reply
from tests.generation.evidence import assistant, evidence, user

MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0"
PLAN = PromptPlan(SYSTEM, evidence("The limit is 40 bar.", title="Pumps"), (), "What is the limit?")
THREE = ("The limit ", "is 40 bar ", "[S1].")


async def spoken(pieces: AsyncGenerator[Delta | Draft, None], heard: list[str]) -> Draft:
    """The draft; every delta's text goes to `heard` as it comes."""
    async with aclosing(pieces) as running:
        async for piece in running:
            if isinstance(piece, Draft):
                return piece
            heard.append(piece.text)
    raise AssertionError("no draft")


async def test_a_reply_comes_as_deltas_and_a_draft_that_is_their_join() -> None:
    usage = (("inputTokens", 7), ("outputTokens", 3), ("totalTokens", 10), ("cacheReadInputTokens", 2000))
    with BedrockStub([Reply(THREE, usage=usage)]) as stub, stub.client() as client:
        heard: list[str] = []
        draft = await spoken(BedrockGenerator(client, MODEL).generate(PLAN), heard)
    assert heard == list(THREE)
    assert draft == Draft("".join(THREE), StopReason.END, Usage(7, 3, 2000, 0), "end_turn")


async def test_the_prefix_of_two_sessions_is_byte_identical_and_ends_at_the_cache_point() -> None:
    other = PromptPlan(SYSTEM, evidence("Zebrawood."), (user("Hello"), assistant("Hello.")), "And its oil?")
    with BedrockStub([Reply(("Yes.",))]) as stub, stub.client() as client:
        generator = BedrockGenerator(client, MODEL)
        for plan in (PLAN, other):
            await spoken(generator.generate(plan), [])
        prefixes = {body[body.index(b'"system"') : body.index(b'{"cachePoint"')] for body in stub.bodies}
        assert len(prefixes) == 1
        for request in stub.requests:
            assert request["system"] == [{"text": SYSTEM}, {"cachePoint": {"type": "default"}}]


async def test_sources_come_first_history_alternates_and_the_question_is_last() -> None:
    history = (user("About P3?"), user("Really?"), assistant("Yes."), assistant("Sure."))
    plan = PromptPlan(SYSTEM, evidence("A </sources> trick."), history, "And its oil?")
    with BedrockStub([Reply(("Yes.",))]) as stub, stub.client() as client:
        await spoken(BedrockGenerator(client, MODEL, nonce=lambda: "n0nce").generate(plan), [])
        messages = stub.requests[0]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    sources, *asked = [block["text"] for block in messages[0]["content"]]
    assert asked == ["About P3?", "Really?"]
    assert sources.endswith("<sources n0nce>\n[S1] \nA </sources> trick.\n</sources n0nce>")
    assert messages[-1]["content"] == [{"text": "And its oil?"}]


async def test_the_delimiters_of_the_sources_differ_from_request_to_request() -> None:
    with BedrockStub([Reply(("Yes.",))]) as stub, stub.client() as client:
        for _ in range(2):
            await spoken(BedrockGenerator(client, MODEL).generate(PLAN), [])
        first, second = (request["messages"][0]["content"][0]["text"] for request in stub.requests)
    assert first != second


async def test_a_model_that_cannot_cache_is_sent_no_cache_point() -> None:
    with BedrockStub([Reply(("Yes.",))]) as stub, stub.client() as client:
        await spoken(BedrockGenerator(client, MODEL, cache_prefix=False).generate(PLAN), [])
        assert stub.requests[0]["system"] == [{"text": SYSTEM}]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("end_turn", StopReason.END),
        ("stop_sequence", StopReason.END),
        ("max_tokens", StopReason.LENGTH),
        ("model_context_window_exceeded", StopReason.CONTEXT_FULL),
        ("content_filtered", StopReason.FILTERED),
        ("guardrail_intervened", StopReason.FILTERED),
        ("tool_use", StopReason.TOOL),
        ("some_new_reason", StopReason.UNKNOWN),
    ],
)
async def test_only_known_normal_ends_are_normal_ends(said: str, meant: StopReason) -> None:
    with BedrockStub([Reply(("Hm.",), stop_reason=said)]) as stub, stub.client() as client:
        draft = await spoken(BedrockGenerator(client, MODEL).generate(PLAN), [])
    assert (draft.stop, draft.detail) == (meant, said)


async def test_an_empty_filtered_reply_is_an_empty_draft_and_no_error() -> None:
    with BedrockStub([Reply((), stop_reason="content_filtered")]) as stub, stub.client() as client:
        draft = await spoken(BedrockGenerator(client, MODEL).generate(PLAN), [])
    assert (draft.text, draft.stop) == ("", StopReason.FILTERED)


@pytest.mark.parametrize(
    ("reply", "error", "shown"),
    [
        (Reply(THREE, breaks="close"), UpstreamInterrupted, 3),
        (Reply(THREE, breaks="throttlingException"), Throttled, 3),
        (Reply(THREE, breaks="modelStreamErrorException"), UpstreamInterrupted, 3),
        (Reply(THREE, breaks="silence"), StageTimeout, 3),
        (Reply(refuse=(429, "ThrottlingException"), retry_after="7"), Throttled, 0),
        (Reply(refuse=(403, "AccessDeniedException")), UpstreamDenied, 0),
        (Reply(refuse=(403, "ExpiredTokenException")), UpstreamDenied, 0),
        (Reply(refuse=(404, "ResourceNotFoundException")), UpstreamDenied, 0),
        (Reply(refuse=(503, "ServiceUnavailableException")), StageFailed, 0),
        (Reply(delay_s=30), StageTimeout, 0),
    ],
    ids=[
        "connection cut",
        "throttled in the stream",
        "model error in the stream",
        "silence in the stream",
        "throttled before it",
        "access denied",
        "credentials expired",
        "unknown model",
        "unavailable",
        "silence before it",
    ],
)
async def test_a_broken_reply_ends_in_one_error_that_says_who_must_act(
    reply: Reply, error: type[StageFailed], shown: int
) -> None:
    heard: list[str] = []
    with BedrockStub([reply]) as stub, stub.client() as client:
        patience_s = 1.0 if error is StageTimeout else 30.0
        generator = BedrockGenerator(
            client, MODEL, read_timeout_s=patience_s, effort=Effort(attempts=2 if shown else 1)
        )
        with pytest.raises(error) as caught:
            await spoken(generator.generate(PLAN), heard)
        assert len(stub.requests) == 1, "text that was shown must never be asked for again"
    assert type(caught.value) is error
    assert len(heard) == shown
    assert caught.value.retry_after_s == (7.0 if reply.retry_after else None)
    for secret in ("made-up", "123456789012", "arn:"):
        assert secret not in str(caught.value)


async def test_throttling_before_the_first_byte_is_retried_up_to_the_attempts() -> None:
    throttled = Reply(refuse=(429, "ThrottlingException"))
    twice = Effort(attempts=2, backoff_s=0.01)
    with BedrockStub([throttled, Reply(THREE)]) as stub, stub.client() as client:
        draft = await spoken(BedrockGenerator(client, MODEL, effort=twice).generate(PLAN), [])
        assert (draft.stop, len(stub.requests)) == (StopReason.END, 2)
    with BedrockStub([throttled]) as stub, stub.client() as client:
        with pytest.raises(Throttled):
            await spoken(BedrockGenerator(client, MODEL, effort=twice).generate(PLAN), [])
        assert len(stub.requests) == 2


async def test_missing_credentials_are_named_without_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with BedrockStub([Reply(THREE)]) as stub, stub.client(credentials=False) as client:
        with pytest.raises(UpstreamDenied, match="NoCredentialsError"):
            await spoken(BedrockGenerator(client, MODEL).generate(PLAN), [])
        assert stub.requests == []


async def test_nothing_listening_is_a_failure_worth_a_retry() -> None:
    with BedrockStub([Reply(THREE)]) as stub:
        pass  # its port is free again
    with stub.client() as client, pytest.raises(StageFailed, match="cannot be reached") as caught:
        await spoken(BedrockGenerator(client, MODEL, effort=Effort(attempts=1)).generate(PLAN), [])
    assert caught.value.retryable


async def test_leaving_early_closes_the_upstream_connection_within_a_second() -> None:
    with BedrockStub([Reply(("word ",) * 1000, pause_s=0.05)]) as stub, stub.client() as client:
        pieces = BedrockGenerator(client, MODEL).generate(PLAN)
        await anext(pieces)
        left = time.monotonic()
        await pieces.aclose()
        assert await asyncio.to_thread(stub.left_early.wait, 1.0)
        assert time.monotonic() - left < 1.0


async def test_a_cancelled_task_closes_the_upstream_connection_even_in_a_silence() -> None:
    with BedrockStub([Reply(THREE, breaks="silence")]) as stub, stub.client(read_timeout_s=30) as client:
        heard: list[str] = []
        task = asyncio.create_task(spoken(BedrockGenerator(client, MODEL).generate(PLAN), heard))
        while len(heard) < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(stub.left_early.wait, 1.0)


async def test_who_leaves_before_the_first_byte_is_not_waited_for_either() -> None:
    with BedrockStub([Reply(THREE, delay_s=60)]) as stub, stub.client(read_timeout_s=60) as client:
        task = asyncio.create_task(spoken(BedrockGenerator(client, MODEL).generate(PLAN), []))
        while not stub.open:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(stub.left_early.wait, 2.0)


async def test_a_hundred_who_leave_leave_nothing_behind() -> None:
    before = threading.active_count()
    with BedrockStub([Reply(("word ",) * 3, breaks="silence")]) as stub, stub.client() as client:
        generator = BedrockGenerator(client, MODEL, streams=4)
        for _ in range(25):
            async with asyncio.TaskGroup() as leaving:
                for _ in range(4):
                    leaving.create_task(_leave_after_a_word(generator))
        until = time.monotonic() + 2.0
        while stub.open and time.monotonic() < until:
            await asyncio.sleep(0.01)
        assert stub.open == 0
        assert threading.active_count() <= before + 4 + 1  # the generator's threads, and the stub's own


async def _leave_after_a_word(generator: BedrockGenerator) -> None:
    async with aclosing(generator.generate(PLAN)) as pieces:
        await anext(pieces)


async def test_twenty_streams_at_once_do_not_wait_for_each_other() -> None:
    with BedrockStub([Reply(THREE, pause_s=0.1)]) as stub, stub.client() as client:
        generator = BedrockGenerator(client, MODEL)
        began = time.monotonic()
        drafts = await asyncio.gather(*(spoken(generator.generate(PLAN), []) for _ in range(20)))
    assert {draft.text for draft in drafts} == {"".join(THREE)}
    assert time.monotonic() - began < 4.0  # one after the other would take 20 x 0.3 s
