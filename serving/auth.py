"""Who is asking: from the headers of a request to a Scope, or a refusal. There is no third outcome.

Two ways: `open_to` lets everybody in as one configured reader; `TrustedHeaders` believes a proxy that has already
authenticated the person. Whatever is absent, empty or said twice is denied, never read as "may see everything".
"""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers

from domain.errors import Unauthenticated
from domain.types import Scope

TENANT = "X-Tidegate-Tenant"
GROUPS = "X-Tidegate-Groups"
BLANKS = " \t"  # what HTTP allows around a value; any other blank is part of a name

Authenticate = Callable[[Headers], Scope]


@dataclass(frozen=True, slots=True)
class OpenTo:
    """Everybody who can reach the service reads as `scope`: for one machine, or a library without secrets."""

    scope: Scope

    def __call__(self, _: Headers) -> Scope:
        """The configured scope, whatever the request says about itself."""
        return self.scope


@dataclass(frozen=True, slots=True)
class TrustedHeaders:
    """A proxy in front has authenticated the person, strips both headers from outside and sets them itself.

    Names are compared exactly, without folding case or matching prefixes. `tenants` None accepts any tenant name: an
    unknown one simply owns nothing.
    """

    tenants: frozenset[str] | None = None

    def __call__(self, headers: Headers) -> Scope:
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
