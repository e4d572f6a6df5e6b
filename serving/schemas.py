"""What a request body may look like. Reading is strict: a wrong type is refused, not coerced, and an unknown field is
refused with the nearest known one. All problems of one body are told at once. How replies look is wire.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from domain.errors import BadRequest, TooLong
from domain.policies import unseen
from domain.types import PoolEntry, Role, Session, Turn
from domain.uploading import Upload


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may ask for, and how many may be asked at once. A question's length is a rule, not a limit."""

    max_body_bytes: int = 1 << 20
    max_k: int = 100
    max_turns: int = 200
    max_pool: int = 1_000
    max_in_flight: int = 200
    keep_alive_s: float = 15.0
    body_timeout_s: float = 20.0
    max_feedback: int = 10_000  # kept per canary and gateway: made-up trace ids must not fill the log it is judged by
    wrong_key_s: float = 0.5  # between a wrong admin key and its refusal, so that trying many takes long


# ---------------------------------------------------------------------------------------------- bodies


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class TurnBody(_Strict):
    """One message of the conversation so far."""

    role: Literal["user", "assistant"]
    text: str


class PoolBody(_Strict):
    """A chunk of the conversation's pool and the user turn (from 1) in which it joined."""

    id: str = Field(min_length=1, max_length=1000)
    turn: int = Field(ge=1, le=1_000_000)


class SessionBody(_Strict):
    """A conversation as the client carries it. A missing `id` means a new conversation.

    `version` and `earlier` come back as the last reply had them; made up, they change what is counted and no more.
    """

    id: str | None = Field(default=None, min_length=1, max_length=200)
    turns: tuple[TurnBody, ...] = Field(default=(), strict=False)
    pool: tuple[str | PoolBody, ...] = Field(default=(), strict=False)
    version: str = Field(default="", max_length=200)
    earlier: int = Field(default=0, ge=0, le=1_000_000)


class AnswerBody(_Strict):
    """`POST /v1/answers`. A missing `k` means the configured number of chunks."""

    question: str
    session: SessionBody | None = None
    stream: bool = False
    deeper: bool = False
    k: int | None = None


class SearchBody(_Strict):
    """`POST /v1/search`. A missing `rerank` means: as answers are served."""

    query: str
    k: int = 10
    mode: Literal["hybrid", "lexical", "dense"] = "hybrid"
    rerank: bool | None = None


class CanaryBody(_Strict):
    """`POST /v1/rollout/canary`. A missing `share` (0..1, of the sessions) means the configured first one."""

    version: str = Field(min_length=1, max_length=200)
    share: float | None = None
    auto: bool = False
    force: bool = False
    reason: str = Field(default="", max_length=1000)


class PromoteBody(_Strict):
    """`POST /v1/rollout/promote`. With a `revision` it is refused when the pointer has moved on from that one."""

    version: str = Field(min_length=1, max_length=200)
    revision: int | None = None
    force: bool = False
    reason: str = Field(default="", max_length=1000)


class RollbackBody(_Strict):
    """`POST /v1/rollout/rollback`. A missing `to` means without the canary, or back to the version before. With a
    `revision` it is refused when the pointer has moved on from that one: sent twice, it would go back twice.
    """

    to: str | None = Field(default=None, min_length=1, max_length=200)
    revision: int | None = None
    reason: str = Field(default="", max_length=1000)


GroupName = Annotated[str, Field(min_length=1, max_length=200)]


class GroupsBody(_Strict):
    """`PUT /v1/documents/{id}/groups`. No group at all is nobody; null is as the document was built."""

    groups: tuple[GroupName, ...] | None = Field(strict=False, max_length=1000)
    reason: str = Field(default="", max_length=1000)


class FeedbackBody(_Strict):
    """`POST /v1/feedback`. A trace id is written down, so it may look like nothing but one."""

    trace_id: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    helpful: bool


class UploadBody(_Strict):
    """`POST /v1/documents`. Missing `groups` leave it to the text and the settings who may read it."""

    name: str = Field(max_length=1000)
    text: str
    groups: tuple[str, ...] | None = Field(default=None, strict=False)


Body = TypeVar(
    "Body", UploadBody, AnswerBody, SearchBody, CanaryBody, PromoteBody, RollbackBody, FeedbackBody, GroupsBody
)


def read_answer(raw: bytes, limits: Limits, max_chars: int) -> AnswerBody:
    """The body of an answer request. Raises BadRequest or TooLong naming the first field, with every problem told."""
    body, problems = _read(raw, AnswerBody, limits)
    if body is not None:
        problems += _text_problems("question", body.question, max_chars)
        problems += _k_problems(body.k, limits.max_k)
        if body.session:
            problems += _count_problems("session.turns", body.session.turns, limits.max_turns)
            problems += _count_problems("session.pool", body.session.pool, limits.max_pool)
    _refuse(problems)
    return body  # type: ignore[return-value]  # None only with problems, and those have been raised


def read_search(raw: bytes, limits: Limits, max_chars: int) -> SearchBody:
    """The body of a search request. Raises as `read_answer` does."""
    body, problems = _read(raw, SearchBody, limits)
    if body is not None:
        problems += _text_problems("query", body.query, max_chars)
        problems += _k_problems(body.k, limits.max_k)
    _refuse(problems)
    return body  # type: ignore[return-value]  # None only with problems, and those have been raised


def read_canary(raw: bytes, limits: Limits) -> CanaryBody:
    """The body of a request for a canary. Raises as `read_answer` does; whether the share is one, the rollout says."""
    return _forced_with_reason(*_read(raw, CanaryBody, limits))


def read_promotion(raw: bytes, limits: Limits) -> PromoteBody:
    """The body of a request for a promotion. Raises as `read_answer` does."""
    return _forced_with_reason(*_read(raw, PromoteBody, limits))


def read_rollback(raw: bytes, limits: Limits) -> RollbackBody:
    """The body of a request to roll back. Raises as `read_answer` does."""
    body, problems = _read(raw, RollbackBody, limits)
    _refuse(problems)
    return body  # type: ignore[return-value]  # None only with problems, and those have been raised


def read_feedback(raw: bytes, limits: Limits) -> FeedbackBody:
    """The body of feedback. Raises as `read_answer` does."""
    body, problems = _read(raw, FeedbackBody, limits)
    _refuse(problems)
    return body  # type: ignore[return-value]  # None only with problems, and those have been raised


def read_groups(raw: bytes, limits: Limits) -> GroupsBody:
    """The body that names a document's readers. Raises as `read_answer` does."""
    body, problems = _read(raw, GroupsBody, limits)
    _refuse(problems)
    return body  # type: ignore[return-value]  # None only with problems, and those have been raised


def read_upload(raw: bytes, limits: Limits) -> Upload:
    """The file of a JSON body. Raises as `read_answer` does; whether its name will do, the library says."""
    body, problems = _read(raw, UploadBody, limits)
    if body is not None and any(not name.strip() for name in body.groups or ()):
        problems.append(_Problem("groups", "'groups' holds a blank name: leave it out, an empty list is nobody."))
    _refuse(problems)
    assert body is not None
    return Upload(body.name, body.text.encode(), body.groups)


def session_of(body: SessionBody | None, new_id: str) -> Session:
    """The session a body carries. A bare chunk id is taken to have joined in the turn before this one."""
    if body is None:
        return Session(new_id)
    turns = tuple(Turn(Role(turn.role), turn.text) for turn in body.turns)
    asked = body.earlier + sum(turn.role is Role.USER for turn in turns)
    pool = tuple(
        PoolEntry(e, max(1, asked)) if isinstance(e, str) else PoolEntry(e.id, min(e.turn, asked + 1))
        for e in body.pool
    )
    return Session(body.id or new_id, turns, pool, body.version, body.earlier)


# ---------------------------------------------------------------------------------------------- problems

Forward = TypeVar("Forward", CanaryBody, PromoteBody)


@dataclass(frozen=True, slots=True)
class _Problem:
    field: str
    sentence: str
    too_long: bool = False


def _read(raw: bytes, shape: type[Body], limits: Limits) -> tuple[Body | None, list[_Problem]]:
    """The body, or the problems that kept it from being one."""
    try:
        value = orjson.loads(raw)  # refuses NaN, bad UTF-8, lone surrogates and depths that would exhaust the stack
    except orjson.JSONDecodeError as error:
        return None, [_Problem("", f"The body is not JSON ({error}): send an object in UTF-8.")]
    if not isinstance(value, dict):
        return None, [_Problem("", f"The body is a JSON {_kind(value)}: send an object.")]
    try:
        return shape.model_validate(value), []
    except ValidationError as error:
        return None, [_problem(e, shape, limits) for e in error.errors(include_url=False, include_context=True)]


def _problem(error: Any, shape: type[BaseModel], limits: Limits) -> _Problem:  # Any: pydantic's ErrorDetails
    """One pydantic complaint as a sentence: the field, the value, what is wanted."""
    path = [str(part) for part in error["loc"] if part not in ("str", "PoolBody")]
    field, name, kind = ".".join(path), path[-1] if path else "", error["type"]
    if kind == "extra_forbidden":
        known = list(_fields_at(shape, path[:-1]))
        near = get_close_matches(name, known, 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}."
        return _Problem(field[:80], f"{field[:80]!r} is not a known field: {hint}")
    if kind == "missing":
        return _Problem(field, f"{field!r} is missing: it is required.")
    if name == "k":
        return _Problem(field, _k_sentence(error["input"], limits.max_k))
    return _Problem(field, f"{field!r} is {_shown(error['input'])}: {error['msg'][:1].lower()}{error['msg'][1:]}.")


def _fields_at(shape: type[BaseModel], path: Sequence[str]) -> Iterable[str]:
    """The field names known where `path` points; list positions are stepped over."""
    places: dict[str, type[BaseModel]] = {"session": SessionBody, "turns": TurnBody, "pool": PoolBody}
    for part in path:
        shape = places.get(part, shape)
    return shape.model_fields


def _forced_with_reason(body: Forward | None, problems: list[_Problem]) -> Forward:
    if body is not None and body.force and all(unseen(character) for character in body.reason):
        problems.append(_Problem("reason", "'reason' is missing: 'force' is recorded with it, for whoever asks why."))
    _refuse(problems)
    return body  # type: ignore[return-value]  # None only with problems, and those have been raised


def _text_problems(field: str, text: str, limit: int) -> list[_Problem]:
    if len(text) > limit:
        return [_Problem(field, f"{field!r} has {len(text):,} characters: at most {limit:,} are read.", too_long=True)]
    # Zero-width and control characters alone are as blank as blanks: a search for them would find arbitrary text.
    if all(unseen(character) for character in text):
        return [_Problem(field, f"{field!r} is blank: write at least one character.")]
    return []


def _k_problems(k: int | None, limit: int) -> list[_Problem]:
    return [_Problem("k", _k_sentence(k, limit))] if k is not None and not 1 <= k <= limit else []


def _k_sentence(value: object, limit: int) -> str:
    return f"'k' is {_shown(value)}: a whole number from 1 to {limit} is wanted."


def _count_problems(field: str, items: Sequence[object], limit: int) -> list[_Problem]:
    if len(items) <= limit:
        return []
    return [_Problem(field, f"{field!r} has {len(items):,} entries: at most {limit:,} are read.", too_long=True)]


def _refuse(problems: Sequence[_Problem]) -> None:
    if problems:
        kind = TooLong if any(problem.too_long for problem in problems) else BadRequest
        raise kind(" ".join(problem.sentence for problem in problems[:8]), problems[0].field)


def _shown(value: object) -> str:
    """A value as it came, cut short: a megabyte of nonsense is not sent back."""
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # what may be read is nested up to four times as deep as what can be written
        return "nested too deeply"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _kind(value: object) -> str:
    kinds = {list: "list", str: "string", int: "number", float: "number", bool: "boolean"}
    return kinds.get(type(value), "null")
