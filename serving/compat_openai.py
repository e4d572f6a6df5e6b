"""Questions in the shape of OpenAI's clients: chat completions, streamed and not, and the one model there is. Vectors
in their shape are compat_embeddings.py.

A question goes the way of every other, asking.py; only bodies, events and errors look different. No store remembers
these conversations, because their clients carry them.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from domain.codeblocks import CodeTracker
from domain.errors import NotFound
from domain.types import Answer, Citation, Cited, Done, Event, Failed, Session, Started, Status, TextDelta, Usage
from serving.asking import Asking
from serving.auth import Right
from serving.compat_bodies import MODEL, ChatBody, read_chat
from serving.edge import FAILURE_SHAPE, json_response, read_body
from serving.sse import failed_response
from serving.wire import Json, failed_json

MARKER = re.compile(r"\[(S\d+)\]")
END = b"data: [DONE]\n\n"
FINISH = {Status.TRUNCATED: "length", Status.INTERRUPTED: "length", Status.BLOCKED: "content_filter"}
KINDS = {
    "unauthenticated": "authentication_error",
    "forbidden": "permission_error",
    "throttled": "rate_limit_error",
    "bad_request": "invalid_request_error",
    "too_long": "invalid_request_error",
    "not_found": "invalid_request_error",
}


def openai_routes(asking: Asking) -> list[Route]:
    """The routes."""
    chat = _Chat(asking)
    return [
        Route("/v1/chat/completions", chat.complete, methods=["POST"]),
        Route("/v1/models", chat.models),
        Route("/v1/models/{id}", chat.model),
    ]


def openai_failure(code: str, message: str, retryable: bool, request_id: str, field: str = "") -> Json:
    """An error as OpenAI's clients read it, with what ours has beside it."""
    told = "model_not_found" if (code, field) == ("not_found", "model") else code
    said = {"message": message, "type": KINDS.get(code, "server_error"), "param": field or None, "code": told}
    return {"error": said | {"retryable": retryable, "request_id": request_id}}


class _Chat:
    """The endpoints over one gateway's questions."""

    def __init__(self, asking: Asking) -> None:
        self.asking, self.service = asking, asking.service

    async def complete(self, request: Request) -> Response:
        """One question answered, as one JSON body or as a stream of chunks."""
        setattr(request.state, FAILURE_SHAPE, openai_failure)
        service, asking, started = self.service, self.asking, self.service.clock()
        scope = service.authenticate(request.headers, Right.ASK)
        raw = await read_body(request, service.limits)
        body = read_chat(raw, service.limits, service.rules.max_question_chars)
        session = Session(service.new_id(), body.turns)
        asked = await asking.carried(request, body.question, session, scope, affinity(request, body))
        writing = Completion(f"chatcmpl-{asked.ask.trace_id}", int(service.wall()), body, request.state.request_id)
        if body.stream:
            return asking.stream(request, asked, started, writing.frame, openai_failure)
        terminal = await asking.outcome(request, asked)
        if isinstance(terminal, Done):
            trace = terminal.answer.trace
            headers = asking.headers(trace.version, dict(trace.stage_ms), started)
            return json_response(writing.whole(terminal.answer), 200, headers)
        headers = asking.headers(asked.ask.version, {}, started)
        return failed_response(terminal, request.state.request_id, headers, openai_failure)

    async def models(self, request: Request) -> Response:
        """The models there are, which is one."""
        setattr(request.state, FAILURE_SHAPE, openai_failure)
        self.service.authenticate(request.headers)
        return json_response({"object": "list", "data": [_model()]})

    async def model(self, request: Request) -> Response:
        """One model. Raises NotFound for any other."""
        setattr(request.state, FAILURE_SHAPE, openai_failure)
        self.service.authenticate(request.headers)
        if (id := request.path_params["id"]) != MODEL:
            raise NotFound(f"The model {id[:80]!r} does not exist here: {MODEL!r} is the one there is.", "model")
        return json_response(_model())


def affinity(request: Request, body: ChatBody) -> str:
    """What decides which version a conversation gets while a canary runs: its id where the client says one, else its
    first question, which is in every later request of it too.
    """
    first = next(message.text for message in body.messages if message.role == "user")
    return request.headers.get("x-session-id") or sha256(first.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Completion:
    """One chat completion, as it is written."""

    id: str
    created: int
    body: ChatBody
    request_id: str

    def whole(self, answer: Answer) -> Json:
        """The body of an answer that is not streamed."""
        message = {"role": "assistant", "content": answer.text, "refusal": None, "annotations": annotations(answer)}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish(answer)}
        return self._told("chat.completion", [choice], answer) | {"usage": usage_json(answer.trace.usage)}

    def frame(self, event: Event) -> bytes:
        """An event as chunks; what has no place in them is in the last one, or nowhere."""
        if isinstance(event, Started):
            return _data(self._chunk({"role": "assistant", "content": "", "refusal": None}))
        if isinstance(event, TextDelta):
            return _data(self._chunk({"content": event.text}))
        if isinstance(event, Done):
            return self._last(event.answer)
        if isinstance(event, Failed):
            return _data(failed_json(event, self.request_id, openai_failure)) + END
        assert isinstance(event, Cited)  # told with the last chunk: its place in the text is known by then
        return b""

    def _last(self, answer: Answer) -> bytes:
        delta = {"annotations": annotations(answer)}
        frames = _data(self._chunk(delta, finish(answer), answer))
        if self.body.stream_options and self.body.stream_options.include_usage:
            told = self._told("chat.completion.chunk", [], answer) | {"usage": usage_json(answer.trace.usage)}
            frames += _data(told)
        return frames + END

    def _chunk(self, delta: Json, finished: str | None = None, answer: Answer | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finished}
        return self._told("chat.completion.chunk", [choice], answer)

    def _told(self, kind: str, choices: list[Json], answer: Answer | None) -> Json:
        told: Json = {"id": self.id, "object": kind, "created": self.created, "model": MODEL, "choices": choices}
        if answer is None:
            return told
        trace = answer.trace
        ours = {
            "trace_id": trace.id,
            "index_version": trace.version,
            "status": answer.status.value,
            "grounding": answer.grounding.value,
            "notes": [*trace.notes, *self.body.notes],
        }
        return told | {"system_fingerprint": trace.version, "tidegate": ours}


def annotations(answer: Answer) -> list[Json]:
    """One `url_citation` for each marker in the text, in its order: the indices are of the marker, in characters."""
    cited = {citation.sid: citation for citation in answer.citations}
    code, tracker = set(), CodeTracker()
    for place, char in enumerate(answer.text):
        if tracker.takes(char):
            code.add(place)
    found = (match for match in MARKER.finditer(answer.text) if match[1] in cited and match.start() not in code)
    return [
        {"type": "url_citation", "url_citation": _citation(cited[match[1]], match.start(), match.end())}
        for match in found
    ]


def _citation(citation: Citation, start: int, end: int) -> Json:
    """A citation; where a source has no address, its passage has a name of ours."""
    return {
        "start_index": start,
        "end_index": end,
        "title": citation.label,
        "url": citation.uri or f"urn:tidegate:{quote(citation.chunk_id, safe='')}",
        "quote": citation.quote,
        "chunk_id": citation.chunk_id,
    }


def finish(answer: Answer) -> str:
    """Why the text ends; an answer that broke off is one that is not whole, for which their word is `length`."""
    return FINISH.get(answer.status, "stop")


def usage_json(usage: Usage) -> Json | None:
    """Tokens of the model that answered; None where it did not say."""
    if not usage.measured:
        return None
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
    }


def _model() -> Json:
    return {"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}


def _data(told: Any) -> bytes:  # Any: JSON
    return b"data: %b\n\n" % orjson.dumps(told)
