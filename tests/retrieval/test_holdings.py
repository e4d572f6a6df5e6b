"""Whose document an id is: looked up in every version there is, and not guessed where one cannot be read."""

from pathlib import Path

import pytest

from domain.errors import StorageError
from domain.types import Document
from retrieval.building import build
from retrieval.embedding import HashingEmbedder
from retrieval.holdings import Holdings
from retrieval.registry import FolderRegistry


def built(registry: FolderRegistry, staging: Path, *documents: tuple[str, str]) -> str:
    made = [
        Document(doc_id, "", f"The pump of {doc_id}.", "", "", "", frozenset({"staff"}), tenant, "")
        for doc_id, tenant in documents
    ]
    return build(made, embedder=HashingEmbedder(8), registry=registry, staging=staging, chunker="whole").version.id


def test_a_document_is_found_in_whichever_version_holds_it(tmp_path: Path) -> None:
    registry = FolderRegistry(tmp_path / "library")
    built(registry, tmp_path / "s", ("a", "harbour"), ("a!b", "other"))
    holdings = Holdings(registry)
    assert [holdings.tenant_of(each) for each in ("a", "a!b", "c", "", "a#0", "../a", "\0")] == [
        "harbour", "other", None, None, None, None, None,
    ]  # fmt: skip
    built(registry, tmp_path / "s", ("c", "harbour"))
    assert holdings.tenant_of("c") == "harbour"
    assert holdings.tenant_of("a") == "harbour"


def test_a_version_that_cannot_be_read_is_not_taken_for_one_without_the_document(tmp_path: Path) -> None:
    registry = FolderRegistry(tmp_path / "library")
    damaged = built(registry, tmp_path / "s", ("a", "harbour"))
    built(registry, tmp_path / "s", ("b", "harbour"))
    (registry.folder(damaged) / "documents.json").write_text("[")
    assert Holdings(registry).tenant_of("b") == "harbour"
    with pytest.raises(StorageError, match="Whether a version holds document 'a' is not known"):
        Holdings(registry).tenant_of("a")
