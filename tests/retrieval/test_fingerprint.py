"""A version folder against its name: damage anywhere is found and named."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from domain.errors import StorageError
from domain.types import Document
from retrieval.building import build
from retrieval.embedding import HashingEmbedder
from retrieval.fingerprint import check_content, fingerprint
from retrieval.registry import FolderRegistry


@pytest.fixture
def registry(tmp_path: Path) -> FolderRegistry:
    """One version of three documents."""
    texts = ("The gate opens at high water.", "The bell rings twice.", "The pump needs oil.")
    documents = [
        Document(f"d{i}", "", text, "", "", "", frozenset({"staff"}), "harbour", "") for i, text in enumerate(texts)
    ]
    registry = FolderRegistry(tmp_path / "registry")
    build(documents, embedder=HashingEmbedder(8), registry=registry, staging=tmp_path / "staging")
    return registry


def only(registry: FolderRegistry) -> tuple[str, Path]:
    (folder,) = (registry.root / "versions").iterdir()
    return folder.name, folder


def test_the_name_is_the_digest_of_the_head_and_the_chunks() -> None:
    # by hand: the head as JSON with sorted keys, then every line after a line end
    whole = b'{"counts":{"chunks":2},"format":1}\n{"id":"a"}\n{"id":"b"}'
    named = fingerprint({"format": 1, "counts": {"chunks": 2}}, [b'{"id":"a"}', b'{"id":"b"}'])
    assert named == f"v{sha256(whole).hexdigest()[:12]}"


def test_a_version_is_what_its_name_says_however_small_the_blocks(registry: FolderRegistry) -> None:
    _, folder = only(registry)
    for block in (1, 2, 7, 1 << 20):  # with 1 the last block is the line end alone
        check_content(folder, {}, block)


def test_one_changed_byte_is_found_in_every_file_and_the_file_is_named(registry: FolderRegistry) -> None:
    id, folder = only(registry)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        content = path.read_bytes()
        for at in (0, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            with pytest.raises(StorageError) as refused:
                registry.verify(id)
            assert f"{path.relative_to(folder).as_posix()}: " in str(refused.value)
        path.write_bytes(content)
    registry.verify(id)


def test_every_missing_file_is_named_and_all_at_once(registry: FolderRegistry) -> None:
    id, folder = only(registry)
    (folder / "vectors.npy").unlink()
    (folder / "version.json").unlink()
    (folder / "chunks.jsonl").unlink()
    why = "No such file or directory"
    with pytest.raises(
        StorageError, match=f"chunks.jsonl: {why}; vectors.npy: {why}; version.json: {why}.*restore .*{id}, or remove"
    ):
        registry.verify(id)


def test_whoever_rewrites_the_manifest_to_suit_a_changed_file_is_found_out(registry: FolderRegistry) -> None:
    id, folder = only(registry)
    (folder / "vectors.npy").write_bytes(b"other vectors")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["vectors.npy"] = {"bytes": 13, "sha256": sha256(b"other vectors").hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(StorageError, match=r"\(manifest.json: its content is another\)"):
        registry.verify(id)


def test_a_version_from_before_there_were_seals_is_held_to_its_name(registry: FolderRegistry) -> None:
    id, folder = only(registry)
    (registry.root / "seals" / f"{id}.json").unlink()
    registry.verify(id)
    chunks = (folder / "chunks.jsonl").read_bytes().replace(b"high water", b"low  water")
    (folder / "chunks.jsonl").write_bytes(chunks)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["chunks.jsonl"]["sha256"] = sha256(chunks).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(StorageError, match=r"\(manifest.json: it describes v[0-9a-f]{12}\)"):
        registry.verify(id)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"files": {"a": {}}}', '{"files": []}', "null"])
def test_what_is_no_manifest_is_said_to_be_none(registry: FolderRegistry, content: str) -> None:
    id, folder = only(registry)
    (registry.root / "seals" / f"{id}.json").unlink()
    (folder / "manifest.json").write_text(content)
    with pytest.raises(StorageError, match=r"manifest.json: it is no manifest"):
        registry.verify(id)


def test_a_damaged_seal_is_named(registry: FolderRegistry) -> None:
    id, _ = only(registry)
    (registry.root / "seals" / f"{id}.json").write_text("{")
    with pytest.raises(StorageError, match=rf"seals/{id}.json is damaged"):
        registry.verify(id)


def test_a_file_that_belongs_to_nobody_is_no_damage(registry: FolderRegistry) -> None:
    id, folder = only(registry)
    (folder / ".DS_Store").write_bytes(b"what a file browser leaves")
    registry.verify(id)
