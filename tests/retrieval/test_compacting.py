"""A compacted version: nothing of what was forgotten is in it, and every reader finds what he found before."""

import random
from pathlib import Path

import pytest

from domain.amending import Amendments
from domain.errors import StorageError
from domain.types import Document, Mode, Query, Scope
from retrieval.building import BuildReport, build
from retrieval.compacting import Compaction
from retrieval.embedding import HashingEmbedder
from retrieval.index import HybridIndex
from retrieval.registry import FolderRegistry

WORDS = ["pump", "valve", "copper", "hose", "oil", "AR-7", "noon"]
EMBEDDER = HashingEmbedder(32)
READERS = [
    Scope(tenant, frozenset(groups))
    for tenant in ("harbour", "other")
    for groups in (("staff",), ("hr",), ("hr", "staff"), ())
]


def library(rng: random.Random) -> list[Document]:
    return [
        Document(
            f"d{i:02}", "", " ".join([*rng.choices(WORDS, k=5), f"mark{i:02}"]), "", "", "",
            frozenset({rng.choice(["staff", "hr"])}), rng.choice(["harbour", "harbour", "other"]), "",
        )
        for i in range(30)
    ]  # fmt: skip


def compacted(registry: FolderRegistry, staging: Path, version: str, amended: Amendments) -> tuple[BuildReport, int]:
    work = Compaction(registry.folder(version), amended, EMBEDDER)
    made = build(
        (), embedder=EMBEDDER, registry=registry, staging=staging, chunker="whole", parent=version, workers=work
    )
    return made, work.left_out


@pytest.mark.parametrize("seed", range(3))
def test_every_reader_finds_in_it_what_he_found_before(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    registry = FolderRegistry(tmp_path / "library")
    documents = library(rng)
    before = build(documents, embedder=EMBEDDER, registry=registry, staging=tmp_path / "s", chunker="whole")
    names = [document.doc_id for document in documents]
    gone = frozenset(rng.sample(names, 6))
    access = {name: frozenset(rng.sample(["staff", "hr"], rng.randrange(3))) for name in rng.sample(names, 8)}
    amended = Amendments(gone, access)
    made, left_out = compacted(registry, tmp_path / "s", before.version.id, amended)
    assert (made.new, made.embedded, left_out, made.version.documents) == (True, 0, 6, 24)
    old = HybridIndex.open(registry.folder(before.version.id), EMBEDDER, amended=amended)
    new = HybridIndex.open(registry.folder(made.version.id), EMBEDDER)
    for scope in READERS:
        for mode in Mode:
            query = Query(" ".join(rng.choices(WORDS, k=2)))
            found = [
                [
                    (hit.chunk.id, hit.chunk.text, hit.score, hit.bm25, hit.cosine)
                    for hit in index.search(query, scope, 7, mode)
                ]
                for index in (old, new)
            ]
            assert found[0] == found[1]


def test_nothing_of_what_was_forgotten_is_in_its_folder(tmp_path: Path) -> None:
    registry = FolderRegistry(tmp_path / "library")
    before = build(
        library(random.Random(1)), embedder=EMBEDDER, registry=registry, staging=tmp_path / "s", chunker="whole"
    )
    made, _ = compacted(registry, tmp_path / "s", before.version.id, Amendments(frozenset({"d07"})))
    held = {
        word: [
            path.name
            for path in registry.folder(made.version.id).rglob("*")
            if path.is_file() and word in path.read_bytes()
        ]
        for word in (b"mark07", b"d07", b"mark08")
    }
    assert (held[b"mark07"], held[b"d07"]) == ([], [])
    assert "chunks.jsonl" in held[b"mark08"]


def test_what_was_not_amended_is_the_same_version(tmp_path: Path) -> None:
    registry = FolderRegistry(tmp_path / "library")
    before = build(
        library(random.Random(2)), embedder=EMBEDDER, registry=registry, staging=tmp_path / "s", chunker="whole"
    )
    made, left_out = compacted(registry, tmp_path / "s", before.version.id, Amendments())
    assert (made.version.id, made.new, left_out) == (before.version.id, False, 0)


def test_a_damaged_version_is_not_copied(tmp_path: Path) -> None:
    registry = FolderRegistry(tmp_path / "library")
    before = build(
        library(random.Random(3)), embedder=EMBEDDER, registry=registry, staging=tmp_path / "s", chunker="whole"
    )
    path = registry.folder(before.version.id) / "chunks.jsonl"
    path.write_bytes(path.read_bytes().replace(b"pump", b"pumq", 1))
    with pytest.raises(StorageError, match="is damaged"):
        compacted(registry, tmp_path / "s", before.version.id, Amendments(frozenset({"d07"})))
    assert len(registry.versions()) == 1
