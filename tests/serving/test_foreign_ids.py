"""Every route times every foreign id: what belongs to others is answered like what never was, and tells nothing.

The routes are read off the application, so a new one fails here until somebody says where ids can stand in it. Each
request is sent with an id of another tenant or group and with one that never existed; the replies must be the same in
status, headers and body, but for the id itself, ids that are made anew, and times.
"""

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2
import pytest
from starlette.routing import Route

from domain.amending import Amending
from domain.ports import Stages
from domain.releases import Move, Rollout, Verb
from domain.types import Document, Scope
from generation.extractive import ExtractiveGenerator
from generation.rewriting import AsTyped
from retrieval.building import build
from retrieval.embedding import HashingEmbedder
from retrieval.holdings import Holdings
from retrieval.index import HybridIndex
from retrieval.library import Library
from retrieval.registry import FolderRegistry
from serving.api import create_app
from serving.keyring import KeyRing, encoded_keys, new_key
from serving.schemas import Limits
from serving.service import Service, fresh_id
from tests.fakes import ReversingReranker
from tests.serving.service import service
from tests.serving.test_sessions import MemorySessions

EMBEDDER = HashingEmbedder(32)
READERS = {
    "mine": Scope("harbour", frozenset({"staff"})),
    "another group": Scope("harbour", frozenset({"hr"})),
    "another tenant": Scope("quay", frozenset({"staff"})),
}
TEXTS = {
    "mine": "The pump overheats at noon. It needs oil of grade 46.",
    "another group": "The zebrawood pump is paid 4711 a month.",
    "another tenant": "The zebrawood pump of the quay costs 8899.",
}
SECRETS = ("zebrawood", "4711", "8899")
DOCUMENTS = {"mine": "a/mine.md", "another group": "a/hr-pay.md", "another tenant": "a/quay.md"}
NEVER = "never"


class Sent(NamedTuple):
    """A request in which an id stands somewhere."""

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed


@dataclass
class House:
    """A service over a real index, with a key for each of three readers and what the other two left behind."""

    root: Path
    keys: dict[str, str] = field(default_factory=dict)
    foreign: dict[tuple[str, str], str] = field(default_factory=dict)  # (kind, whose) -> id

    def __post_init__(self) -> None:
        self.registry = FolderRegistry(self.root / "registry")
        documents = [
            Document(
                DOCUMENTS[name],
                "",
                TEXTS[name],
                f"https://library.example/{name}",
                "",
                "",
                scope.groups,
                scope.tenant,
                "",
            )
            for name, scope in READERS.items()
        ]
        built = [
            build(of, embedder=EMBEDDER, registry=self.registry, staging=self.root / "s", chunker="whole").version.id
            for of in (documents, documents[1:])
        ]
        self.stable, self.hidden_version = built
        self.registry.move(Move(Verb.PROMOTE, "", "a test", Rollout(), Rollout(stable=self.stable, revision=1)))
        self.library = Library(lambda version: HybridIndex.open(self.registry.folder(version), EMBEDDER), self.registry)
        made = {
            name: new_key(name.replace(" ", "-"), scope, ("ask", "search", "admin"), "")
            for name, scope in READERS.items()
        }
        self.keys = {name: text for name, (_, text) in made.items()}
        path = self.root / "keys.json"
        path.write_bytes(encoded_keys(tuple(key for key, _ in made.values())))
        ring = KeyRing(path)
        self.app = create_app(self._service(ring))

    def _service(self, ring: KeyRing) -> Service:
        whole = service(
            retriever=self.library, rewriter=AsTyped(), reranker=ReversingReranker(method="reversed"),
            generator=ExtractiveGenerator(),
            registry=self.registry,
            authenticate=ring, admin_of=ring.admin_of, sessions=MemorySessions(), admin_key="k" * 40,
            amending=Amending(self.registry, Holdings(self.registry).tenant_of), limits=Limits(wrong_key_s=0.0),
            new_id=fresh_id, encoder=self.library,
        )  # fmt: skip
        assert isinstance(whole.stages, Stages)
        return whole

    async def ask(self, whose: str, sent: Sent) -> httpx2.Response:
        """The reply to one of the three readers."""
        headers = {"Authorization": f"Bearer {self.keys[whose]}"} | sent.headers
        transport = httpx2.ASGITransport(app=self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://tidegate") as http:
            return await http.request(sent.method, sent.path, json=sent.body, headers=headers)

    async def furnish(self) -> None:
        """Lets the other two ask, so that there are sessions, traces, pools and feedback of theirs."""
        await self.library.refresh()
        for whose in ("another group", "another tenant"):
            reply = await self.ask(whose, Sent("POST", "/v1/answers", {"question": "What is the pump paid?"}))
            told = reply.json()
            assert told["citations"], told
            await self.ask(whose, Sent("POST", "/v1/feedback", {"trace_id": told["trace_id"], "helpful": True}))
            self.foreign |= {
                ("document", whose): DOCUMENTS[whose],
                ("chunk", whose): told["citations"][0]["chunk_id"],
                ("session", whose): told["session"]["id"],
                ("trace", whose): told["trace_id"],
                ("answer", whose): told["id"],
                ("version", whose): self.hidden_version,
            }


def asking(**session: Any) -> Sent:
    return Sent("POST", "/v1/answers", {"question": "What is the pump paid?", "session": session})


def search(**headers: str) -> Sent:
    return Sent("POST", "/v1/search", {"query": "pump paid"}, {k.replace("_", "-"): v for k, v in headers.items()})


def chat(stream: bool = False, **headers: str) -> Sent:
    messages = [{"role": "user", "content": "What is the pump paid?"}]
    body = {"model": "tidegate", "messages": messages, "stream": stream}
    return Sent("POST", "/v1/chat/completions", body, {k.replace("_", "-"): v for k, v in headers.items()})


def rerank(version: str, id: str, **headers: str) -> Sent:
    body = {"model": "tidegate", "query": "pump", "documents": [id, "The pump is paid."]}
    return Sent("POST", f"/{version}/rerank", body, {k.replace("_", "-"): v for k, v in headers.items()})


def embeddings(**headers: str) -> Sent:
    body = {"model": "tidegate", "input": "pump"}
    return Sent("POST", "/v1/embeddings", body, {k.replace("_", "-"): v for k, v in headers.items()})


def tool(name: str, arguments: Any, **headers: str) -> Sent:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    named = {"Accept": "application/json, text/event-stream"} | {k.replace("_", "-"): v for k, v in headers.items()}
    return Sent("POST", "/mcp", call, named)


# Where an id may stand in each route. A route that takes none says so with an empty tuple, and is asked once as it is.
PLACES: dict[tuple[str, str], tuple[Callable[[str], Sent], ...]] = {
    ("POST", "/v1/answers"): (
        lambda id: asking(id=id),
        lambda id: asking(pool=[id]),
        lambda id: asking(pool=[{"id": id, "turn": 1}], turns=[{"role": "user", "text": "And before?"}]),
        lambda id: asking(version=id, pool=[id]),
        lambda id: Sent("POST", "/v1/answers", {"question": "pump?"}, {"X-Index-Version": id}),
        lambda id: Sent(
            "POST", "/v1/answers", {"question": "pump?", "stream": True, "session": {"id": id, "pool": [id]}}
        ),
    ),
    ("POST", "/v1/search"): (
        lambda id: search(X_Session_Id=id),
        lambda id: search(X_Index_Version=id),
        lambda id: Sent("POST", "/v1/search", {"query": id, "mode": "lexical"}),
    ),
    ("POST", "/v1/chat/completions"): (
        lambda id: chat(X_Session_Id=id),
        lambda id: chat(stream=True, X_Session_Id=id),
        lambda id: chat(X_Index_Version=id),
    ),
    ("POST", "/v1/rerank"): (lambda id: rerank("v1", id), lambda id: rerank("v1", id, X_Index_Version=id)),
    ("POST", "/v2/rerank"): (lambda id: rerank("v2", id), lambda id: rerank("v2", id, X_Index_Version=id)),
    ("POST", "/v1/embeddings"): (
        lambda id: embeddings(X_Index_Version=id),
        lambda id: embeddings(X_Session_Id=id),
    ),
    ("POST", "/mcp"): (
        lambda id: tool("search", {"query": id, "mode": "lexical"}),
        lambda id: tool("search", {"query": "pump paid"}, X_Index_Version=id),
        lambda id: tool("answer", {"question": "What is the pump paid?"}, X_Session_Id=id),
        lambda id: tool(id, {"query": "pump"}),
    ),
    ("GET", "/v1/models/{id}"): (lambda id: Sent("GET", f"/v1/models/{quote(id, safe='')}"),),
    ("POST", "/v1/feedback"): (lambda id: Sent("POST", "/v1/feedback", {"trace_id": id, "helpful": True}),),
    ("POST", "/v1/documents"): (lambda id: Sent("POST", "/v1/documents", {"name": id, "text": "The pump."}),),
    ("GET", "/v1/documents/jobs/{id}"): (lambda id: Sent("GET", f"/v1/documents/jobs/{quote(id)}"),),
    ("DELETE", "/v1/documents/{id:path}"): (lambda id: Sent("DELETE", f"/v1/documents/{quote(id)}"),),
    ("POST", "/v1/documents/{id:path}/restore"): (lambda id: Sent("POST", f"/v1/documents/{quote(id)}/restore"),),
    ("PUT", "/v1/documents/{id:path}/groups"): (
        lambda id: Sent("PUT", f"/v1/documents/{quote(id)}/groups", {"groups": ["staff"]}),
    ),
    ("POST", "/v1/rollout/canary"): (lambda id: Sent("POST", "/v1/rollout/canary", {"version": id}),),
    ("POST", "/v1/rollout/promote"): (lambda id: Sent("POST", "/v1/rollout/promote", {"version": id}),),
    ("POST", "/v1/rollout/rollback"): (lambda id: Sent("POST", "/v1/rollout/rollback", {"to": id}),),
    ("GET", "/v1/versions/{id}/outcomes"): (lambda id: Sent("GET", f"/v1/versions/{quote(id)}/outcomes"),),
    ("GET", "/page/{name}"): (lambda id: Sent("GET", f"/page/{quote(id)}"),),
    ("GET", "/v1/versions"): (),
    ("GET", "/v1/models"): (),
    ("GET", "/v1/rollout"): (),
    ("GET", "/healthz"): (),
    ("GET", "/readyz"): (),
    ("GET", "/metrics"): (),
    ("GET", "/"): (),
    ("GET", "/versions"): (),
    ("GET", "/page/about.json"): (),
}
# An admin changes the documents of his tenant whoever reads them, so only another tenant's are foreign to him; and the
# versions are everybody's: which there are is told by GET /v1/versions.
OWN = {("document", "another group"), ("version", "another group"), ("version", "another tenant")}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    await house.furnish()
    yield house
    house.library.close()


def routes(app: Any) -> set[tuple[str, str]]:
    """Every method and path that the application answers."""
    found = set()
    for route in app.routes:
        assert isinstance(route, Route), f"{route} is not a plain route: say here how it is asked"
        found |= {(method, route.path) for method in route.methods or () if method != "HEAD"}
    return found


def never_like(id: str) -> str:
    """An id of the same shape and length that never was."""
    return re.sub(r"[a-z0-9]", lambda found: "x" if found[0].isalpha() else "0", id.replace("a/", "b/"))


def told(reply: httpx2.Response, id: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and body without the id that was sent, ids that are made anew, and times."""
    headers = {
        name: value
        for name, value in reply.headers.items()
        if name not in ("x-stage-ms", "content-length", "x-request-id")
    }
    body = reply.text.replace(id, "ID")
    for pattern in (r"\b[0-9a-f]{32}\b", r"[\d.]+(e-?\d+)?(?=[,}])"):
        body = re.sub(pattern, "NEW", body)
    return reply.status_code, headers, body


async def test_every_route_says_where_ids_stand_in_it(house: House) -> None:
    assert routes(house.app) == set(PLACES)


@pytest.mark.parametrize(("method", "path"), sorted(PLACES))
async def test_a_foreign_id_is_answered_like_one_that_never_was(house: House, method: str, path: str) -> None:
    places = PLACES[method, path]
    asked = 0
    for place in places:
        for (kind, whose), id in house.foreign.items():
            if path.startswith("/v1/documents") and (kind, whose) in OWN:
                continue
            never = never_like(id)
            assert never != id
            foreign, unknown = await house.ask("mine", place(id)), await house.ask("mine", place(never))
            assert told(foreign, id) == told(unknown, never), (kind, whose)
            assert not leaked(foreign.text.replace(id, "")), (kind, whose)
            asked += 1
    assert asked >= 9 * len(places)  # kinds of ids, of two others


@pytest.mark.parametrize("path", sorted(path for (method, path), places in PLACES.items() if not places))
async def test_a_route_that_takes_no_id_tells_nothing_of_others(house: House, path: str) -> None:
    reply = await house.ask("mine", Sent("GET", path))
    assert reply.status_code == 200
    ids = {id for (kind, _), id in house.foreign.items() if kind != "version"}
    assert not leaked(reply.text)
    assert not [id for id in ids if id in reply.text]


def leaked(text: str) -> list[str]:
    text = re.sub(r"\b[0-9a-f]{32}\b", "", text)  # ids made by chance have any digits in them
    return [secret for secret in SECRETS if secret in text]
