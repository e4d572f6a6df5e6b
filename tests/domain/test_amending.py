"""Amendments: known documents only, on record before they are done, and nothing of another tenant's."""

from datetime import UTC, datetime

import pytest

from domain.amending import Amending, Amendment, DocumentChange
from domain.errors import NotFound
from tests.fakes import MemoryRegistry

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWNERS = {"a": "harbour", "b": "harbour", "c": "other"}
AT = "2026-03-01T12:00:00.000+00:00"


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


@pytest.fixture
def amending(registry: MemoryRegistry) -> Amending:
    return Amending(registry, OWNERS.get, lambda: NOON)


def test_a_document_is_forgotten_and_restored_with_who_and_why(amending: Amending, registry: MemoryRegistry) -> None:
    assert amending.forget(["a", "c", "a"], "Zoë", "they asked") == ("a", "c")
    assert amending.restore(["c"], "Zoë") == ("c",)
    assert registry.tombstones() == {"a"}
    assert registry.changes() == (
        DocumentChange(Amendment.FORGET, AT, "Zoë", ("a", "c"), None, "they asked"),
        DocumentChange(Amendment.RESTORE, AT, "Zoë", ("c",)),
    )


def test_what_changes_nothing_is_done_and_leaves_no_line(amending: Amending, registry: MemoryRegistry) -> None:
    amending.forget(["a"], "Zoë")
    amending.set_readers("b", frozenset({"hr"}), "Zoë")
    lines = registry.changes()
    assert amending.forget(["a"], "Zoë") == ()
    assert amending.restore(["b"], "Zoë") == ()
    amending.set_readers("b", frozenset({"hr"}), "Zoë")
    amending.set_readers("a", None, "Zoë")
    assert registry.changes() == lines


def test_readers_are_set_to_nobody_and_back_to_as_it_was_built(amending: Amending, registry: MemoryRegistry) -> None:
    amending.set_readers("a", frozenset(), "Zoë")
    assert registry.access() == {"a": frozenset()}
    amending.set_readers("a", None, "Zoë")
    assert registry.access() == {}
    assert [change.groups for change in registry.changes()] == [(), None]


def test_one_unknown_document_stops_all_of_it_naming_it(amending: Amending, registry: MemoryRegistry) -> None:
    with pytest.raises(NotFound, match=r"No version holds document 'nope', '\.\./x'"):
        amending.forget(["a", "nope", "../x"], "Zoë")
    with pytest.raises(NotFound, match="'nope'"):
        amending.set_readers("nope", frozenset({"hr"}), "Zoë")
    assert (registry.tombstones(), registry.access(), registry.changes()) == (frozenset(), {}, ())


def test_a_document_that_is_forgotten_stays_known_when_no_version_holds_it_any_more(registry: MemoryRegistry) -> None:
    registry.tombstone(["a"])
    amending = Amending(registry, lambda _: None, lambda: NOON)
    assert amending.forget(["a"], "Zoë") == ()
    assert amending.restore(["a"], "Zoë") == ("a",)


def test_the_document_of_another_tenant_is_as_unknown_as_one_that_never_was(
    amending: Amending, registry: MemoryRegistry
) -> None:
    said = []
    for doc_id in ("c", "x"):
        with pytest.raises(NotFound) as refused:
            amending.forget([doc_id], "Zoë", tenant="harbour")
        said.append(str(refused.value).replace(f"'{doc_id}'", "ID"))
    assert said[0] == said[1]
    registry.tombstone(["c"])
    with pytest.raises(NotFound):
        amending.restore(["c"], "Zoë", tenant="harbour")
    assert amending.forget(["a"], "Zoë", tenant="harbour") == ("a",)


def test_what_somebody_else_hid_is_forgotten_on_record_as_well_so_that_undoing_the_one_undoes_not_the_other(
    amending: Amending, registry: MemoryRegistry
) -> None:
    amending.forget(["a"], "tidegate sync", "gone from the folder")
    assert amending.forget(["a"], "Zoë", "they asked") == ()
    assert [(change.who, change.doc_ids) for change in registry.changes()] == [
        ("tidegate sync", ("a",)),
        ("Zoë", ("a",)),
    ]
    assert amending.forget(["a"], "Zoë", "they asked again") == ()
    assert len(registry.changes()) == 2


def test_an_id_is_known_however_its_accents_are_written(registry: MemoryRegistry) -> None:
    composed, apart = "caf\u00e9.md", "cafe\u0301.md"
    amending = Amending(registry, {composed: "harbour"}.get, lambda: NOON)
    assert amending.forget([apart, composed], "Zoë") == (composed,)
    amending.set_readers(apart, frozenset({"hr"}), "Zoë")
    assert registry.tombstones() == {composed}
    assert registry.access() == {composed: frozenset({"hr"})}
    assert amending.restore([apart], "Zoë") == (composed,)
