"""Which documents a shard holds, and the folder that is cut for it."""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from domain.errors import ConfigError, StorageError
from domain.types import Document
from retrieval.building import build
from retrieval.embedding import HashingEmbedder
from retrieval.index import HybridIndex
from retrieval.registry import FolderRegistry
from retrieval.sharding import document_of, folders, shard_folder, shards_of
from retrieval.stored import StoredVersion

IDS = [f"doc/{i}.md" for i in range(4000)]


def version(folder: Path, documents: Sequence[Document]) -> Path:
    registry = FolderRegistry(folder / "library")
    built = build(documents, embedder=HashingEmbedder(16), registry=registry, staging=folder / "staging")
    return registry.folder(built.version.id)


def note(doc_id: str, sections: int = 1) -> Document:
    text = "\n\n".join(f"# Part {i}\n\n{'The pump of ' + doc_id + ' runs. '} " * 30 for i in range(sections))
    return Document(doc_id, "", text, "", "", "", frozenset({"staff"}), "harbour", "")


# ---------------------------------------------------------------------------------------------- who holds what


def test_the_shard_of_a_document_never_changes() -> None:
    # Written down once: another answer would make every shard that is on disk a wrong one.
    assert shards_of(["a", "b", "c", "d", "ü/é.md", ""], 5).tolist() == SHARDS_OF_FIVE


SHARDS_OF_FIVE = [1, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_shards_are_of_about_one_size(shards: int) -> None:
    sizes = np.bincount(shards_of(IDS, shards), minlength=shards)
    assert sizes.sum() == len(IDS)
    assert abs(sizes - len(IDS) / shards).max() < 5 * (len(IDS) / shards) ** 0.5  # five standard deviations


@pytest.mark.parametrize("shards", [1, 2, 5, 16])
def test_one_shard_more_takes_its_share_from_all_others_and_moves_nothing_else(shards: int) -> None:
    before, after = shards_of(IDS, shards), shards_of(IDS, shards + 1)
    moved = before != after
    assert set(after[moved]) == {shards}
    expected = len(IDS) / (shards + 1)
    assert abs(moved.sum() - expected) < 5 * expected**0.5


def test_a_shard_depends_on_the_document_alone() -> None:
    assert shards_of(IDS[7:9], 3).tolist() == shards_of(IDS, 3)[7:9].tolist()
    assert shards_of([], 3).size == 0


def test_a_chunk_names_its_document_whatever_stands_in_the_name() -> None:
    assert document_of("a#b#12-0123456789") == "a#b"
    assert document_of("nonsense") == ""


# ---------------------------------------------------------------------------------------------- what is cut


def test_every_chunk_is_in_one_shard_and_those_of_a_document_together(tmp_path: Path) -> None:
    whole = version(tmp_path, [note(f"d{i}", sections=3) for i in range(12)])
    shards = [StoredVersion(shard_folder(whole, tmp_path / "shards", i, 3)) for i in range(3)]
    assert sorted(chunk_id for shard in shards for chunk_id in shard.ids) == StoredVersion(whole).ids
    assert len(StoredVersion(whole).ids) > 12
    assert sorted(doc_id for shard in shards for doc_id in shard.documents) == StoredVersion(whole).documents


def test_a_shard_has_the_chunks_and_vectors_of_the_whole_and_its_name(tmp_path: Path) -> None:
    path = version(tmp_path, [note(f"d{i}") for i in range(9)])
    whole, shard = StoredVersion(path), StoredVersion(shard_folder(path, tmp_path / "shards", 1, 2))
    rows = [whole.row(chunk_id) for chunk_id in shard.ids]
    assert rows
    assert np.array_equal(shard.vectors(), whole.vectors()[rows])
    assert [shard.chunk(i) for i in range(len(rows))] == [whole.chunk(row) for row in rows if row is not None]
    cut = {"number": 1, "of": 2, "whole": sha256((path / "manifest.json").read_bytes()).hexdigest()}
    assert (shard.id, shard.manifest["shard"]) == (whole.id, cut)


def test_a_shard_is_cut_without_embedding_and_equals_a_build_of_its_documents(tmp_path: Path) -> None:
    documents = [note(f"d{i}") for i in range(9)]
    shard = shard_folder(version(tmp_path, documents), tmp_path / "shards", 0, 2)
    held = set(StoredVersion(shard).documents)
    alone = version(tmp_path / "alone", [document for document in documents if document.doc_id in held])
    for name in ("chunks.jsonl", "offsets.npy", "ids.json", "vectors.npy", "texts.npy", "document_of.npy"):
        assert (shard / name).read_bytes() == (alone / name).read_bytes(), name
    assert {file.name: file.read_bytes() for file in (shard / "bm25").iterdir()} == {
        file.name: file.read_bytes() for file in (alone / "bm25").iterdir()
    }


def test_a_shard_may_hold_nothing_and_opens_all_the_same(tmp_path: Path) -> None:
    path = version(tmp_path, [note("d0")])
    sizes = [
        len(HybridIndex.open(shard_folder(path, tmp_path / "shards", i, 3), HashingEmbedder(16)).stored.ids)
        for i in range(3)
    ]
    assert sorted(sizes)[:2] == [0, 0]


def test_a_shard_that_is_there_is_not_cut_again_and_a_damaged_one_is(tmp_path: Path) -> None:
    path = version(tmp_path, [note(f"d{i}") for i in range(4)])
    folder = shard_folder(path, tmp_path / "shards", 0, 2)
    before = (folder / "manifest.json").stat().st_mtime_ns
    assert shard_folder(path, tmp_path / "shards", 0, 2) == folder
    assert (folder / "manifest.json").stat().st_mtime_ns == before
    whole = (folder / "vectors.npy").read_bytes()
    (folder / "vectors.npy").write_bytes(b"")
    shard_folder(path, tmp_path / "shards", 0, 2)
    assert (folder / "vectors.npy").read_bytes() == whole


def test_a_version_that_was_built_again_with_other_vectors_is_cut_again(tmp_path: Path) -> None:
    path = version(tmp_path, [note(f"d{i}") for i in range(4)])
    folder = shard_folder(path, tmp_path / "shards", 0, 2)
    before = np.load(folder / "vectors.npy")
    np.save(path / "vectors.npy", -np.load(path / "vectors.npy"))  # as of another batch, only easier to see
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"]["vectors.npy"]["sha256"] = sha256((path / "vectors.npy").read_bytes()).hexdigest()
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert np.array_equal(np.load(shard_folder(path, tmp_path / "shards", 0, 2) / "vectors.npy"), -before)


def test_a_version_that_cannot_be_read_is_named_and_costs_no_shard(tmp_path: Path) -> None:
    path = version(tmp_path, [note("d0")])
    folder = shard_folder(path, tmp_path / "shards", 0, 2)
    (path / "manifest.json").unlink()
    with pytest.raises(StorageError, match=rf"{path.name}.*manifest.json cannot be read"):
        shard_folder(path, tmp_path / "shards", 0, 2)
    assert (folder / "manifest.json").is_file()


def test_shards_are_found_by_their_version(tmp_path: Path) -> None:
    path = version(tmp_path, [note("d0")])
    shard_folder(path, tmp_path / "shards", 0, 2)
    assert folders(tmp_path / "shards") == {path.name: tmp_path / "shards" / path.name}
    assert folders(tmp_path / "nowhere") == {}


def test_a_shard_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    path = version(tmp_path, [note("d0")])
    with pytest.raises(ConfigError, match="no shard 2 of 2"):
        shard_folder(path, tmp_path / "shards", 2, 2)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = version(tmp_path, [note("d0")])
    (tmp_path / "shards").write_text("a file")
    with pytest.raises(StorageError, match="shards"):
        shard_folder(path, tmp_path / "shards", 0, 2)
