"""Who may change things over HTTP: whoever shows the operator's key, or a reader's key that is an admin's.

The operator's key moves the pointer and changes every document; an admin's key changes documents of his tenant alone.
A wrong key is refused after a moment, so that trying many takes long.
"""

import asyncio
from dataclasses import dataclass

from starlette.requests import Request

from domain.errors import Forbidden, Unauthenticated
from serving.auth import check_admin
from serving.service import Service


@dataclass(frozen=True, slots=True)
class Admin:
    """Who is on record with what was done, and the one tenant whose documents it may be done to; None: all."""

    who: str
    tenant: str | None = None


async def admitted(request: Request, service: Service) -> Admin:
    """The admin whose key the request shows. Raises Unauthenticated for none, Forbidden for a wrong one."""
    if service.admin_of is not None and (known := service.admin_of(request.headers)) is not None:
        name, tenant = known
        return Admin(f"{name} over HTTP ({request.state.request_id})", tenant)
    return await operator(request, service)


async def operator(request: Request, service: Service) -> Admin:
    """The operator. Raises as `admitted` does, also for the key of an admin: the pointer is everybody's."""
    try:
        check_admin(request.headers, service.admin_key)
    except Forbidden:
        if service.admin_key is not None:
            await asyncio.sleep(service.limits.wrong_key_s)
        raise
    return Admin(f"admin over HTTP ({request.state.request_id})")


def is_operator(request: Request, service: Service) -> bool:
    """True for a request that shows the operator's key beside whatever else it shows."""
    try:
        check_admin(request.headers, service.admin_key)
    except (Forbidden, Unauthenticated):
        return False
    return True
