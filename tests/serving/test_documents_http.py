"""Documents over HTTP: for admins alone, known documents alone, on record with who and why."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from domain.amending import Amending, Amendment
from serving.schemas import Limits
from serving.service import Service
from tests.fakes import MemoryRegistry
from tests.serving.service import client, service

KEY = "k" * 40
ADMIN = {"Authorization": f"Bearer {KEY}"}
OWNERS = {"minutes/2024 ü.md": "harbour", "jobs/1": "harbour", "b/groups": "harbour", "theirs": "other"}


@dataclass
class Desk:
    """A service over a registry that holds four documents."""

    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def service(self) -> Service:
        whole: dict[str, Any] = {"amending": Amending(self.registry, OWNERS.get), "admin_key": KEY}
        whole["limits"] = Limits(wrong_key_s=0.0)
        return service(**(whole | self.changes))

    async def asked(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        async with client(self.service) as http:
            return await http.request(method, f"/v1/documents/{path}", json=body, headers=headers or ADMIN)


async def test_a_document_is_deleted_for_everybody_and_twice_is_safe() -> None:
    desk = Desk()
    told = [(await desk.asked("DELETE", "minutes/2024%20%C3%BC.md?reason=asked")).json() for _ in range(2)]
    assert told == [
        {"id": "minutes/2024 ü.md", "forgotten": True, "changed": True},
        {"id": "minutes/2024 ü.md", "forgotten": True, "changed": False},
    ]
    assert desk.registry.tombstones() == {"minutes/2024 ü.md"}
    change = desk.registry.changes()[0]
    assert (change.verb, change.reason, change.who) == (Amendment.FORGET, "asked", "admin over HTTP (id0)")
    assert len(desk.registry.changes()) == 1


async def test_a_deleted_document_is_given_back_only_when_somebody_asks() -> None:
    desk = Desk()
    await desk.asked("DELETE", "theirs")
    assert (await desk.asked("POST", "theirs/restore")).json() == {"id": "theirs", "forgotten": False, "changed": True}
    assert desk.registry.tombstones() == frozenset()


async def test_readers_are_set_and_taken_back() -> None:
    desk = Desk()
    path = "minutes/2024%20%C3%BC.md/groups"
    assert (await desk.asked("PUT", path, {"groups": ["hr", "Hr"], "reason": "moved"})).json()["groups"] == ["Hr", "hr"]
    assert desk.registry.access() == {"minutes/2024 ü.md": {"hr", "Hr"}}
    assert (await desk.asked("PUT", path, {"groups": []})).json()["groups"] == []
    assert desk.registry.access() == {"minutes/2024 ü.md": frozenset()}
    assert (await desk.asked("PUT", path, {"groups": None})).json()["groups"] is None
    assert desk.registry.access() == {}


@pytest.mark.parametrize(
    "body", [{}, {"groups": "hr"}, {"groups": [""]}, {"groups": [1]}, {"groups": ["hr"], "tenant": "x"}, []]
)
async def test_a_body_that_does_not_name_readers_is_refused_and_changes_nothing(body: Any) -> None:
    desk = Desk()
    assert (await desk.asked("PUT", "theirs/groups", body)).status_code == 400
    assert desk.registry.access() == {}


@pytest.mark.parametrize("path", ["jobs/1", "b/groups"])
async def test_an_id_may_look_like_a_route(path: str) -> None:
    desk = Desk()
    assert (await desk.asked("DELETE", path)).json()["id"] == path
    assert desk.registry.tombstones() == {path}


@pytest.mark.parametrize(
    "path",
    ["never", "..%2Fescape.txt", "%2Ftmp%2Fescape.txt", "%2e", "nul%00name.txt", "x" * 300, "..%5Cescape.txt", "%0a"],
)
async def test_an_unknown_document_is_not_found_whatever_its_name_looks_like(path: str) -> None:
    desk = Desk()
    for method, rest, body in (("DELETE", "", None), ("POST", "/restore", None), ("PUT", "/groups", {"groups": []})):
        reply = await desk.asked(method, path + rest, body)
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")
    assert (desk.registry.tombstones(), desk.registry.changes()) == (frozenset(), ())


@pytest.mark.parametrize(("headers", "status"), [({"X-None": "1"}, 401), ({"Authorization": "Bearer wrong"}, 403)])
async def test_nobody_changes_a_document_without_a_key(headers: dict[str, str], status: int) -> None:
    desk = Desk()
    for method, path, body in (
        ("DELETE", "theirs", None),
        ("POST", "theirs/restore", None),
        ("PUT", "theirs/groups", {"groups": []}),
        ("DELETE", "never", None),  # and learns nothing about which there are
    ):
        assert (await desk.asked(method, path, body, **headers)).status_code == status
    assert desk.registry.changes() == ()


async def test_an_admin_of_one_tenant_changes_its_documents_alone() -> None:
    desk = Desk(changes={"admin_of": lambda headers: ("clerk", "harbour") if "x-clerk" in headers else None})
    assert (await desk.asked("DELETE", "jobs/1", **{"X-Clerk": "1"})).status_code == 200
    assert desk.registry.changes()[0].who == "clerk over HTTP (id0)"
    foreign, never = [(await desk.asked("DELETE", path, **{"X-Clerk": "1"})) for path in ("theirs", "nevers")]
    assert (foreign.status_code, foreign.text.replace("theirs", "nevers")) == (404, never.text)
    assert desk.registry.tombstones() == {"jobs/1"}


async def test_a_reason_that_is_too_long_is_refused() -> None:
    assert (await Desk().asked("DELETE", f"theirs?reason={'x' * 1001}")).status_code == 400


async def test_a_service_without_a_registry_to_write_to_says_so() -> None:
    assert (await Desk(changes={"amending": None}).asked("DELETE", "theirs")).status_code == 403
