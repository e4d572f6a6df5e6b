"""What bodies in the shapes of other vendors' clients may look like, and how they are read.

Their clients know more than a library can do. What would change an answer and is not done is refused by its name; what
only tunes a model is ignored, and the reply says so. All problems of one body are told at once. Our own bodies, which
know no field that does nothing, are schemas.py.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from domain.errors import BadRequest, NotFound, TooLong
from domain.policies import unseen
from domain.types import Role, Turn
from serving.schemas import Limits

MAX_TEXTS = 256  # to be encoded at once: searches wait for the same replicas
MAX_TEXT_CHARS = 32_000  # more than any encoder reads
MODEL = "tidegate"  # the one name by which the library is asked

TUNING = frozenset(
    {
        "temperature",
        "top_p",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "max_tokens",
        "max_completion_tokens",
        "reasoning_effort",
        "verbosity",
    }
)
SILENT = frozenset(
    {
        "user",
        "metadata",
        "store",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "service_tier",
        "parallel_tool_calls",
    }
)
NEUTRAL: Mapping[str, tuple[object, ...]] = {  # what a client may send because it is what happens anyway
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none", "auto"),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "logit_bias": ({},),
    "stop": ([],),
}


class _Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    model: str


class TextPart(BaseModel):
    """One part of a message's content."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """One message. A client may send back a message as it received it, with whatever else was in it."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    role: Literal["system", "developer", "user", "assistant"]
    content: str | Annotated[tuple[TextPart, ...], Field(strict=False)] | None = None

    @property
    def text(self) -> str:
        """What it says."""
        if isinstance(self.content, tuple):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(BaseModel):
    """What a stream has beside text."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    include_usage: bool = False


class ChatBody(_Body):
    """`POST /v1/chat/completions`. The last message is the question, those before it are the conversation."""

    messages: tuple[Message, ...] = Field(strict=False, min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def question(self) -> str:
        """What is asked now."""
        return self.messages[-1].text

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation before it; a message that says nothing is no turn."""
        spoken = [message for message in self.messages[:-1] if message.role in ("user", "assistant")]
        return tuple(Turn(Role(message.role), message.text) for message in spoken if message.text.strip())

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the request has no effect."""
        ignored = sorted(
            name for name, value in (self.model_extra or {}).items() if name in TUNING and value is not None
        )
        notes = [f"ignored: {', '.join(ignored)} (the library's own settings stand)"] if ignored else []
        if any(message.role in ("system", "developer") for message in self.messages):
            notes.append("ignored: system and developer messages (the library's own instructions stand)")
        return tuple(notes)


class EmbeddingsBody(_Body):
    """`POST /v1/embeddings`. `input_type` is ours: some encoders read a query unlike a document."""

    input: str | Annotated[tuple[str, ...], Field(strict=False)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    input_type: Literal["query", "document"] = "document"

    @property
    def texts(self) -> tuple[str, ...]:
        """What is to be embedded."""
        return (self.input,) if isinstance(self.input, str) else self.input


class RerankBody(_Body):
    """`POST /v2/rerank`. A missing `top_n` is all of them."""

    query: str
    documents: tuple[str, ...] = Field(strict=False)
    top_n: Annotated[int, Field(ge=1)] | None = None
    max_tokens_per_doc: Annotated[int, Field(ge=1)] = 4096


Body = TypeVar("Body", ChatBody, EmbeddingsBody, RerankBody)


def read_chat(raw: bytes, limits: Limits, max_chars: int) -> ChatBody:
    """The body of a chat completion. Raises BadRequest, TooLong, or NotFound for a model that is not served."""
    body = _read(raw, ChatBody)
    problems = _unsupported(body, NEUTRAL, TUNING | SILENT)
    if body.messages[-1].role != "user":
        problems.append(
            f"The last of 'messages' is of role {body.messages[-1].role!r}: the question must be the user's."
        )
    problems += _blank("messages", body.question)
    _refuse(problems)
    _check_length("messages", body.question, max_chars)
    _check_count("messages", body.messages, limits.max_turns + 1)
    return body


def read_embeddings(raw: bytes) -> EmbeddingsBody:
    """The body of a request for vectors. Raises as `read_chat` does."""
    body = _read(raw, EmbeddingsBody)
    problems = _unsupported(body, {}, frozenset({"user"}))
    if not body.texts:
        problems.append("'input' is empty: send at least one text.")
    _refuse(problems)
    _check_count("input", body.texts, MAX_TEXTS)
    for text in body.texts:
        _refuse(_blank("input", text))
        _check_length("input", text, MAX_TEXT_CHARS)
    return body


def read_rerank(raw: bytes, max_chars: int, most: int) -> RerankBody:
    """The body of a request to rerank `most` documents at most. Raises as `read_chat` does."""
    body = _read(raw, RerankBody)
    problems = _unsupported(body, {"return_documents": (False,)}, frozenset({"priority"}))
    if not body.documents:
        problems.append("'documents' is empty: send at least one.")
    problems += _blank("query", body.query)
    _refuse(problems)
    _check_length("query", body.query, max_chars)
    _check_count("documents", body.documents, most)
    return body


def _read(raw: bytes, shape: type[Body]) -> Body:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"The body is not JSON ({error}): send an object in UTF-8.") from error
    if not isinstance(value, dict):
        raise BadRequest("The body is not a JSON object: send one.")
    if shape is EmbeddingsBody and _is_tokens(value.get("input")):
        raise BadRequest("'input' is made of token numbers, which mean nothing to this encoder: send text.", "input")
    try:
        body = shape.model_validate(value)
    except ValidationError as error:
        told = error.errors(include_url=False)
        places = [".".join(str(part) for part in one["loc"] if part in value or isinstance(part, int)) for one in told]
        said = [f"{place!r}: {one['msg']}." for place, one in zip(places, told, strict=True)]
        raise BadRequest(" ".join(dict.fromkeys(said[:6])), str(told[0]["loc"][0])) from error
    if body.model != MODEL:
        raise NotFound(f"The model {body.model[:80]!r} does not exist here: {MODEL!r} is the one there is.", "model")
    return body


def _is_tokens(value: object) -> bool:
    """True for a list of numbers, or of lists of them."""
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, int | list)


def _unsupported(body: _Body, neutral: Mapping[str, tuple[object, ...]], ignored: frozenset[str]) -> list[str]:
    """A sentence for each parameter that would change the answer and is not done."""
    return [
        f"{name[:80]!r} is not supported here: leave it out."
        for name, value in (body.model_extra or {}).items()
        if name not in ignored and value is not None and value not in neutral.get(name, ())
    ]


def _blank(field: str, text: str) -> list[str]:
    return [f"{field!r} holds nothing but blanks: write at least one character."] if all(map(unseen, text)) else []


def _check_length(field: str, text: str, most: int) -> None:
    if len(text) > most:
        raise TooLong(f"{field!r} has a text of {len(text):,} characters: at most {most:,} are read.", field)


def _check_count(field: str, items: Sequence[Any], most: int) -> None:  # Any: only counted
    if len(items) > most:
        raise TooLong(f"{field!r} has {len(items):,} entries: at most {most:,} are read.", field)


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        named = problems[0].split("'")
        raise BadRequest(" ".join(problems[:8]), named[1] if len(named) > 2 else "")
