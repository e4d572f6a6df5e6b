"""`tidegate keys`: made once, shown once, listed without what opens, revoked by name."""

import json
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from domain.errors import ConfigError, Unauthenticated
from domain.types import Scope
from serving.keyring import KeyRing
from tests.tidegate.tiny import sets, settings
from tidegate.cli import main
from tidegate.compose import check_access, make_authenticate

Capture = pytest.CaptureFixture[str]


def bearer(key: str) -> Headers:
    return Headers({"Authorization": f"Bearer {key}"})


def test_a_key_is_made_shown_once_listed_and_revoked(here: Path, capsys: Capture) -> None:
    data = here / "data"
    assert main(["keys", "add", "desk", "--groups", " staff, board ,staff", "--json", *sets(data)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["groups"], told["tenant"], told["scopes"]) == (["board", "staff"], "harbour", ["ask", "search"])
    ring = make_authenticate(settings(data, access__mode="keys"))
    assert isinstance(ring, KeyRing)
    assert ring(bearer(told["key"])) == Scope("harbour", frozenset({"staff", "board"}))
    assert main(["keys", "list", *sets(data)]) == 0
    listed = capsys.readouterr().out
    assert listed.startswith("desk  harbour  board, staff  ask, search")
    secret = told["key"].partition("_")[2].partition("_")[2]
    assert secret not in listed
    assert not [path for path in data.rglob("*") if path.is_file() and secret in path.read_text("latin-1")]
    assert (data / "keys.json").stat().st_mode & 0o077 == 0
    assert main(["keys", "revoke", "desk", *sets(data)]) == 0
    with pytest.raises(Unauthenticated):
        KeyRing(data / "keys.json")(bearer(told["key"]))
    assert main(["keys", "revoke", "desk", *sets(data)]) == 1
    assert "no key 'desk'; there are: none yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (["a b", "--groups", "x"], "This is no key (name"),
        (["../x", "--groups", "x"], "This is no key (name"),
        (["desk"], "--groups names none"),
        (["desk", "--groups", " ,"], "--groups names none"),
        (["desk", "--groups", "x", "--scopes", "ask,asks"], "--scopes asks: wanted are some of ask, search, admin"),
        (["desk", "--groups", "x", "--scopes", ""], "--scopes names none"),
        (["desk", "--groups", "x" * 201], "This is no key (groups"),
        (["taken", "--groups", "x"], "There is a key 'taken' already"),
    ],
)
def test_what_is_no_key_is_refused_naming_why_and_changes_nothing(
    here: Path, capsys: Capture, said: list[str], why: str
) -> None:
    data = here / "data"
    assert main(["keys", "add", "taken", "--groups", "staff", *sets(data)]) == 0
    before = (data / "keys.json").read_bytes()
    assert main(["keys", "add", *said, *sets(data)]) == 2
    assert why in capsys.readouterr().err
    assert (data / "keys.json").read_bytes() == before


def test_an_open_service_is_not_started_on_a_network_unless_somebody_says_so(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.7"):
        with pytest.raises(ConfigError, match="can be reached from other machines"):
            check_access(settings(tmp_path, serving__host=host))
        check_access(settings(tmp_path, serving__host=host, access__mode="header"))
        check_access(settings(tmp_path, serving__host=host, access__open_to_network="true"))
    for host in ("127.0.0.1", "::1", "localhost"):
        check_access(settings(tmp_path, serving__host=host))


def test_a_service_by_keys_is_not_started_without_one(tmp_path: Path) -> None:
    by_keys = settings(tmp_path, access__mode="keys")
    with pytest.raises(ConfigError, match=r"keys\.json has none: `tidegate keys add"):
        check_access(by_keys)
    assert main(["keys", "add", "desk", "--groups", "staff", *sets(tmp_path)]) == 0
    check_access(by_keys)
