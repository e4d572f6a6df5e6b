"""A key opens what it was made for and nothing else, and stops doing so soon after it is revoked."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from domain.errors import Forbidden, StorageError, Unauthenticated
from domain.types import Scope
from serving.auth import Right
from serving.keyring import LOOK_S, ApiKey, KeyRing, encoded_keys, new_key, read_keys

STAFF = Scope("harbour", frozenset({"staff", "Staff"}))


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def shown(text: str) -> Headers:
    return Headers({"Authorization": f"Bearer {text}"})


def write(path: Path, *keys: ApiKey) -> None:
    path.write_bytes(encoded_keys(keys))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def test_a_key_is_the_reader_it_was_made_for(path: Path) -> None:
    (one, first), (other, second) = (
        new_key("desk", STAFF, ("ask",), ""),
        new_key("clerk", Scope("other", frozenset({"hr"})), ("admin",), ""),
    )
    write(path, one, other)
    ring = KeyRing(path)
    assert ring(shown(first)) == ring(shown(first), Right.ASK) == STAFF
    assert ring(shown(f" {first}  ")) == STAFF
    assert ring(shown(second), Right.ADMIN) == Scope("other", frozenset({"hr"}))
    assert (ring.admin_of(shown(first)), ring.admin_of(shown(second))) == (None, ("key clerk", "other"))


def test_a_key_does_only_what_its_scopes_name(path: Path) -> None:
    made, text = new_key("desk", STAFF, ("search",), "")
    write(path, made)
    with pytest.raises(Forbidden, match="Key 'desk' has scope search, and this needs scope ask"):
        KeyRing(path)(shown(text), Right.ASK)
    assert KeyRing(path)(shown(text), Right.SEARCH) == STAFF


def test_nothing_else_opens(path: Path) -> None:
    (one, first), (other, second) = new_key("a", STAFF, ("ask",), ""), new_key("b", STAFF, ("ask",), "")
    write(path, one)
    ring = KeyRing(path)
    mixed = f"tg_{one.id}_{second.rpartition('_')[2]}"
    for wrong in (second, mixed, first[:-1], f"{first}x", first.upper(), f"tg_{one.id}_", one.digest, "tg__", "ü", "_"):
        with pytest.raises(Unauthenticated) as refused:
            ring(shown(wrong))
        assert "This key is not known" in str(refused.value)
    for headers in (Headers({}), Headers({"Authorization": first}), Headers({"Authorization": f"Basic {first}"})):
        with pytest.raises(Unauthenticated, match="Authorization is"):
            ring(headers)
    twice = Headers(raw=[(b"authorization", f"Bearer {first}".encode())] * 2)
    with pytest.raises(Unauthenticated):
        ring(twice)
    assert other.id not in path.read_text()


def test_the_file_holds_nothing_that_opens(path: Path) -> None:
    made, text = new_key("desk", STAFF, ("ask",), "")
    write(path, made)
    assert text.rpartition("_")[2] not in path.read_text()
    again, _ = new_key("desk", STAFF, ("ask",), "")
    assert (again.salt, again.digest) != (made.salt, made.digest)


def test_a_key_that_is_revoked_stops_opening_and_a_new_one_starts(path: Path) -> None:
    clock = Clock()
    (one, first), (other, second) = new_key("a", STAFF, ("ask",), ""), new_key("b", STAFF, ("ask",), "")
    write(path, one)
    ring = KeyRing(path, clock)
    assert ring(shown(first)) == STAFF
    write(path, other)
    clock.now += LOOK_S
    with pytest.raises(Unauthenticated):
        ring(shown(first))
    assert ring(shown(second)) == STAFF
    path.unlink()
    clock.now += LOOK_S
    with pytest.raises(Unauthenticated):
        ring(shown(second))


def test_while_the_file_cannot_be_used_nobody_gets_in(path: Path) -> None:
    clock = Clock()
    made, text = new_key("a", STAFF, ("ask",), "")
    write(path, made)
    ring = KeyRing(path, clock)
    assert ring(shown(text)) == STAFF
    good = path.read_bytes()
    path.write_text("{")
    clock.now += LOOK_S
    for _ in range(2):
        with pytest.raises(StorageError, match="cannot be used"):
            ring(shown(text))
    path.write_bytes(good)
    assert ring(shown(text)) == STAFF


def test_a_file_that_everybody_may_write_is_refused(path: Path) -> None:
    write(path)
    path.chmod(0o602)
    with pytest.raises(StorageError, match="chmod 600"):
        read_keys(path)


MADE = new_key("desk", STAFF, ("ask",), "")[0].model_dump(mode="json")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "not JSON"),
        ("[]", "the whole"),
        ("{}", "keys: Field required"),
        (json.dumps({"keys": [], "version": 1}), "version: Extra inputs"),
        (json.dumps({"keys": [MADE | {"group": ["staff"]}]}), "keys.0.group: Extra inputs"),
        (json.dumps({"keys": [MADE | {"scopes": ["asks"]}]}), "keys.0.scopes.0"),
        (json.dumps({"keys": [MADE | {"scopes": []}]}), "keys.0.scopes"),
        (json.dumps({"keys": [MADE | {"groups": "staff"}]}), "keys.0.groups"),
        (json.dumps({"keys": [MADE | {"groups": [" staff"]}]}), "keys.0.groups.0"),
        (json.dumps({"keys": [MADE | {"digest": "0"}]}), "keys.0.digest"),
        (json.dumps({"keys": [MADE | {"name": "a b"}]}), "keys.0.name"),
        (json.dumps({"keys": [MADE, MADE | {"id": "0" * 12}]}), "name 'desk' occurs twice"),
        (json.dumps({"keys": [MADE, MADE | {"name": "other"}]}), "id '.*' occurs twice"),
    ],
)
def test_a_file_that_is_not_one_of_keys_is_refused_naming_what_is_wrong(path: Path, content: str, said: str) -> None:
    path.write_text(content)
    with pytest.raises(StorageError, match=rf"keys\.json cannot be used \(.*{said}"):
        read_keys(path)
