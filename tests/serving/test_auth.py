"""Who is asking is said exactly once, or the request is denied; nothing ever means "may see everything"."""

import pytest
from starlette.datastructures import Headers

from domain.errors import Unauthenticated
from domain.types import Scope
from serving.auth import OpenTo, TrustedHeaders


def headers(*pairs: tuple[str, str]) -> Headers:
    return Headers(raw=[(name.lower().encode(), value.encode("latin-1")) for name, value in pairs])


TENANT, GROUPS = ("X-Tidegate-Tenant", "harbour"), ("X-Tidegate-Groups", "staff, finance")


def test_open_access_reads_as_the_configured_reader_whatever_the_headers_say() -> None:
    scope = Scope("harbour", frozenset({"public"}))
    assert OpenTo(scope)(headers(TENANT, ("X-Tidegate-Groups", "board"))) == scope


def test_a_trusted_proxy_names_tenant_and_groups() -> None:
    assert TrustedHeaders()(headers(TENANT, GROUPS)) == Scope("harbour", frozenset({"staff", "finance"}))


def test_names_are_taken_exactly_as_they_are() -> None:
    scope = TrustedHeaders()(headers(TENANT, ("X-Tidegate-Groups", "Staff")))
    assert scope.groups == {"Staff"}
    assert not scope.may_read("harbour", frozenset({"staff", "staffers"}))


@pytest.mark.parametrize(
    "pairs",
    [
        (),
        (TENANT,),
        (GROUPS,),
        (TENANT, ("X-Tidegate-Groups", "")),
        (TENANT, ("X-Tidegate-Groups", "  ")),
        (TENANT, ("X-Tidegate-Groups", " , ,")),
        (("X-Tidegate-Tenant", ""), GROUPS),
        (TENANT, TENANT, GROUPS),
        (TENANT, GROUPS, ("X-Tidegate-Groups", "staff")),
    ],
)
def test_absent_empty_or_doubled_headers_are_denied(pairs: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(Unauthenticated, match="X-Tidegate-"):
        TrustedHeaders()(headers(*pairs))


def test_a_tenant_that_is_not_on_the_list_is_denied() -> None:
    with pytest.raises(Unauthenticated):
        TrustedHeaders(frozenset({"quay"}))(headers(TENANT, GROUPS))


def test_names_may_be_of_any_script() -> None:
    sent = ("X-Tidegate-Groups", "st\u00e4ff,\u5458\u5de5".encode().decode("latin-1"))  # as a server reads the bytes
    assert TrustedHeaders()(headers(TENANT, sent)).groups == {"st\u00e4ff", "\u5458\u5de5"}


def test_bytes_that_are_no_text_are_denied() -> None:
    with pytest.raises(Unauthenticated, match="X-Tidegate-Groups is not UTF-8"):
        TrustedHeaders()(headers(TENANT, ("X-Tidegate-Groups", "staff\xff")))


def test_only_the_blanks_of_http_are_no_part_of_a_name() -> None:
    sent = ("X-Tidegate-Groups", "staff\u00a0,\tops ".encode().decode("latin-1"))
    assert TrustedHeaders()(headers(TENANT, sent)).groups == {"staff\u00a0", "ops"}
