"""Answers, search and the state of things over HTTP: the shapes clients rely on, and the headers on each of them."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from domain.errors import (
    Overloaded,
    StageFailed,
    StageTimeout,
    StorageError,
    Throttled,
    TidegateError,
    UpstreamDenied,
    UpstreamInterrupted,
)
from domain.naming import Naming
from domain.releases import IndexVersion, Rollout
from domain.types import Scope, Trace, Usage
from serving.auth import TrustedHeaders
from serving.schemas import Limits
from serving.telemetry import Prometheus
from tests.fakes import RULES, FakeRetriever, FakeRewriter, ReversingReranker, ScriptedGenerator, chunk, hits
from tests.serving.service import (
    BELL,
    TIDE,
    FakeRegistry,
    Leaver,
    SilentGenerator,
    get,
    post,
    service,
    soon,
)

QUESTION = {"question": "When does the gate open?"}


async def test_an_answer_has_the_whole_public_shape() -> None:
    reply = await post(service(), "/v1/answers", QUESTION)
    body = reply.json()
    assert reply.status_code == 200
    assert set(body) == {
        "id", "answer", "pool", "citations", "consulted", "grounding", "status", "session", "rewrite", "index_version",
        "trace_id", "stage_ms", "usage", "notes", "relevance", "unsupported", "cost_usd", "rounds", "stopped",
        "coverage",
    }  # fmt: skip
    assert body["answer"] == "The gate opens at high water [S1]."
    assert [(c["marker"], c["chunk_id"], c["title"]) for c in body["citations"]] == [("S1", "tides#0", "Tide table")]
    assert [c["chunk_id"] for c in body["consulted"]] == ["tides#0", "bells#0"]
    assert body["usage"]["output_tokens"] == 5


async def test_every_step_of_the_search_is_told_with_why_the_next_one_followed() -> None:
    found = hits(TIDE)
    told = (await post(service(retriever=FakeRetriever(found)), "/v1/answers", QUESTION | {"deeper": True})).json()
    first, second = told["rounds"]
    assert first == {
        "tool": "search", "query": "When does the gate open?", "variants": [], "wanted": RULES.k, "found": 1,
        "reranked": False, "next": "asked to go deeper",
    }  # fmt: skip
    assert (second["wanted"], second["next"]) == (RULES.wide_k, "")
    assert second["variants"] == ["about When does the gate open?"]


async def test_an_agent_says_why_it_looked_no_further() -> None:
    of = service(rules=replace(RULES, agent_steps=4, agent_covered=0.3))
    told = (await post(of, "/v1/answers", QUESTION)).json()
    assert told["stopped"] == "every part is covered"
    assert [step["tool"] for step in told["rounds"]] == ["search"]


async def test_tokens_of_the_rewriter_stand_beside_those_of_the_answer() -> None:
    rewriter = FakeRewriter(to="When does the north gate open?", usage=Usage(120, 9))
    usage = (await post(service(rewriter=rewriter), "/v1/answers", QUESTION)).json()["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (10, 5)
    assert (usage["rewriting"]["input_tokens"], usage["rewriting"]["output_tokens"]) == (120, 9)


async def test_tokens_of_the_rewriter_are_counted_apart() -> None:
    telemetry = Prometheus()
    rewriter = FakeRewriter(to="When does the north gate open?", usage=Usage(120, 9))
    await post(service(rewriter=rewriter, telemetry=telemetry), "/v1/answers", QUESTION)
    counted = telemetry.exposition().decode()
    for kind, count in (("input_tokens", 10), ("rewrite_input_tokens", 120), ("rewrite_output_tokens", 9)):
        assert f'tidegate_tokens_total{{kind="{kind}"}} {count}.0' in counted


async def test_every_reply_carries_its_request_id_and_nosniff_and_answers_their_version_and_times() -> None:
    for reply in (
        await post(service(), "/v1/answers", QUESTION, X_Request_Id="abc"),
        await post(service(), "/v1/search", {"query": "gate"}, X_Request_Id="abc"),
    ):
        assert reply.headers["X-Request-Id"] == "abc"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["X-Index-Version"] == "v1"
        assert "retrieve=" in reply.headers["X-Stage-Ms"]
        assert "total=" in reply.headers["X-Stage-Ms"]
    missing = await get(service(), "/nowhere")
    assert missing.headers["X-Request-Id"] == missing.json()["error"]["request_id"]


async def test_an_address_with_a_slash_too_many_is_not_found_and_sends_nobody_elsewhere() -> None:
    reply = await post(service(), "/v1/answers/", QUESTION, Host="elsewhere")
    assert reply.status_code == 404
    assert "Location" not in reply.headers
    assert reply.json()["error"]["code"] == "not_found"


async def test_a_session_without_an_id_gets_one_and_the_reply_carries_it_on() -> None:
    body = (await post(service(), "/v1/answers", QUESTION)).json()
    assert body["session"]["id"]
    assert [turn["role"] for turn in body["session"]["turns"]] == ["user", "assistant"]
    again = (await post(service(), "/v1/answers", QUESTION | {"session": body["session"]})).json()
    assert again["session"]["id"] == body["session"]["id"]
    assert len(again["session"]["turns"]) == 4
    assert again["session"]["pool"][0] == {"id": "tides#0", "turn": 1}


async def test_before_the_first_promotion_an_answer_is_refused_with_the_way_out() -> None:
    reply = await post(service(registry=FakeRegistry(Rollout())), "/v1/answers", QUESTION)
    assert reply.status_code == 503
    assert reply.headers["Retry-After"] == "1"
    assert "tidegate up" in reply.json()["error"]["message"]


async def test_a_measuring_client_can_pin_a_version_and_an_unknown_one_is_named_with_those_there_are() -> None:
    retriever = FakeRetriever(hits(TIDE))
    of = service(retriever=retriever, pinnable=True)
    pinned = await post(of, "/v1/search", {"query": "gate"}, X_Index_Version="v0")
    assert pinned.headers["X-Index-Version"] == retriever.asked[0][2] == "v0"
    unknown = await post(of, "/v1/search", {"query": "gate"}, X_Index_Version="../x")
    assert unknown.status_code == 404
    assert "v0, v1" in unknown.json()["error"]["message"]


async def test_people_can_only_name_a_version_that_is_being_served() -> None:
    for version, status in (("v1", 200), ("v2", 200), ("v0", 404)):
        of = service(registry=FakeRegistry(Rollout("v1", "v2", 0.1)))
        reply = await post(of, "/v1/answers", QUESTION, X_Index_Version=version)
        assert reply.status_code == status


async def test_a_registry_that_cannot_be_read_for_a_while_leaves_the_pointer_in_force() -> None:
    registry = FakeRegistry()
    of = service(registry=registry, pointer_ttl_s=0.0)
    from serving.api import create_app
    from tests.serving.service import httpx2

    transport = httpx2.ASGITransport(app=create_app(of))
    async with httpx2.AsyncClient(transport=transport, base_url="http://tidegate") as http:
        assert (await http.post("/v1/answers", json=QUESTION)).status_code == 200
        registry.error = StorageError("The disk is away.")
        assert (await http.post("/v1/answers", json=QUESTION)).status_code == 200
    assert registry.reads == 2


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StageFailed("It broke.", "retriever"), 502),
        (StageTimeout("It took too long.", "retriever"), 504),
        (Throttled("Slower, please.", "generator", 7.2), 429),
        (Overloaded("Too much.", "retriever"), 503),
        (UpstreamDenied("No credentials.", "generator"), 502),
        (UpstreamInterrupted("It broke off.", "generator"), 502),
    ],
)
async def test_a_failed_stage_becomes_its_status_in_the_one_error_shape(error: TidegateError, status: int) -> None:
    reply = await post(service(generator=ScriptedGenerator((), error=error)), "/v1/answers", QUESTION)
    assert reply.status_code == status
    said = reply.json()["error"]
    assert (said["code"], said["message"], said["retryable"]) == (error.code, str(error), error.retryable)
    assert said["request_id"] == reply.headers["X-Request-Id"]
    assert reply.headers.get("Retry-After") == {429: "8", 503: "1"}.get(status)


async def test_a_bug_is_told_as_internal_without_its_details() -> None:
    class Buggy:
        async def retrieve(self, *_: object) -> None:
            raise KeyError("secret detail")

    for path, body in (("/v1/answers", QUESTION), ("/v1/search", {"query": "gate"})):
        reply = await post(service(retriever=Buggy()), path, body)
        assert reply.status_code == 500
        assert reply.json()["error"]["code"] == "internal"
        assert "secret detail" not in reply.text


async def test_search_gives_hits_in_order_with_their_text_and_dates() -> None:
    body = (await post(service(), "/v1/search", {"query": "gate", "k": 2})).json()
    assert [hit["chunk_id"] for hit in body["hits"]] == ["tides#0", "bells#0"]
    assert set(body["hits"][0]) >= {
        "chunk_id", "doc_id", "title", "text", "uri", "published", "score", "rank", "method",
    }  # fmt: skip
    assert body["index_version"] == "v1"
    assert set(body["stage_ms"]) == {"retrieve"}


async def test_search_reranks_unless_told_not_to() -> None:
    of = service(reranker=ReversingReranker())
    reranked = (await post(of, "/v1/search", {"query": "gate"})).json()["hits"]
    fused = (await post(of, "/v1/search", {"query": "gate", "rerank": False})).json()["hits"]
    assert [hit["chunk_id"] for hit in reranked] == ["bells#0", "tides#0"]
    assert [hit["chunk_id"] for hit in fused] == ["tides#0", "bells#0"]


async def test_a_search_whose_reranker_fails_fails() -> None:
    of = service(reranker=ReversingReranker(StageFailed("It broke.", "reranker")))
    assert (await post(of, "/v1/search", {"query": "gate"})).status_code == 502


async def test_asking_for_a_reranker_that_is_not_there_is_refused() -> None:
    reply = await post(service(), "/v1/search", {"query": "gate", "rerank": True})
    assert (reply.status_code, reply.json()["error"]["field"]) == (400, "rerank")


async def test_nothing_found_is_an_empty_list_and_an_answer_without_sources() -> None:
    of = service(retriever=FakeRetriever(()))
    assert (await post(of, "/v1/search", {"query": "gate"})).json()["hits"] == []
    body = (await post(of, "/v1/answers", QUESTION)).json()
    assert (body["status"], body["grounding"], body["citations"]) == ("no_sources", "ungrounded", [])


async def test_a_forbidden_name_is_in_no_reply() -> None:
    secret = chunk("z#0", "Zanzibrand opens the gate.", title="ZANZIBRAND prices")
    of = service(
        naming=Naming(("zanzibrand",)), retriever=FakeRetriever(hits(secret)), suggestions=("Who is Zanzibrand?",)
    )
    replies = [
        await post(of, "/v1/answers", {"question": "What does zanzibrand open?"}),
        await post(of, "/v1/answers", {"question": "What does zanzibrand open?", "stream": True}),
        await post(of, "/v1/search", {"query": "zanzibrand"}),
        await post(of, "/v1/search", {"query": "gate", "zanzibrand": 1}),
        await post(of, "/v1/search", {"query": "gate"}, X_Index_Version="zanzibrand"),
        await get(of, "/page/about.json"),
    ]
    assert not [reply.text for reply in replies if "zanzibrand" in reply.text.lower()]


async def test_a_note_of_a_search_is_scrubbed_as_well() -> None:
    retriever = FakeRetriever(hits(TIDE), notes=("/srv/zanzibrand could not be opened",))
    of = service(naming=Naming(("zanzibrand",)), retriever=retriever)
    assert (await post(of, "/v1/search", {"query": "gate"})).json()["notes"] == [
        "/srv/[name removed] could not be opened"
    ]


@pytest.mark.parametrize("uri", ["javascript:alert(1)", "https://library.example/%7Aanzibrand"])
async def test_an_address_that_must_not_be_followed_or_names_somebody_is_in_no_hit(uri: str) -> None:
    odd = replace(TIDE, source=replace(TIDE.source, uri=uri))
    of = service(naming=Naming(("zanzibrand",)), retriever=FakeRetriever(hits(odd)))
    (hit,) = (await post(of, "/v1/search", {"query": "gate"})).json()["hits"]
    assert hit["uri"] == ""


async def test_more_requests_at_once_than_allowed_are_refused_at_once_and_room_comes_back() -> None:
    generator = SilentGenerator()
    of = service(generator=generator, limits=Limits(max_in_flight=1))
    app_users = [Leaver(), Leaver()]
    from serving.api import create_app

    app = create_app(of)
    first = asyncio.create_task(app_users[0].ask_app(app, "/v1/answers", QUESTION))
    await generator.started.wait()
    await app_users[1].ask_app(app, "/v1/answers", QUESTION)
    assert app_users[1].sent[0]["status"] == 503
    assert dict(app_users[1].sent[0]["headers"])[b"retry-after"] == b"1"
    app_users[0].leave()
    await first
    third = Leaver()
    again = asyncio.create_task(third.ask_app(app, "/v1/answers", QUESTION))
    await asyncio.sleep(0.05)
    assert not again.done()  # it is being worked on, not refused
    third.leave()
    await again


async def test_a_client_that_leaves_cancels_its_answer() -> None:
    generator, leaver = SilentGenerator(), Leaver()
    asking = asyncio.create_task(leaver.ask(service(generator=generator), "/v1/answers", QUESTION))
    await generator.started.wait()
    leaver.leave()
    assert await soon(generator.closed.is_set)
    await asking
    assert leaver.sent == []


async def test_readiness_names_the_stage_it_waits_for() -> None:
    async def ready() -> dict[str, bool]:
        return {"rewriter": True, "retriever": False}

    reply = await get(service(ready=ready), "/readyz")
    assert reply.status_code == 503
    assert "retriever" in reply.json()["error"]["message"]
    assert "rewriter" not in reply.json()["error"]["message"]


async def test_readiness_waits_for_an_admitted_version_and_health_does_not() -> None:
    of = service(registry=FakeRegistry(Rollout()))
    assert "index" in (await get(of, "/readyz")).json()["error"]["message"]
    assert (await get(of, "/healthz")).json() == {"status": "ok"}
    assert (await get(service(), "/readyz")).status_code == 200


async def test_versions_are_told() -> None:
    assert [v["id"] for v in (await get(service(), "/v1/versions")).json()["versions"]] == ["v0", "v1"]


async def test_a_forbidden_name_is_in_no_description_of_a_version() -> None:
    class Named(FakeRegistry):
        def versions(self) -> tuple[IndexVersion, ...]:
            return tuple(replace(version, embedder="zanzibrand-small") for version in super().versions())

    reply = await get(service(naming=Naming(("zanzibrand",)), registry=Named()), "/v1/versions")
    assert [version["embedder"] for version in reply.json()["versions"]] == ["[name removed]-small"] * 2


async def test_metrics_count_answers_by_how_they_ended() -> None:
    of = service(telemetry=Prometheus())
    await post(of, "/v1/answers", QUESTION)
    text = (await get(of, "/metrics")).text
    assert 'tidegate_answers_total{grounding="grounded",status="complete",version="v1"} 1.0' in text
    assert 'tidegate_requests_total{route="/v1/answers",status="200"} 1.0' in text
    assert "tidegate_requests_in_flight 0.0" in text


async def test_a_readers_headers_decide_what_is_found() -> None:
    of = service(authenticate=TrustedHeaders())
    refused = await post(of, "/v1/search", {"query": "gate"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthenticated")
    other = await post(of, "/v1/search", {"query": "gate"}, X_Tidegate_Tenant="harbour", X_Tidegate_Groups="Public")
    assert other.json()["hits"] == []
    reader = await post(of, "/v1/search", {"query": "gate"}, X_Tidegate_Tenant="harbour", X_Tidegate_Groups="public")
    assert len(reader.json()["hits"]) == 2


@dataclass
class KeptTraces:
    kept: list[tuple[Trace, Scope]] = field(default_factory=list)
    broken: bool = False

    def write(self, trace: Trace, scope: Scope) -> None:
        if self.broken:
            raise OSError("full")
        self.kept.append((trace, scope))


async def test_traces_are_kept_under_the_readers_scope_and_a_lost_one_is_counted() -> None:
    sink = KeptTraces()
    body = (await post(service(traces=sink), "/v1/answers", QUESTION)).json()
    assert await soon(lambda: len(sink.kept) == 1)
    assert sink.kept[0][0].id == body["trace_id"]
    telemetry: Any = Prometheus()
    of = service(traces=KeptTraces(broken=True), telemetry=telemetry)
    assert (await post(of, "/v1/answers", QUESTION)).status_code == 200
    assert await soon(lambda: b"tidegate_traces_lost_total 1.0" in telemetry.exposition())


async def test_wrong_methods_and_addresses_have_the_error_shape_too() -> None:
    assert (await get(service(), "/v1/answers")).json()["error"]["code"] == "method_not_allowed"
    assert (await get(service(), "/v1/nothing")).json()["error"]["code"] == "not_found"


async def test_a_chunk_of_another_tenant_is_never_read_out() -> None:
    foreign = chunk("f#0", "Foreign text.", tenant="elsewhere")
    reply = await post(service(retriever=FakeRetriever(hits(foreign, BELL))), "/v1/search", {"query": "gate"})
    assert [hit["chunk_id"] for hit in reply.json()["hits"]] == ["bells#0"]
