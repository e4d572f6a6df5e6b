"""`tidegate keys add`, `list`, `revoke`: who may ask, search or change documents over HTTP, while access is by key."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from domain.errors import BadRequest, NotFound
from domain.types import Scope
from tidegate.config import AsJson
from tidegate.console import loaded, note, say, say_json

if TYPE_CHECKING:
    from serving.keyring import ApiKey
    from tidegate.settings import Settings

FILE = "keys.json"
SCOPES = ("ask", "search", "admin")

Name = Annotated[str, typer.Argument(help="Whose key it is, or what for.", show_default=False)]


def add(
    ctx: typer.Context,
    name: Name,
    groups: Annotated[str, typer.Option(help="Groups, comma separated, that it reads as.", show_default=False)] = "",
    tenant: Annotated[str, typer.Option(help="Tenant; that of access.tenant when left out.", show_default=False)] = "",
    scopes: Annotated[str, typer.Option(help="What it may: some of ask, search, admin.")] = "ask,search",
    as_json: AsJson = False,
) -> None:
    """Make a key, and show it this one time.

    Only a digest of it is kept. An admin's key changes documents of its tenant; the pointer needs the operator's key.
    Running servers take it within 2 seconds.
    """
    from pydantic import ValidationError

    from serving.keyring import new_key

    settings = loaded(ctx).settings
    given, reader = _names(scopes), Scope(tenant or settings.access.tenant, frozenset(_names(groups)))
    wrong = [each for each in given if each not in SCOPES]
    if wrong or not given:
        raise BadRequest(
            f"--scopes {', '.join(wrong) or 'names none'}: wanted are some of {', '.join(SCOPES)}.", "scopes"
        )
    if not reader.groups and set(given) != {"admin"}:
        raise BadRequest(
            "--groups names none, and a reader without groups may read nothing: name at least one.", "groups"
        )
    try:
        chosen = cast("tuple[Literal['ask', 'search', 'admin'], ...]", tuple(each for each in SCOPES if each in given))
        made, text = new_key(name, reader, chosen, datetime.now(UTC).isoformat(timespec="seconds"))
    except ValidationError as error:
        told = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors())
        raise BadRequest(f"This is no key ({told}): names are letters, digits and . _ @ - up to 64.", "name") from error

    def added(keys: "tuple[ApiKey, ...]") -> "tuple[ApiKey, ...]":
        if any(key.name == name for key in keys):
            raise BadRequest(f"There is a key '{name}' already: revoke it, or take another name.", "name")
        return (*keys, made)

    _change(key_file(settings), added)
    if as_json:
        say_json(
            {"name": name, "key": text, "tenant": reader.tenant, "groups": list(made.groups), "scopes": list(chosen)}
        )
    else:
        say(text)
        note("it is shown this one time; clients send it as 'Authorization: Bearer KEY'")
    if settings.access.mode != "keys":
        note(f"access.mode is {settings.access.mode}: keys count when it is keys")


def listed(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the keys there are, without what opens."""
    from serving.keyring import read_keys

    keys = read_keys(key_file(loaded(ctx).settings))
    if as_json:
        say_json({"keys": [key.model_dump(mode="json", exclude={"salt", "digest"}) for key in keys]})
        return
    for key in keys:
        say(f"{key.name}  {key.tenant}  {', '.join(key.groups) or 'no group'}  {', '.join(key.scopes)}  {key.made_at}")
    if not keys:
        note("there is no key yet: tidegate keys add NAME --groups staff")


def revoke(ctx: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Take a key away; running servers refuse it within 2 seconds."""

    def without(keys: "tuple[ApiKey, ...]") -> "tuple[ApiKey, ...]":
        left = tuple(key for key in keys if key.name != name)
        if len(left) == len(keys):
            there = ", ".join(sorted(key.name for key in keys)) or "none yet"
            raise NotFound(f"There is no key '{name}'; there are: {there}.", "name")
        return left

    _change(key_file(loaded(ctx).settings), without)
    if as_json:
        say_json({"revoked": name})
    else:
        say(f"{name} is revoked")


def key_file(settings: "Settings") -> Path:
    """Where the keys are, or will be."""
    return settings.access.keys_file or settings.data_dir / FILE


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))


def _change(path: Path, change: "Callable[[tuple[ApiKey, ...]], tuple[ApiKey, ...]]") -> None:
    """The file with other keys, one writer at a time, all or nothing."""
    from retrieval.disk import cannot_write
    from retrieval.jsonrecords import replace_file
    from serving.keyring import encoded_keys, read_keys

    try:
        with _alone(path):
            replace_file(path, encoded_keys(change(read_keys(path))))
            path.chmod(0o600)
    except OSError as error:
        raise cannot_write(path, error) from error


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
