"""Answers by a hosted model over Bedrock's ConverseStream. The client is made in compose.py and passed in.

Renders the prompt plan for this vendor, streams the reply and says how it ended. Threads and time limits are in
bedrock_calls.py, attempts in efforts.py; which models can cache is in caching.py.
"""

from collections.abc import AsyncGenerator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import partial
from typing import Any

from domain.errors import UpstreamInterrupted
from domain.prompt import PromptPlan
from domain.types import Delta, Draft, Role, StopReason, Usage
from generation.bedrock_calls import STAGE, call, events
from generation.bedrock_errors import garbled
from generation.bedrock_line import hear
from generation.efforts import Deadline, Effort, begun
from generation.pacing import Pace
from generation.rendering import alternating, fresh_nonce, turns

Events = AsyncGenerator[dict[str, Any], None]


class BedrockGenerator:
    """The Generator over ConverseStream.

    `client` is a boto3 `bedrock-runtime` client made with `bedrock_calls.client_config`, which calls once; `effort`
    says how often and how long one answer is tried for, `pace` is shared by all who ask this model. `read_timeout_s` is
    the longest silence before and between events. `cache_prefix` puts a cache point right after the system block, which
    is byte-identical in every request; switch it off only for models that cannot cache. `nonce` names the delimiters
    around the sources anew per request, behind the cache point, so that no source can pretend to end them. At most
    `streams` replies are read at once; others wait.
    """

    def __init__(
        self,
        client: Any,  # boto3
        model_id: str,
        *,
        max_tokens: int = 1024,
        temperature: float = 0.0,
        read_timeout_s: float = 60.0,
        cache_prefix: bool = True,
        effort: Effort | None = None,
        pace: Pace | None = None,
        nonce: Callable[[], str] = fresh_nonce,
        streams: int = 64,
    ) -> None:
        hear(client)
        self._client = client
        self._model_id = model_id
        self._inference = {"maxTokens": max_tokens, "temperature": temperature}
        self._read_timeout_s = read_timeout_s
        self._cache_prefix = cache_prefix
        self._effort, self._pace = effort or Effort(), pace or Pace()
        self._nonce = nonce
        self._threads = ThreadPoolExecutor(streams, thread_name_prefix="bedrock")

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        """Deltas as they come, then the Draft. Closing early closes the connection, which stops the model.

        Raises Throttled, StageTimeout, UpstreamDenied, UpstreamInterrupted or StageFailed before the first delta, after
        as many attempts as were allowed, and Throttled, StageTimeout or UpstreamInterrupted after it: nothing is
        repeated once text has come.
        """
        deadline = Deadline(self._effort.deadline_s)
        opened = partial(self._opened, self._request(plan), deadline)
        event, stream = await begun(opened, self._model_id, self._effort, deadline, self._pace)
        text: list[str] = []
        stopped: str | None = None
        usage = Usage(measured=False)
        async with aclosing(stream):
            while event is not None:
                if piece := event.get("contentBlockDelta", {}).get("delta", {}).get("text"):
                    text.append(piece)
                    yield Delta(piece)
                elif "messageStop" in event:
                    stopped = event["messageStop"].get("stopReason", "")
                elif "metadata" in event:
                    usage = used(event["metadata"].get("usage", {}))
                event = await anext(stream, None)
        if stopped is None:
            raise UpstreamInterrupted(f"The reply of model {self._model_id} broke off half-way: ask again.", STAGE)
        yield Draft("".join(text), STOP_REASONS.get(stopped, StopReason.UNKNOWN), usage, stopped)

    async def _opened(self, asked: dict[str, Any], deadline: Deadline) -> tuple[dict[str, Any] | None, Events]:
        """The first event that says something, and the stream that goes on after it.

        Until then nobody has seen anything, so whatever breaks up to here may be tried again.
        """
        open_stream = partial(self._client.converse_stream, **asked)
        limit_s = min(self._read_timeout_s, deadline.left())
        reply = await call(self._threads, open_stream, limit_s, self._model_id)
        stream = self._read(events(self._threads, reply["stream"], self._read_timeout_s, self._model_id, deadline))
        event = await anext(stream, None)
        while event is not None and event.keys() <= {"messageStart", "contentBlockStart"}:
            event = await anext(stream, None)
        if event is None:
            raise UpstreamInterrupted(f"The reply of model {self._model_id} ended before it began: ask again.", STAGE)
        return event, stream

    async def _read(self, stream: Events) -> Events:
        """The events, one that has lost its content refused: text would be missing and nobody would know."""
        async with aclosing(stream):
            async for event in stream:
                if "contentBlockDelta" in event and not event["contentBlockDelta"].get("delta"):
                    raise garbled(self._model_id, "a piece without its text", STAGE)
                yield event

    def _request(self, plan: PromptPlan) -> dict[str, Any]:
        system: list[dict[str, Any]] = [{"text": plan.system}]
        if self._cache_prefix:
            system.append({"cachePoint": {"type": "default"}})
        return {
            "modelId": self._model_id,
            "system": system,
            "messages": messages(turns(plan, self._nonce())),
            "inferenceConfig": self._inference,
        }


def messages(said: Iterable[tuple[Role, str]]) -> list[dict[str, Any]]:
    """Converse messages: roles alternate as the vendor demands, neighbours of one role share a message."""
    return [{"role": role.value, "content": [{"text": text} for text in texts]} for role, texts in alternating(said)]


def used(usage: dict[str, Any]) -> Usage:
    """The vendor's token counts by class; a cache class that it does not name is zero."""
    return Usage(
        input_tokens=usage.get("inputTokens", 0),
        output_tokens=usage.get("outputTokens", 0),
        cache_read_tokens=usage.get("cacheReadInputTokens", 0),
        cache_write_tokens=usage.get("cacheWriteInputTokens", 0),
        measured="inputTokens" in usage and "outputTokens" in usage,
    )


STOP_REASONS = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.CONTEXT_FULL,
    "content_filtered": StopReason.FILTERED,
    "guardrail_intervened": StopReason.FILTERED,
    "tool_use": StopReason.TOOL,
}
