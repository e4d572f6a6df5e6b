from pathlib import Path

import numpy as np
import pytest

from domain.types import Document, Query, Scope
from retrieval.building import build
from retrieval.dense_choice import CODES_BYTES, FLAT_BYTES, Opening, chosen, open_dense, part, write_dense
from retrieval.embedding import HashingEmbedder
from retrieval.faiss_arm import FaissArm
from retrieval.index import HybridIndex
from retrieval.ivf_arm import NPROBE
from retrieval.registry import FolderRegistry
from retrieval.stored import manifest_of

VECTORS = np.eye(40, dtype=np.float32)


def test_auto_is_exact_then_codes_then_a_graph_where_there_is_one() -> None:
    assert chosen(FLAT_BYTES, graph=True) == "faiss"
    assert chosen(FLAT_BYTES + 1, graph=True) == "codes"
    assert chosen(CODES_BYTES + 1, graph=True) == "hnsw"
    assert chosen(CODES_BYTES + 1, graph=False) == "codes"


def test_auto_opens_a_small_version_exactly(tmp_path: Path) -> None:
    assert isinstance(open_dense("auto", Opening(VECTORS, tmp_path)), FaissArm)


@pytest.mark.parametrize(
    ("kind", "files"),
    [("auto", []), ("faiss", []), ("codes", []), ("hnsw", ["hnsw.faiss"]), ("ivf", ["centroids", "rows", "starts"])],
)
def test_a_version_holds_the_files_that_its_arm_wants(tmp_path: Path, kind: str, files: list[str]) -> None:
    write_dense(tmp_path, VECTORS, kind)
    written = sorted(path.name.removesuffix(".npy") for path in tmp_path.rglob("*") if path.is_file())
    assert written == files


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_an_arm_whose_files_are_missing_makes_them_at_opening(tmp_path: Path, kind: str) -> None:
    (tmp_path / "with").mkdir()
    write_dense(tmp_path / "with", VECTORS, kind)
    found = [open_dense(kind, Opening(VECTORS, tmp_path / name)).name for name in ("with", "without")]
    assert found == [kind, kind]


def test_effort_reaches_the_arm_that_it_is_for(tmp_path: Path) -> None:
    opening = Opening(VECTORS, tmp_path, nprobe=3, ef_search=5)
    assert open_dense("ivf", opening).nprobe == 3  # type: ignore[attr-defined]
    assert open_dense("hnsw", opening).ef_search == 5  # type: ignore[attr-defined]
    assert Opening(VECTORS, tmp_path).nprobe == NPROBE


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_files_of_an_arm_are_part_of_a_version_and_searched_from_there(tmp_path: Path, kind: str) -> None:
    embedder, registry = HashingEmbedder(32), FolderRegistry(tmp_path / "library")
    texts = {"a": "The pump overheats at noon.", "b": "The valve sticks in winter."}
    documents = [Document(i, "", text, "", "", "", frozenset({"staff"}), "harbour", "") for i, text in texts.items()]
    built = build(documents, embedder=embedder, registry=registry, staging=tmp_path / "s", extra=(part(kind),))
    folder = registry.folder(built.version.id)
    assert [name for name in manifest_of(folder)["files"] if name.startswith(kind)]
    index = HybridIndex.open(folder, embedder, dense=kind)
    assert index.dense.name == kind
    hits = index.search(Query("valve in winter"), Scope("harbour", frozenset({"staff"})), 2)
    assert [hit.chunk.source.doc_id for hit in hits] == ["b", "a"]
