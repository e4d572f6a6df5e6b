"""What is particular to chat completions: the request, lines, tokens. Faults are in tests/contracts."""

import json
from collections.abc import AsyncIterator

import httpx2
import pytest

from domain.prompt import SYSTEM, PromptPlan
from domain.types import Delta, Draft, StopReason, Usage
from generation.openai_compatible import OpenAICompatibleGenerator
from generation.openai_stream import used
from tests.bedrock_stub import Reply
from tests.generation.evidence import assistant, evidence, user
from tests.stubs.openai import OpenAIStub

PLAN = PromptPlan(SYSTEM, evidence("The limit is 40 bar."), (user("P3?"), assistant("Yes.")), "What is the limit?")


class Scripted(httpx2.AsyncBaseTransport):
    """Answers with these bytes, cut into pieces of `size`."""

    def __init__(self, body: bytes, size: int) -> None:
        self.body, self.size = body, size

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, stream=_Pieces(self.body, self.size))


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, body: bytes, size: int) -> None:
        self.body, self.size = body, size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.body), self.size):
            yield self.body[start : start + self.size]

    async def aclose(self) -> None:
        pass


async def draft_of(body: bytes, size: int = 7) -> Draft:
    async with httpx2.AsyncClient(transport=Scripted(body, size), base_url="http://model/v1/") as client:
        *deltas, draft = [piece async for piece in OpenAICompatibleGenerator(client, "m").generate(PLAN)]
    assert isinstance(draft, Draft)
    assert draft.text == "".join(piece.text for piece in deltas if isinstance(piece, Delta))
    return draft


async def test_the_request_is_a_streamed_chat_with_the_system_block_first_and_the_key_in_its_header() -> None:
    with OpenAIStub([Reply(("Yes.",))]) as stub:
        async with stub.client(key="sk-1") as client:
            generator = OpenAICompatibleGenerator(client, "qwen3:8b", max_tokens=99, nonce=lambda: "n0nce")
            _ = [piece async for piece in generator.generate(PLAN)]
        request = stub.requests[0]
        assert (request["path"], stub.keys) == ("/v1/chat/completions", ["Bearer sk-1"])
        assert (request["model"], request["max_tokens"], request["temperature"]) == ("qwen3:8b", 99, 0.0)
        assert request["stream_options"] == {"include_usage": True}
        roles = [message["role"] for message in request["messages"]]
        assert roles == ["system", "user", "assistant", "user"]
        assert request["messages"][0]["content"] == SYSTEM
        assert "<sources n0nce>\n[S1] \nThe limit is 40 bar.\n</sources n0nce>" in request["messages"][1]["content"]
        assert request["messages"][-1]["content"] == "What is the limit?"


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_pieces_of_any_size_and_separators_of_unicode_change_nothing(size: int) -> None:
    said = "a\u2028b\x85c\u2029 更换 d"
    event = json.dumps({"choices": [{"delta": {"content": said}}]}, ensure_ascii=False)
    end = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    draft = await draft_of(f": ping\r\ndata: {event}\r\n\r\ndata:{end}\n\ndata: [DONE]\n\n".encode(), size)
    assert (draft.text, draft.stop) == (said, StopReason.END)


async def test_a_stream_may_end_without_its_last_line_when_it_said_how_it_ended() -> None:
    draft = await draft_of(b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "length"}]}')
    assert (draft.text, draft.stop) == ("x", StopReason.LENGTH)


async def test_a_refusal_of_the_model_is_shown_and_no_answer() -> None:
    draft = await draft_of(b'data: {"choices": [{"delta": {"refusal": "I cannot."}, "finish_reason": "stop"}]}\n\n')
    assert (draft.text, draft.stop) == ("I cannot.", StopReason.FILTERED)


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(10, 2)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(10, 2)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 3},
            },
            Usage(1, 2, 6, 3),
        ),
        ({}, Usage(measured=False)),
    ],
)
def test_tokens_of_the_prompt_are_split_into_classes_that_add_up(told: dict[str, object], meant: Usage) -> None:
    assert used(told) == meant
    assert meant.input_tokens + meant.cache_read_tokens + meant.cache_write_tokens == (told.get("prompt_tokens") or 0)
