"""API keys: whoever shows one is the reader it was made for, with the scopes it was given.

A file holds for each key a salted digest and who it stands for; the key itself is shown once, when it is made, and kept
nowhere. Keys are 256 random bits, so one round of SHA-256 is enough: there is nothing to guess. The file is looked at
every half second at most, so a key that was revoked opens nothing two seconds later, in every gateway. Writing the file
is the command line's business; identity providers would be another Authenticate beside this one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from secrets import token_hex, token_urlsafe
from stat import S_IWOTH
from time import monotonic
from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.datastructures import Headers

from domain.errors import Forbidden, StorageError, Unauthenticated
from domain.types import Scope
from serving.auth import BLANKS, Right

LOOK_S = 0.5
PREFIX = "tg_"  # so that a key is known as one in a log or a repository

KeyName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^\S(.*\S)?$")]


class ApiKey(BaseModel):
    """One key as the file has it: whom it stands for, and the digest of its salted secret."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: KeyName
    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]
    salt: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    tenant: Text
    groups: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    scopes: Annotated[tuple[Literal["ask", "search", "admin"], ...], Field(strict=False, min_length=1)]
    made_at: str = ""

    @property
    def scope(self) -> Scope:
        """The reader it stands for."""
        return Scope(self.tenant, frozenset(self.groups))


class _KeyFile(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    keys: Annotated[tuple[ApiKey, ...], Field(strict=False)]


def read_keys(path: Path) -> tuple[ApiKey, ...]:
    """The keys of a file, none when there is no file. Raises StorageError naming everything that is wrong with it."""
    try:
        writable, content = path.stat().st_mode & S_IWOTH, path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise StorageError(f"The keys in {path} cannot be read ({error.strerror}): let this user read them.") from error
    if writable:
        raise StorageError(f"Every user of this machine may write the keys in {path}: chmod 600 {path}.")
    try:
        keys = _KeyFile.model_validate(orjson.loads(content)).keys
    except orjson.JSONDecodeError as error:
        raise _wrong(path, f"it is not JSON: {error}") from error
    except ValidationError as error:
        told = [f"{'.'.join(map(str, each['loc'])) or 'the whole'}: {each['msg']}" for each in error.errors()]
        raise _wrong(path, "; ".join(told[:10])) from error
    for what in ("name", "id"):
        seen = [getattr(key, what) for key in keys]
        if twice := sorted({each for each in seen if seen.count(each) > 1}):
            raise _wrong(path, f"{what} {', '.join(map(repr, twice))} occurs twice")
    return keys


def encoded_keys(keys: tuple[ApiKey, ...]) -> bytes:
    """The content of a file of these keys."""
    return orjson.dumps(_KeyFile(keys=keys).model_dump(mode="json"), option=orjson.OPT_INDENT_2) + b"\n"


def new_key(
    name: str, reader: Scope, scopes: tuple[Literal["ask", "search", "admin"], ...], made_at: str
) -> tuple[ApiKey, str]:
    """A key for the file, and its text for whoever it is for: nobody can make that again."""
    id, salt, secret = token_hex(6), token_hex(16), token_urlsafe(32)
    made = ApiKey(
        name=name,
        id=id,
        salt=salt,
        digest=_digest(salt, secret),
        tenant=reader.tenant,
        groups=tuple(sorted(reader.groups)),
        scopes=scopes,
        made_at=made_at,
    )
    return made, f"{PREFIX}{id}_{secret}"


@dataclass
class KeyRing:
    """Authenticates by the keys in the file at `path`. Safe for threads: what is known is replaced whole."""

    path: Path
    clock: Callable[[], float] = monotonic

    def __post_init__(self) -> None:
        self._keys: Mapping[str, ApiKey] = {}
        self._seen: tuple[int, ...] | None = None
        self._looked_at = -LOOK_S

    def __call__(self, headers: Headers, right: Right = Right.ANY) -> Scope:
        """The reader whose key the request shows.

        Raises Unauthenticated for no key or none that is known, Forbidden for one without this right, StorageError
        while the file cannot be read: then nobody gets in, because a key that was revoked could be among those of
        before.
        """
        key = self._shown(headers)
        if right is not Right.ANY and right.value not in key.scopes:
            raise Forbidden(f"Key '{key.name}' has scope {', '.join(key.scopes)}, and this needs scope {right.value}.")
        return key.scope

    def admin_of(self, headers: Headers) -> tuple[str, str] | None:
        """Name and tenant of the admin whose key the request shows; None for any other request."""
        try:
            key = self._shown(headers)
        except Unauthenticated:
            return None
        return (f"key {key.name}", key.tenant) if Right.ADMIN.value in key.scopes else None

    def _shown(self, headers: Headers) -> ApiKey:
        self._look()
        shown = headers.getlist("Authorization")
        scheme, _, token = shown[0].partition(" ") if len(shown) == 1 else ("", "", "")
        if scheme.lower() != "bearer" or not token.strip(BLANKS):
            told = "missing" if not shown else "not one bearer token"
            raise Unauthenticated(f"Authorization is {told}: send your key as 'Authorization: Bearer KEY'.")
        id, _, secret = token.strip(BLANKS).removeprefix(PREFIX).partition("_")
        # One that is not known costs the same hash and the same comparison as a wrong secret of one that is.
        key = self._keys.get(id)
        salt, digest = (key.salt, key.digest) if key else ("0" * 32, "0" * 64)
        if not compare_digest(_digest(salt, secret), digest) or key is None:
            raise Unauthenticated("This key is not known: it was revoked, or is not one of this library.")
        return key

    def _look(self) -> None:
        """Takes in the file when it has changed, looking every half second at most."""
        now = self.clock()
        if now - self._looked_at < LOOK_S and self._seen is not None:
            return
        try:
            stat = self.path.stat()
            seen: tuple[int, ...] = (stat.st_mtime_ns, stat.st_ino, stat.st_size, stat.st_mode)
        except FileNotFoundError:
            seen = ()
        except OSError as error:
            self._seen = None
            raise StorageError(f"The keys in {self.path} cannot be read ({error.strerror}).") from error
        if seen != self._seen:
            self._seen = None
            self._keys = {key.id: key for key in read_keys(self.path)}
        self._seen, self._looked_at = seen, now


def _digest(salt: str, secret: str) -> str:
    return sha256(f"{salt}{secret}".encode("utf-8", "surrogatepass")).hexdigest()


def _wrong(path: Path, why: str) -> StorageError:
    return StorageError(
        f"The keys in {path} cannot be used ({why}): mend the file, or move it away and make keys with "
        "`tidegate keys add`."
    )
