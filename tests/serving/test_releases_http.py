"""Releases over HTTP: what everybody may read, what only the admin key moves, and who is told what and why."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from domain.canary import Advice, Step
from domain.errors import PointerMoved, StorageError
from domain.naming import Naming
from domain.releases import Binding, Decision, Evidence, IndexVersion, Kept, LiveMetric, Move, Outcome, Verdict
from domain.releasing import Releases
from serving.auth import TrustedHeaders
from serving.schemas import Limits
from serving.service import Service
from tests.fakes import MemoryRegistry
from tests.serving.service import client, get, post, service

KEY = "k" * 40
ADMIN = {"Authorization": f"Bearer {KEY}"}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def served(version: str, baseline: str | None) -> Binding:
    return Binding(version, "q1", "s1", "g1", "c1", baseline)


def decision(version: str, baseline: str | None, outcome: Outcome = Outcome.PASS) -> Decision:
    verdict = Verdict("recall@6 >= 0.7", outcome, "0.61 [0.58, 0.64] over 900 questions")
    return Decision(served(version, baseline), (verdict,), "run1", "2026-03-01T11:00:00.000+00:00")


@dataclass
class House:
    """Version v1 is stable, v2 was admitted against it and v3 refused; and the service that releases them."""

    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    changes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("v1", "v2", "v3"):
            built = IndexVersion(name, None, "fixed", "a1", "hash-256", 2, 2, f"2026-02-0{name[1]}T00:00:00Z")
            self.registry.publish(Path(name), built)
        self.registry.record(decision("v1", None))
        self.registry.record(decision("v2", "v1"))
        self.registry.record(decision("v3", "v1", Outcome.FAIL))
        self.releases.promote("v1", "somebody")

    @property
    def releases(self) -> Releases:
        return Releases(self.registry, served, lambda: NOON)

    @property
    def service(self) -> Service:
        whole: dict[str, Any] = {"registry": self.registry, "releases": self.releases, "admin_key": KEY}
        whole["limits"] = Limits(wrong_key_s=0.0)
        return service(**(whole | self.changes))


async def moved(house: House, verb: str, body: Any, **headers: str) -> Any:
    return await post(house.service, f"/v1/rollout/{verb}", body, **(headers or ADMIN))


# ---------------------------------------------------------------------------------------------- reading


async def test_the_rollout_has_the_whole_public_shape() -> None:
    house = House()
    told = (await get(house.service, "/v1/rollout", **ADMIN)).json()
    assert {name: told[name] for name in ("stable", "canary", "share", "previous", "revision", "auto")} == {
        "stable": "v1", "canary": None, "share": 0.0, "previous": None, "revision": 1, "auto": False,
    }  # fmt: skip
    assert {version["id"]: version["state"] for version in told["versions"]} == {
        "v1": "stable", "v2": "admitted", "v3": "built",
    }  # fmt: skip
    assert told["ledger"] == [
        {
            "verb": "promote",
            "at": "2026-03-01T12:00:00.000+00:00",
            "who": "somebody",
            "from": {"stable": None, "canary": None, "share": 0.0},
            "to": {"stable": "v1", "canary": None, "share": 0.0},
            "reason": "",
            "noticed_at": "",
            "took_ms": None,
            "decision": told["decisions"][-1],
        }
    ]
    assert told["decisions"][0] == {
        "version": "v3",
        "outcome": "FAIL",
        "forced": "",
        "decided_at": "2026-03-01T11:00:00.000+00:00",
        "run_id": "run1",
        "binding": {
            "version": "v3", "dataset": "q1", "settings": "s1", "gates": "g1", "code": "c1", "baseline": "v1",
        },
        "verdicts": [
            {
                "gate": "recall@6 >= 0.7",
                "outcome": "FAIL",
                "reason": "0.61 [0.58, 0.64] over 900 questions",
                "advisory": False,
            }
        ],
    }  # fmt: skip
    assert told["evidence"] is None


async def test_reading_needs_a_reader_and_no_key() -> None:
    house = House(changes={"authenticate": TrustedHeaders(), "admin_key": None})
    assert (await get(house.service, "/v1/rollout")).status_code == 401
    reader = {"X-Tidegate-Tenant": "harbour", "X-Tidegate-Groups": "public"}
    assert (await get(house.service, "/v1/rollout", **reader)).status_code == 200


async def test_who_moved_the_pointer_and_why_is_for_the_operator_alone() -> None:
    def unreadable() -> None:
        raise StorageError("/srv/library/observations.jsonl is damaged.")

    house = House(changes={"live": unreadable})
    house.releases.begin("v2", 0.1, "keeper@pier-3", reason="the audit of hr")
    house.releases.force("v3", "keeper wants it")
    shown = (await get(house.service, "/v1/rollout", **ADMIN)).text
    hidden = ("keeper@pier-3", "the audit of hr", "keeper wants it", "over 900 questions", "run1", "/srv/library")
    assert all(text in shown for text in hidden)
    for wrong in ({}, {"Authorization": f"Bearer {KEY}x"}):
        reply = await get(house.service, "/v1/rollout", **wrong)
        told = reply.json()
        assert not [text for text in hidden if text in reply.text]
        assert (told["canary"], [move["verb"] for move in told["ledger"]]) == ("v2", ["canary", "promote"])
        assert ("v3", True) in {(decision["version"], bool(decision["forced"])) for decision in told["decisions"]}


async def test_a_version_that_left_is_retired_and_the_newest_move_comes_first() -> None:
    house = House()
    house.releases.begin("v2", 0.1, "somebody")
    house.releases.roll_back("tidegate watch", "worse", noticed_at="2026-03-01T11:59:59.250+00:00")
    told = (await get(house.service, "/v1/rollout", **ADMIN)).json()
    assert [move["verb"] for move in told["ledger"]] == ["rollback", "canary", "promote"]
    assert told["ledger"][0]["took_ms"] == 750.0  # from 11:59:59.250 to 12:00:00
    assert {version["id"]: version["state"] for version in told["versions"]}["v2"] == "retired"


async def test_only_the_latest_moves_and_decisions_are_told() -> None:
    house = House()
    for _ in range(30):
        house.releases.begin("v2", 0.1, "somebody")
        house.releases.roll_back("somebody", "")
        house.registry.record(decision("v2", "v1"))
    told = (await get(house.service, "/v1/rollout", **ADMIN)).json()
    assert (len(told["ledger"]), len(told["decisions"])) == (50, 20)
    assert told["ledger"][0]["verb"] == "rollback"


def evidence(canary: str = "v2", began: int = 2) -> tuple[Evidence, Advice]:
    metric = LiveMetric("success", False, 12, 40, 1.0, None, -0.2, 0.3, Outcome.INCONCLUSIVE, "too few", True, 0.05)
    told = Evidence(canary, "v1", began, 12, 40, 5, (metric,), Kept(one_in=4, lost=3))
    return told, Advice(Step.WAIT, "12 requests", 0.0)


async def test_the_live_evidence_of_the_canary_is_told() -> None:
    house = House(changes={"live": evidence})
    house.releases.begin("v2", 0.1, "somebody", auto=True)
    told = (await get(house.service, "/v1/rollout", **ADMIN)).json()
    assert told["auto"] is True
    assert told["evidence"] == {
        "canary": "v2",
        "stable": "v1",
        "requests": {"canary": 12, "stable": 40},
        "kept": {"one_in": 4, "lost": 3},
        "since": "2026-03-01T12:00:00.000+00:00",
        "outcome": "INCONCLUSIVE",
        "metrics": [
            {
                "metric": "success",
                "paired": False,
                "canary": {"mean": 1.0, "n": 12},
                "stable": {"mean": None, "n": 40},
                "low": -0.2,
                "high": 0.3,
                "max_drop": 0.05,
                "outcome": "INCONCLUSIVE",
                "reason": "too few",
                "advisory": True,
            }
        ],
        "advice": {"step": "wait", "share": 0.0, "reason": "12 requests"},
    }


@pytest.mark.parametrize(("canary", "began"), [("v3", 2), ("v2", 1)])
async def test_evidence_about_another_canary_or_an_earlier_time_of_this_one_is_left_out(
    canary: str, began: int
) -> None:
    house = House(changes={"live": lambda: evidence(canary, began)})
    house.releases.begin("v2", 0.1, "somebody")
    assert (await get(house.service, "/v1/rollout", **ADMIN)).json()["evidence"] is None


async def test_the_evidence_is_weighed_at_most_once_a_second() -> None:
    looks: list[int] = []
    house = House(changes={"live": lambda: looks.append(1)})
    async with client(house.service) as http:
        for _ in range(5):
            await http.get("/v1/rollout")
    assert len(looks) == 1


async def test_records_that_cannot_be_read_are_said_beside_the_pointer() -> None:
    def unreadable() -> None:
        raise StorageError("observations.jsonl, line 3 is damaged.")

    house = House(changes={"live": unreadable})
    house.registry.illegible = True
    told = (await get(house.service, "/v1/rollout", **ADMIN)).json()
    assert (told["stable"], told["ledger"], told["evidence"]) == ("v1", [], None)
    assert told["evidence_error"] == "observations.jsonl, line 3 is damaged."
    assert "ledger.jsonl, line 1 is damaged" in told["ledger_error"]


async def test_a_version_that_cannot_be_read_hides_neither_the_pointer_nor_that_it_was_moved() -> None:
    class Damaged(MemoryRegistry):
        def versions(self) -> tuple[IndexVersion, ...]:
            raise StorageError("versions/v3/version.json is damaged.")

    house = House(Damaged())
    reply = await moved(house, "promote", {"version": "v2"})
    assert (reply.status_code, reply.json()["stable"], reply.json()["versions"]) == (200, "v2", [])
    assert reply.json()["versions_error"] == "versions/v3/version.json is damaged."
    assert reply.json()["ledger"][0]["to"]["stable"] == "v2"


async def test_even_a_bug_in_weighing_hides_neither_the_pointer_nor_the_ledger() -> None:
    def wrong() -> None:
        raise ZeroDivisionError("no requests")

    reply = await get(House(changes={"live": wrong}).service, "/v1/rollout", **ADMIN)
    assert (reply.status_code, reply.json()["stable"]) == (200, "v1")
    assert reply.json()["evidence_error"] == "This is a bug in Tidegate: ZeroDivisionError: no requests"


async def test_a_ledger_that_cannot_be_read_does_not_hide_that_the_pointer_moved() -> None:
    house = House()
    house.registry.illegible = True
    reply = await moved(house, "promote", {"version": "v2", "revision": 0})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "pointer_moved")


async def test_every_version_whose_decisions_cannot_be_read_is_named_and_the_others_are_told() -> None:
    class Damaged(MemoryRegistry):
        def decisions(self, version: str) -> tuple[Decision, ...]:
            if version != "v1":
                raise StorageError(f"decisions/{version}.jsonl, line 1 is damaged.")
            return super().decisions(version)

    told = (await get(House(Damaged()).service, "/v1/rollout", **ADMIN)).json()
    assert [decision["version"] for decision in told["decisions"]] == ["v1"]
    assert told["decisions_error"] == ("decisions/v2.jsonl, line 1 is damaged. decisions/v3.jsonl, line 1 is damaged.")


async def test_a_forbidden_name_is_in_no_record_that_is_shown() -> None:
    def unreadable() -> None:
        raise StorageError("/srv/zanzibrand is damaged.")

    house = House(changes={"naming": Naming(("zanzibrand",)), "live": unreadable})
    house.releases.begin("v2", 0.1, "zanzibrand", reason="zanzibrand asked")
    house.releases.force("v3", "Zanzibrand wants it")
    reply = await get(house.service, "/v1/rollout", **ADMIN)
    assert "zanzibrand" not in reply.text.lower()
    assert "[name removed] wants it" in reply.text


# ---------------------------------------------------------------------------------------------- moving


async def test_a_canary_begins_widens_and_is_promoted_and_each_reply_is_the_rollout() -> None:
    house = House(changes={"canary_share": 0.05})
    begun = (await moved(house, "canary", {"version": "v2", "auto": True, "reason": "better"}, **ADMIN)).json()
    assert (begun["canary"], begun["share"], begun["auto"]) == ("v2", 0.05, True)
    wider = (await moved(house, "canary", {"version": "v2", "share": 0.25})).json()
    assert (wider["canary"], wider["share"]) == ("v2", 0.25)
    promoted = (await moved(house, "promote", {"version": "v2"})).json()
    assert (promoted["stable"], promoted["canary"], promoted["previous"]) == ("v2", None, "v1")
    assert [move["verb"] for move in promoted["ledger"]] == ["promote", "widen", "canary", "promote"]
    assert promoted["ledger"][2]["reason"] == "better"


async def test_a_rollback_leaves_the_canary_then_goes_back_and_names_where_it_cannot() -> None:
    house = House()
    house.releases.promote("v2", "somebody")
    back = (await moved(house, "rollback", {"reason": "worse"})).json()
    assert (back["stable"], back["previous"]) == ("v1", None)
    assert back["ledger"][0]["reason"] == "worse"
    nowhere = await moved(house, "rollback", {"to": "v9"})
    assert (nowhere.status_code, nowhere.json()["error"]["code"]) == (400, "bad_request")
    assert "v2" in nowhere.json()["error"]["message"]


async def test_a_rollback_that_is_sent_again_goes_back_once() -> None:
    house = House()
    house.releases.promote("v2", "somebody")
    house.registry.record(decision("v3", "v2"))
    shown = house.releases.begin("v3", 0.1, "somebody").revision
    first, again = [await moved(house, "rollback", {"revision": shown}) for _ in range(2)]
    assert (first.json()["stable"], first.json()["canary"]) == ("v2", None)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "pointer_moved")
    assert house.registry.rollout().stable == "v2"  # and not v1, the version before


async def test_the_ledger_says_that_it_was_the_admin_and_in_which_request() -> None:
    house = House()
    told = (await moved(house, "canary", {"version": "v2"}, X_Request_Id="abc", **ADMIN)).json()
    assert told["ledger"][0]["who"] == "admin over HTTP (abc)"


async def test_a_version_that_was_refused_stays_refused_with_its_numbers() -> None:
    house = House()
    for verb in ("canary", "promote"):
        reply = await moved(house, verb, {"version": "v3"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (409, "not_admitted")
        assert "0.61 [0.58, 0.64] over 900 questions" in reply.json()["error"]["message"]
    assert house.registry.rollout().stable == "v1"


async def test_forcing_needs_a_reason_which_is_recorded_and_shown() -> None:
    house = House()
    for reason in ({}, {"reason": " \u200b"}):
        refused = await moved(house, "promote", {"version": "v3", "force": True} | reason)
        assert (refused.status_code, refused.json()["error"]["field"]) == (400, "reason")
    forced = await moved(house, "promote", {"version": "v3", "force": True, "reason": "the vendor is gone"})
    told = forced.json()
    assert told["stable"] == "v3"
    assert told["decisions"][0]["forced"] == told["ledger"][0]["decision"]["forced"] == "the vendor is gone"


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        ("promote", {"version": "v3", "revision": 7}, 409),
        ("promote", {"version": "v3"}, 400),
        ("canary", {"version": "v3", "share": 0.5}, 400),
        ("canary", {"version": "v2", "share": 0.1}, 400),
    ],
    ids=["as it was not shown", "beside a canary", "a second canary", "no larger share"],
)
async def test_a_forced_move_that_is_refused_admits_nothing(verb: str, body: dict[str, Any], status: int) -> None:
    house = House()
    house.releases.begin("v2", 0.1, "somebody")
    reply = await moved(house, verb, body | {"force": True, "reason": "the vendor is gone"})
    assert reply.status_code == status
    assert [decision.forced for name in ("v2", "v3") for decision in house.registry.decisions(name)] == ["", ""]


async def test_whoever_was_slower_is_told_what_moved() -> None:
    class Raced(MemoryRegistry):
        def move(self, move: Move) -> None:
            if move.who != "somebody":
                raise PointerMoved("somebody promoted v2 at 12:00.")
            super().move(move)

    reply = await moved(House(Raced()), "canary", {"version": "v2"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "pointer_moved")


async def test_a_promotion_of_what_was_shown_is_refused_once_the_pointer_moved() -> None:
    house = House()
    house.releases.begin("v2", 0.1, "somebody")  # revision 2, which a person looks at
    house.releases.roll_back("tidegate watch", "worse")
    late = await moved(house, "promote", {"version": "v2", "revision": 2})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "pointer_moved")
    assert "revision 3, not 2: tidegate watch made a rollback move" in late.json()["error"]["message"]
    assert house.registry.rollout().stable == "v1"
    assert (await moved(house, "promote", {"version": "v2", "revision": 3})).json()["stable"] == "v2"


async def test_the_gateway_that_moved_the_pointer_follows_it_at_once() -> None:
    house = House(changes={"pointer_ttl_s": 3600.0})
    async with client(house.service) as http:
        assert (await http.post("/v1/answers", json={"question": "When?"})).headers["X-Index-Version"] == "v1"
        await http.post("/v1/rollout/promote", json={"version": "v2"}, headers=ADMIN)
        assert (await http.post("/v1/answers", json={"question": "When?"})).headers["X-Index-Version"] == "v2"


@pytest.mark.parametrize("verb", ["canary", "promote", "rollback"])
@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"X-None": ""}, 401, "unauthenticated"),
        ({"Authorization": ""}, 401, "unauthenticated"),
        ({"Authorization": KEY}, 401, "unauthenticated"),
        ({"Authorization": "Bearer "}, 401, "unauthenticated"),
        ({"Authorization": f"Basic {KEY}"}, 401, "unauthenticated"),
        ({"Authorization": f"Bearer {KEY[1:]}"}, 403, "forbidden"),
        ({"Authorization": f"Bearer {KEY} {KEY}"}, 403, "forbidden"),
        ({"Authorization": "Bearer \u00e9"}, 403, "forbidden"),
    ],
)
async def test_without_the_key_nothing_moves(verb: str, headers: dict[str, str], status: int, code: str) -> None:
    house = House()
    before = house.registry.rollout()
    async with client(house.service) as http:
        sent = {name: value.encode("latin-1") for name, value in headers.items()}
        reply = await http.post(f"/v1/rollout/{verb}", json={"version": "v2"}, headers=sent)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
    assert KEY not in reply.text
    assert house.registry.rollout() == before


async def test_a_service_without_a_key_says_how_the_pointer_is_moved_instead() -> None:
    house = House(changes={"admin_key": None})
    reply = await moved(house, "promote", {"version": "v2"}, Authorization="Bearer None")
    assert reply.status_code == 403
    assert "access.admin_key_file" in reply.json()["error"]["message"]
    assert "tidegate promote" in reply.json()["error"]["message"]


async def test_the_key_is_in_no_description_of_the_service() -> None:
    assert KEY not in repr(House().service)


async def test_the_scheme_may_be_written_in_small_letters() -> None:
    assert (await moved(House(), "promote", {"version": "v2"}, Authorization=f"bearer {KEY}")).status_code == 200


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("canary", {}, "version"),
        ("canary", {"version": ""}, "version"),
        ("canary", {"version": "v2", "share": "0.1"}, "share"),
        ("canary", {"version": "v2", "share": 1.5}, "share"),
        ("canary", {"version": "v2", "share": 0}, "share"),
        ("canary", {"version": "v2", "auto": "yes"}, "auto"),
        ("canary", {"version": "v2", "shares": 0.1}, "shares"),
        ("promote", {"version": 2}, "version"),
        ("promote", {"version": "v2", "to": "v1"}, "to"),
        ("rollback", {"version": "v1"}, "version"),
        ("rollback", {"reason": "x" * 1001}, "reason"),
        ("rollback", [], None),
    ],
)
async def test_a_body_that_cannot_be_meant_is_refused_by_field_and_moves_nothing(
    verb: str, body: Any, field: str | None
) -> None:
    house = House()
    before = house.registry.rollout()
    reply = await moved(house, verb, body)
    assert (reply.status_code, reply.json()["error"].get("field")) == (400, field)
    assert house.registry.rollout() == before


async def test_an_unknown_version_is_not_found() -> None:
    assert (await moved(House(), "promote", {"version": "v9"})).status_code == 404


async def test_a_damaged_version_is_not_begun() -> None:
    house = House()
    house.registry.altered.add("v2")
    assert (await moved(house, "canary", {"version": "v2"})).status_code == 503
    assert house.registry.rollout().canary is None
