"""The public HTTP surface as the harness uses it: a served address, or the same application in this process.

Both go through the very same routes, so an evaluation measures what people get. Answers come back as the JSON body
or as a `Failure`, which is never mistaken for an empty answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import httpx2

from domain.errors import ConfigError
from domain.types import Scope, Turn

Body = dict[str, Any]  # a JSON object of the public surface


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that gave no answer, and why."""

    code: str
    message: str


class Client:
    """Searches and asks over HTTP as the reader named by a Scope; the server must trust the two scope headers.

    `version` pins every request to one index version. Use as an async context manager.
    """

    def __init__(self, http: httpx2.AsyncClient, version: str | None = None) -> None:
        self._http = http
        self._pin = {"X-Index-Version": version} if version else {}

    @classmethod
    def to_url(cls, url: str, version: str | None = None, timeout_s: float = 60.0) -> Self:
        """A client of a served address."""
        return cls(httpx2.AsyncClient(base_url=url, timeout=timeout_s), version)

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
        headers = {
            **self._pin,
            "X-Tidegate-Tenant": scope.tenant,
            "X-Tidegate-Groups": ",".join(sorted(scope.groups)),
        }
        try:
            response = await self._http.post(path, json=body, headers=headers)
        except httpx2.TimeoutException as error:
            return Failure("timeout", str(error) or type(error).__name__)
        except httpx2.ConnectError as error:
            raise ConfigError(f"Nothing answers at {self._http.base_url}: start it, or leave --url out.") from error
        except httpx2.HTTPError as error:
            return Failure("connection", f"{type(error).__name__}: {error}")
        content: Body = response.json()
        if response.status_code == 200:
            return content
        return Failure(content["error"]["code"], content["error"]["message"])
