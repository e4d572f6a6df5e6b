"""Who is asking: from the headers of a request to a Scope, or a refusal. There is no third outcome.

Three ways for readers: `OpenTo` lets everybody in as one configured reader; `TrustedHeaders` believes a proxy that has
already authenticated the person; a KeyRing (keyring.py) knows them by their keys. Whatever is absent, empty or said
twice is denied, never read as "may see everything". Whoever moves the pointer shows a key of their own, which no
browser sends by itself.
"""

from dataclasses import dataclass
from enum import StrEnum
from hmac import compare_digest
from typing import Protocol

from starlette.datastructures import Headers

from domain.errors import Forbidden, Unauthenticated
from domain.types import Scope

TENANT = "X-Tidegate-Tenant"
GROUPS = "X-Tidegate-Groups"
BLANKS = " \t"  # what HTTP allows around a value; any other blank is part of a name


class Right(StrEnum):
    """What a reader asks to do. Only a way of authenticating that knows rights looks at it."""

    ANY = "any"
    ASK = "ask"
    SEARCH = "search"
    ADMIN = "admin"


class Authenticate(Protocol):
    """From the headers of a request to the reader it is of, who may do what he asks to do."""

    def __call__(self, headers: Headers, right: Right = Right.ANY, /) -> Scope:
        """The reader. Raises Unauthenticated when nobody can tell who it is, Forbidden when he may not do this."""
        ...


@dataclass(frozen=True, slots=True)
class OpenTo:
    """Everybody who can reach the service reads as `scope`: for one machine, or a library without secrets."""

    scope: Scope

    def __call__(self, _: Headers, _right: Right = Right.ANY, /) -> Scope:
        """The configured scope, whatever the request says about itself."""
        return self.scope


@dataclass(frozen=True, slots=True)
class TrustedHeaders:
    """A proxy in front has authenticated the person, strips both headers from outside and sets them itself.

    Names are compared exactly, without folding case or matching prefixes. `tenants` None accepts any tenant name: an
    unknown one simply owns nothing.
    """

    tenants: frozenset[str] | None = None

    def __call__(self, headers: Headers, _right: Right = Right.ANY, /) -> Scope:
        """The scope the proxy vouches for. Raises Unauthenticated when it does not say exactly one."""
        tenant = _only(headers, TENANT)
        groups = frozenset(name for part in _only(headers, GROUPS).split(",") if (name := part.strip(BLANKS)))
        if not groups:
            raise Unauthenticated(f"{GROUPS} names no group: a reader without groups may read nothing.")
        if self.tenants is not None and tenant not in self.tenants:
            raise Unauthenticated(f"{TENANT} names no tenant of this library: ask its operator for the right name.")
        return Scope(tenant, groups)


def _only(headers: Headers, name: str) -> str:
    """The value of a header that must be there exactly once and not be blank."""
    values = headers.getlist(name)
    if len(values) > 1:
        raise Unauthenticated(f"{name} was sent {len(values)} times: the proxy in front must set it exactly once.")
    if not values or not values[0].strip(BLANKS):
        raise Unauthenticated(f"{name} is {'empty' if values else 'missing'}: the proxy in front must set it.")
    try:
        return values[0].strip(BLANKS).encode("latin-1").decode()  # headers are read as Latin-1; names may be any text
    except UnicodeError as error:
        raise Unauthenticated(f"{name} is not UTF-8: the proxy in front must send it so.") from error


def check_admin(headers: Headers, key: str | None) -> None:
    """Returns for whoever shows the admin key as `Authorization: Bearer`. `key` None: nobody has it.

    Raises Unauthenticated for a request that shows none, or two, and Forbidden for a wrong one. Never tells the key.
    """
    if key is None:
        raise Forbidden(
            "This service has no admin key, so the pointer is not moved over HTTP: set access.admin_key_file, or use "
            "`tidegate canary`, `tidegate promote` and `tidegate rollback` on its machine."
        )
    shown = headers.getlist("Authorization")
    scheme, _, token = shown[0].partition(" ") if len(shown) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip(BLANKS):
        told = "missing" if not shown else "not one bearer token"
        raise Unauthenticated(f"Authorization is {told}: send the admin key as 'Authorization: Bearer KEY'.")
    if not compare_digest(token.strip(BLANKS).encode("latin-1"), key.encode()):
        raise Forbidden("This is not the admin key: the file of access.admin_key_file, or admin.key, has it.")
