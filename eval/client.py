"""The public HTTP surface as the harness uses it: a served address, or the same application in this process.

Both go through the very same routes, so an evaluation measures what people get. A reply is the JSON body, with
everything in it that is measured, or a `Failure`, which is never mistaken for an empty answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import httpx2

from domain.errors import BadRequest, ConfigError
from domain.types import Scope, Turn

Body = dict[str, Any]  # a JSON object of the public surface

# What is read from a reply: its fields, the fields of every passage in its lists, and the counts of its objects.
_PASSAGE = ("marker", "doc_id", "title", "quote")
_USAGE = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_Fields = Mapping[str, Sequence[str]]
_REPLIES: Mapping[str, tuple[Sequence[str], _Fields, _Fields]] = {
    "/v1/answers": (
        ("answer", "status", "grounding", "index_version"),
        {"citations": _PASSAGE, "consulted": _PASSAGE},
        {"usage": _USAGE},
    ),
    "/v1/search": (("index_version",), {"hits": ("doc_id",)}, {}),
}


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that gave no answer, and why: the service's own error code, or what was wrong on the way."""

    code: str
    message: str


class Client:
    """Searches and asks over HTTP as the reader named by a Scope; the server must trust the two scope headers.

    `version` pins every request to one index version, and a reply from another one is a Failure. The server is told
    that it is measured, so that no request counts as one of the people whom a canary is judged by. Use as an async
    context manager.
    """

    def __init__(self, http: httpx2.AsyncClient, version: str | None = None) -> None:
        self._http, self._version = http, version
        pin = [(b"X-Index-Version", _carried("version", version))] if version else []
        self._headers = [(b"X-Tidegate-Measuring", b"1"), *pin]

    @classmethod
    def to_url(cls, url: str, version: str | None = None, timeout_s: float = 60.0) -> Self:
        """A client of a served address. Raises BadRequest when `url` is not one."""
        try:
            parsed = httpx2.URL(url)
        except httpx2.InvalidURL:
            parsed = httpx2.URL()
        if parsed.scheme not in ("http", "https") or not parsed.host or (parsed.port or 0) > 65535:
            raise BadRequest(f"{url!r} is no address: write it like http://127.0.0.1:8000.", "url")
        return cls(httpx2.AsyncClient(base_url=parsed, timeout=timeout_s), version)

    @classmethod
    def in_process(cls, app: Any, version: str | None = None) -> Self:  # Starlette's ASGI application
        """A client of an application in this process, without a socket in between."""
        transport = httpx2.ASGITransport(app=app)
        return cls(httpx2.AsyncClient(transport=transport, base_url="http://in-process", timeout=None), version)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, question: str, scope: Scope, history: Sequence[Turn] = ()) -> Body | Failure:
        """The body of `POST /v1/answers`, asked after the turns of `history`."""
        body: Body = {"question": question}
        if history:
            body["session"] = {"turns": [{"role": turn.role.value, "text": turn.text} for turn in history]}
        return await self._post("/v1/answers", body, scope)

    async def search(self, query: str, k: int, scope: Scope, *, rerank: bool) -> Body | Failure:
        """The body of `POST /v1/search`."""
        return await self._post("/v1/search", {"query": query, "k": k, "rerank": rerank}, scope)

    async def _post(self, path: str, body: Mapping[str, object], scope: Scope) -> Body | Failure:
        """Raises BadRequest for a scope that no header can carry, ConfigError when nothing listens at the address."""
        try:
            response = await self._http.post(path, json=body, headers=[*self._headers, *_scope_headers(scope)])
        except httpx2.TimeoutException as error:
            return Failure("timeout", str(error) or type(error).__name__)
        except httpx2.ConnectError as error:
            raise ConfigError(f"Nothing answers at {self._http.base_url}: start it, or leave --url out.") from error
        except httpx2.HTTPError as error:
            return Failure("connection", f"{type(error).__name__}: {error}")
        try:
            content = response.json()
        except (ValueError, RecursionError):
            content = None
        if response.status_code != 200:
            return _refusal(content, response)
        if wrong := _wrong(content, path):
            return Failure("bad_reply", f"{path} answered 200, but {wrong}: is this Tidegate?")
        if self._version and content["index_version"] != self._version:
            told = f"Version {content['index_version']} answered, not {self._version}."
            return Failure("wrong_version", " ".join([told, *content.get("notes", ())]))
        reply: Body = content
        return reply


def _scope_headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """The headers that the service reads back as exactly this scope."""
    if wrong := sorted(name for name in scope.groups if "," in name):
        # The comma separates the names: one group would silently be read as two.
        raise BadRequest(f"Group {wrong[0]!r} has a comma, which separates groups in a header: rename it.", "groups")
    groups = b",".join(_carried("group", name) for name in sorted(scope.groups))
    return [(b"X-Tidegate-Tenant", _carried("tenant", scope.tenant)), (b"X-Tidegate-Groups", groups)]


def _carried(what: str, name: str) -> bytes:
    """A name as a header carries it, as UTF-8, unless it would come out as another one."""
    try:
        value = name.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(
            f"The {what} {name!r} has half a character, which no text can carry: rename it.", what
        ) from error
    if name != name.strip() or not name or any(byte < 0x20 or byte == 0x7F for byte in value):
        raise BadRequest(
            f"The {what} {name!r} is empty, has control characters, or blanks at its ends, which a header loses: "
            "rename it.",
            what,
        )
    return value


def _refusal(content: object, response: httpx2.Response) -> Failure:
    """The service's own error, or what stands in for one when something else answered, as a proxy does."""
    error = content.get("error") if isinstance(content, dict) else None
    if isinstance(error, dict) and isinstance(error.get("code"), str):
        return Failure(error["code"], str(error.get("message", "")))
    return Failure(f"http_{response.status_code}", " ".join(response.text.split())[:200] or response.reason_phrase)


def _wrong(content: object, path: str) -> str:
    """What keeps `content` from being a reply of `path`; empty when nothing does."""
    if not isinstance(content, dict):
        return "the body is no JSON object"
    texts, lists, counts = _REPLIES[path]
    wrong = [name for name in texts if not isinstance(content.get(name), str)]
    wrong += [name for name, fields in lists.items() if not _is_passages(content.get(name), fields)]
    wrong += [name for name, fields in counts.items() if not _is_counted(content.get(name), fields)]
    return f"it lacks {', '.join(wrong)}" if wrong else ""


def _is_passages(found: object, fields: Sequence[str]) -> bool:
    return isinstance(found, list) and all(
        isinstance(item, dict) and all(isinstance(item.get(field), str) for field in fields) for item in found
    )


def _is_counted(found: object, fields: Sequence[str]) -> bool:
    return isinstance(found, dict) and all(
        isinstance(found.get(field), int) and not isinstance(found[field], bool) and found[field] >= 0
        for field in fields
    )
