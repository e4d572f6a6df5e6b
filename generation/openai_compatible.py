"""Answers by a model behind the chat completions of OpenAI's API: vLLM, Ollama, OpenRouter and many others.

The client is made outside and passed in. What the stream says is openai_stream.py; attempts are efforts.py. Servers of
this kind cache prefixes by themselves or not at all, so no cache point is sent.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import httpx2

from domain.errors import UpstreamInterrupted
from domain.prompt import PromptPlan
from domain.types import Delta, Draft, StopReason, Usage
from generation.efforts import Deadline, Effort, begun
from generation.openai_stream import STOP_REASONS, Chunk, chunks, refused, silent, translated, used
from generation.pacing import Pace
from generation.rendering import alternating, fresh_nonce, turns

STAGE = "generate"
Chunks = AsyncGenerator[Chunk, None]


class OpenAICompatibleGenerator:
    """The Generator over `POST chat/completions`, streamed.

    `client` knows the address, up to and with /v1, and the key. `effort`, `pace`, `nonce` and `read_timeout_s` are as
    for BedrockGenerator.
    """

    def __init__(
        self,
        client: httpx2.AsyncClient,
        model_id: str,
        *,
        max_tokens: int = 1024,
        temperature: float = 0.0,
        read_timeout_s: float = 60.0,
        effort: Effort | None = None,
        pace: Pace | None = None,
        nonce: Callable[[], str] = fresh_nonce,
    ) -> None:
        self._client = client
        self._model_id = model_id
        self._inference = {"max_tokens": max_tokens, "temperature": temperature}
        self._read_timeout_s = read_timeout_s
        self._effort, self._pace = effort or Effort(), pace or Pace()
        self._nonce = nonce

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        """Deltas as they come, then the Draft. Closing early closes the connection, which stops the model.

        Raises as BedrockGenerator does: nothing is repeated once text has come.
        """
        deadline = Deadline(self._effort.deadline_s)
        opened = partial(self._opened, self._request(plan), deadline)
        chunk, stream = await begun(opened, self._model_id, self._effort, deadline, self._pace)
        text: list[str] = []
        stopped: str | None = None
        usage, refusal = Usage(measured=False), False
        async with aclosing(stream):
            while chunk is not None:
                if chunk.text:
                    text.append(chunk.text)
                    yield Delta(chunk.text)
                refusal = refusal or chunk.refusal
                stopped = stopped if chunk.stopped is None else chunk.stopped
                usage = usage if chunk.usage is None else used(chunk.usage)
                chunk = await anext(stream, None)
        if stopped is None:
            raise UpstreamInterrupted(f"The reply of model {self._model_id} broke off half-way: ask again.", STAGE)
        stop = StopReason.FILTERED if refusal else STOP_REASONS.get(stopped, StopReason.UNKNOWN)
        yield Draft("".join(text), stop, usage, stopped)

    async def _opened(self, asked: dict[str, Any], deadline: Deadline) -> tuple[Chunk | None, Chunks]:
        """The first chunk that says something, and the stream that goes on after it; nobody has seen anything yet."""
        stream = self._stream(asked, deadline)
        chunk = await anext(stream, None)
        while chunk is not None and chunk.silent:
            chunk = await anext(stream, None)
        if chunk is None:
            raise UpstreamInterrupted(f"The reply of model {self._model_id} ended before it began: ask again.", STAGE)
        return chunk, stream

    async def _stream(self, asked: dict[str, Any], deadline: Deadline) -> Chunks:
        """The chunks of one call. However this ends, the connection is closed, so that the server stops generating."""
        response: httpx2.Response | None = None
        try:
            async with self._patience(deadline):
                request = self._client.build_request("POST", "chat/completions", json=asked)
                response = await self._client.send(request, stream=True)
                if response.status_code != 200:
                    raise refused(response.status_code, response.headers.get("retry-after"), self._model_id)
            async with aclosing(chunks(response, self._model_id)) as said:
                while True:
                    async with self._patience(deadline):
                        chunk = await anext(said, None)
                    if chunk is None:
                        return
                    yield chunk
        except TimeoutError:
            raise silent(self._model_id, self._read_timeout_s, deadline) from None
        except httpx2.HTTPError as error:
            raise translated(error, self._model_id, begun=response is not None) from error
        finally:
            if response is not None:
                await response.aclose()

    def _patience(self, deadline: Deadline) -> asyncio.Timeout:
        return asyncio.timeout(min(self._read_timeout_s, deadline.left()))

    def _request(self, plan: PromptPlan) -> dict[str, Any]:
        said = alternating(turns(plan, self._nonce()))
        messages = [{"role": role.value, "content": "\n\n".join(texts)} for role, texts in said]
        return {
            "model": self._model_id,
            "messages": [{"role": "system", "content": plan.system}, *messages],
            "stream": True,
            "stream_options": {"include_usage": True},  # else the stream says nothing of tokens
            **self._inference,
        }
