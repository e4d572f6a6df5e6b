"""Chat completions on loopback, with the same replies and faults as the Bedrock of tests/bedrock_stub.py."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from tests.stubs.loopback import Handler, Loopback
from tests.stubs.replies import Reply, Script

STOPS = {"end_turn": "stop", "max_tokens": "length", "content_filtered": "content_filter", "tool_use": "tool_calls"}
MALFORMED = {
    "not json": b"data: {\n\n",
    "bad length": b"data: []\n\n",
    "bad checksum": b'data: {"choices": {}}\n\n',
    "empty delta": b'data: {"choices": [{"delta": {"content": 7}}]}\n\n',
}


class OpenAIStub(Loopback):
    """The server and its script."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        super().__init__()
        self.handler = _Handler
        self.script = Script(replies)
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    @asynccontextmanager
    async def client(self, key: str | None = None) -> AsyncIterator[httpx2.AsyncClient]:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with httpx2.AsyncClient(base_url=f"{self.url}/v1/", headers=headers, timeout=5.0) as client:
            yield client


class _Handler(Handler):
    def reply(self, body: bytes) -> None:
        self.stub.requests.append({"path": self.path, **json.loads(body)})
        self.stub.keys.append(self.headers.get("Authorization"))
        reply = self.stub.script.next()
        if reply.delay_s and self.caller_left(reply.delay_s):
            return
        if reply.refuse:
            status, code = reply.refuse
            headers = {"Retry-After": reply.retry_after} if reply.retry_after else {}
            self.send_json(status, {"error": {"message": "refused for sk-made-up-secret", "type": code}}, headers)
            return
        self.begin_stream("text/event-stream")
        self.send_chunk(b": processing\n\n")
        self._chunk({"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
        for text in reply.chunks:
            self._chunk({"choices": [{"delta": {"content": text}, "finish_reason": None}]})
            if reply.pause_s and self.caller_left(reply.pause_s):
                return
        if reply.breaks and not self._goes_on(reply.breaks):
            return
        stopped = STOPS.get(reply.stop_reason, reply.stop_reason)
        self._chunk({"choices": [{"delta": {}, "finish_reason": stopped}]})
        if reply.usage:
            self._chunk({"choices": [], "usage": _usage(dict(reply.usage))})
        self.send_chunk(b"data: [DONE]\n\n")
        self.send_chunk(b"")

    def _goes_on(self, breaks: str) -> bool:
        if breaks == "close":
            return False
        if breaks == "silence":
            self.caller_left(60.0)
            return False
        if breaks == "unknown event":
            self.send_chunk(b"event: news\n\n")
            self._chunk({"object": "something.new"})
            return True
        if breaks in MALFORMED:
            self.send_chunk(MALFORMED[breaks])
        elif breaks != "no end":
            code: int | str = 429 if breaks == "throttlingException" else breaks
            self._chunk({"error": {"code": code, "message": "slow down, sk-made-up-secret"}})
        self.send_chunk(b"")
        return False

    def _chunk(self, payload: dict[str, Any]) -> None:
        self.send_chunk(f"data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode())


def _usage(bedrock: dict[str, int]) -> dict[str, Any]:
    """The same tokens as this API counts them: those of the cache are among those of the prompt."""
    read, write = bedrock.get("cacheReadInputTokens", 0), bedrock.get("cacheWriteInputTokens", 0)
    return {
        "prompt_tokens": bedrock["inputTokens"] + read + write,
        "completion_tokens": bedrock["outputTokens"],
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": write},
    }
