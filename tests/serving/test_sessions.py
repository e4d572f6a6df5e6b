"""Conversations over HTTP: carried by the client or remembered by a store, and nothing of them for strangers."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from domain.errors import StageFailed, StorageError
from domain.ports import KeptSession
from domain.types import Scope, Session
from serving.auth import TrustedHeaders
from serving.sessions import OVERTAKEN, UNKNOWN
from tests.fakes import FakeRetriever, FakeRewriter, chunk, hits
from tests.serving.service import BELL, TIDE, FakeRegistry, Leaver, SilentGenerator, events, post, service

QUESTION = {"question": "When does the gate open?"}
STAFF = {"X_Tidegate_Tenant": "harbour", "X_Tidegate_Groups": "public"}
STRANGER = {"X_Tidegate_Tenant": "elsewhere", "X_Tidegate_Groups": "public"}


@dataclass
class MemorySessions:
    """A SessionStore in a dictionary. `error` is raised on saving, `unreadable` on loading."""

    kept: dict[tuple[str, Scope], KeptSession] = field(default_factory=dict)
    error: StorageError | None = None
    unreadable: StorageError | None = None
    keeps: bool = True

    def load(self, session_id: str, scope: Scope, now_s: float) -> KeptSession | None:
        if self.unreadable:
            raise self.unreadable
        return self.kept.get((session_id, scope))

    def save(self, session: Session, scope: Scope, revision: int, now_s: float) -> bool:
        if self.error:
            raise self.error
        there = self.kept.get((session.id, scope))
        if (there.revision if there else 0) != revision:
            return False
        self.kept[session.id, scope] = KeptSession(session, revision + 1)
        return True


async def asked(of: Any, question: str, session: object = None, **headers: str) -> dict[str, Any]:
    body = {"question": question} | ({"session": session} if session else {})
    reply = await post(of, "/v1/answers", body, **headers)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def test_what_the_client_brought_is_counted_in_the_answer() -> None:
    pool = ["tides#0", "forged#7", {"id": "tides#0", "turn": 1}]
    told = await asked(service(), "Why?", {"id": "s1", "pool": pool})
    dropped = {"unknown": 1, "stale": 0, "duplicate": 1, "over_cap": 0}
    assert told["pool"] == {"kept": 1, "joined": 1, "evicted": 0, "dropped": dropped}
    assert any("2 entries dropped" in note for note in told["notes"])


async def test_ids_of_the_version_before_are_counted_as_stale() -> None:
    of = service()
    first = await asked(of, "Why?")
    assert first["session"]["version"] == "v1"
    first["session"]["pool"].append({"id": "gone#0", "turn": 1})
    moved = replace(of, registry=FakeRegistry(replace(of.registry.rollout(), stable="v2", revision=2)))
    told = await asked(moved, "And then?", first["session"])
    assert told["pool"]["dropped"] == {"unknown": 0, "stale": 1, "duplicate": 0, "over_cap": 0}
    assert told["session"]["version"] == "v2"


async def test_a_chunk_of_another_reader_in_the_pool_looks_like_one_that_is_not_there() -> None:
    secret = chunk("vault#0", "The code is 1234.", groups=("finance",))
    of = service(retriever=FakeRetriever(hits(TIDE, secret)))
    foreign, forged = [await asked(of, "Why?", {"id": "s1", "pool": [i]}) for i in ("vault#0", "vault#9")]
    assert foreign["pool"] == forged["pool"]
    assert foreign["notes"] == forged["notes"]
    assert "1234" not in str(foreign)


async def test_a_long_conversation_never_outgrows_what_a_request_may_be() -> None:
    of = service()
    of = replace(of, rules=replace(of.rules, session_turns=6))
    session: object = None
    for number in range(1, 12):
        told = await asked(of, f"Question {number}?", session)
        session = told["session"]
    assert len(told["session"]["turns"]) == 6
    assert told["session"]["earlier"] == 8
    assert told["session"]["pool"][0]["turn"] == 1


async def test_with_a_store_the_id_alone_goes_on() -> None:
    store, rewriter = MemorySessions(), FakeRewriter()
    of = service(sessions=store, rewriter=rewriter)
    first = await asked(of, "When does the gate open?")
    second = await asked(of, "And the bell?", {"id": first["session"]["id"]})
    assert second["session"]["id"] == first["session"]["id"]
    assert [turn["text"] for turn in second["session"]["turns"]][::2] == ["When does the gate open?", "And the bell?"]
    assert rewriter.histories[1][0].text == "When does the gate open?"
    assert second["pool"]["kept"] == 2
    assert second["notes"] == []


async def test_a_stream_is_remembered_before_its_last_event() -> None:
    store = MemorySessions()
    of = service(sessions=store)
    reply = await post(of, "/v1/answers", QUESTION | {"stream": True})
    name, payload = events(reply.text)[-1]
    assert name == "done"
    ((session_id, _), kept) = next(iter(store.kept.items()))
    assert payload["session"]["id"] == session_id
    assert len(kept.session.turns) == 2


async def test_a_stranger_with_the_id_gets_nothing_and_cannot_tell_it_from_one_that_never_was() -> None:
    of = service(sessions=MemorySessions(), authenticate=TrustedHeaders())
    mine = await asked(of, "What is the plan?", **STAFF)
    theirs = await asked(of, "And then?", {"id": mine["session"]["id"]}, **STRANGER)
    never = await asked(of, "And then?", {"id": "never-was"}, **STRANGER)
    for told in (theirs, never):
        told["session"]["id"] = told["id"] = told["trace_id"] = ""
        told["stage_ms"] = {}
    assert theirs == never
    assert theirs["notes"] == [UNKNOWN]
    assert "plan" not in str(theirs)
    again = await asked(of, "And mine?", {"id": mine["session"]["id"]}, **STAFF)
    assert len(again["session"]["turns"]) == 4


async def test_nobody_chooses_the_id_of_a_remembered_conversation() -> None:
    store = MemorySessions()
    told = await asked(service(sessions=store), "Why?", {"id": "1"})
    assert told["session"]["id"] != "1"
    assert {session_id for session_id, _ in store.kept} == {told["session"]["id"]}


async def test_a_turn_that_cannot_be_remembered_is_an_answer_all_the_same() -> None:
    store = MemorySessions(error=StorageError("full"))
    told = await asked(service(sessions=store), "Why?")
    assert told["answer"]
    assert told["notes"] == ["session: this turn is not remembered (storage); send the session along"]


async def test_a_store_that_cannot_be_read_fails_the_request_instead_of_forgetting() -> None:
    store = MemorySessions(unreadable=StorageError("The conversations at x cannot be read: mend the database."))
    reply = await post(service(sessions=store), "/v1/answers", {"question": "Why?", "session": {"id": "s1"}})
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "storage")
    assert (await asked(service(sessions=store), "Why?"))["answer"]  # a new conversation needs no memory


async def test_of_two_requests_at_once_the_later_says_that_it_is_not_remembered() -> None:
    store = MemorySessions()
    of = service(sessions=store)
    session = (await asked(of, "Why?"))["session"]

    class Meanwhile(FakeRetriever):
        async def retrieve(self, *args: Any, **kwargs: Any) -> Any:
            key = next(iter(store.kept))
            store.kept[key] = replace(store.kept[key], revision=2)
            return await super().retrieve(*args, **kwargs)

    late = await asked(
        replace(of, stages=replace(of.stages, retriever=Meanwhile(hits(TIDE, BELL)))), "And?", {"id": session["id"]}
    )
    assert late["notes"] == [OVERTAKEN]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failed_answer_is_not_remembered(stream: bool) -> None:
    store = MemorySessions()
    of = service(sessions=store, retriever=FakeRetriever(error=StageFailed("gone", "retriever")))
    await post(of, "/v1/answers", QUESTION | {"stream": stream})
    assert store.kept == {}


async def test_a_client_that_leaves_mid_stream_closes_the_generator_and_nothing_is_remembered() -> None:
    store, generator, leaver = MemorySessions(), SilentGenerator(("The gate ",)), Leaver()
    of = service(sessions=store, generator=generator)
    request = asyncio.create_task(leaver.ask(of, "/v1/answers", QUESTION | {"stream": True}))
    await asyncio.wait_for(generator.started.wait(), 5)
    leaver.leave()
    await asyncio.wait_for(request, 5)
    await asyncio.wait_for(generator.closed.wait(), 2)
    assert store.kept == {}


@pytest.mark.parametrize("session", [{"version": 7}, {"version": "x" * 201}, {"earlier": -1}, {"earlier": 10**7}])
async def test_a_session_with_other_values_is_refused_naming_where(session: dict[str, Any]) -> None:
    reply = await post(service(), "/v1/answers", {"question": "Why?", "session": session})
    assert reply.status_code == 400
    assert reply.json()["error"]["field"].startswith("session.")
