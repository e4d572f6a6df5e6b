"""Building a version: the same from the same, nothing embedded twice, nothing half-written."""

import json
import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from domain.errors import ConfigError, CorpusError, StageFailed, StorageError
from domain.ingestion import FileStatus
from domain.types import Document
from retrieval.building import BuildReport, build
from retrieval.documents import Corpus
from retrieval.embedding import HashingEmbedder
from retrieval.parts import FILES
from retrieval.registry import FolderRegistry
from retrieval.workplace import workplace

PUBLIC = frozenset({"public"})


class CountingEmbedder(HashingEmbedder):
    """Remembers every text it was asked to embed."""

    def __init__(self, dimensions: int = 16, tag: str = "counting") -> None:
        super().__init__(dimensions)
        self.tag = tag
        self.seen: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        self.seen += texts
        return super().embed_documents(texts)


def document(doc_id: str, text: str, title: str = "", groups: frozenset[str] = PUBLIC) -> Document:
    return Document(doc_id, title, text, "", "", "", groups, "harbour", sha256(text.encode()).hexdigest())


PUMPS = [
    document("a", "The pump overheats at noon."),
    document("b", "The valve sticks in winter.", groups=frozenset({"staff", "ops"})),
    document("c", "Copper gasket fitted to line one.", title="Line one"),
]


def made(tmp_path: Path, documents: Sequence[Document] = PUMPS, **settings: object) -> tuple[BuildReport, Path]:
    registry = FolderRegistry(tmp_path / "library")
    settings = {"embedder": CountingEmbedder(), "registry": registry, "staging": tmp_path / "staging", **settings}
    report = build(documents, **settings)  # type: ignore[arg-type]  # settings are literals here
    return report, registry.folder(report.version.id)


def contents(folder: Path) -> dict[str, bytes]:
    """Everything but the time of building."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "version.json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_a_build_publishes_a_version_that_says_what_it_is(tmp_path: Path) -> None:
    report, folder = made(tmp_path)
    assert (report.new, report.embedded, report.reused_vectors) == (True, 3, 0)
    assert (report.version.documents, report.version.chunks, report.version.embedder) == (3, 3, "counting")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["id"], manifest["embedder"]) == (report.version.id, {"tag": "counting", "dimensions": 16})
    assert manifest["counts"] == {"documents": 3, "chunks": 3}


def test_every_file_is_in_the_manifest_with_its_digest(tmp_path: Path) -> None:
    _, folder = made(tmp_path)
    files = json.loads((folder / "manifest.json").read_text())["files"]
    found = contents(folder)
    assert set(files) == set(found) - {"manifest.json"}
    for name, described in files.items():
        assert described == {"bytes": len(found[name]), "sha256": sha256(found[name]).hexdigest()}
    assert {name.partition("/")[0].rstrip("/") for name in found} == {name.rstrip("/") for name in FILES}


def test_two_builds_of_the_same_input_are_byte_identical_in_whatever_order(tmp_path: Path) -> None:
    documents = [
        document(f"d{i}", f"Pump {i} runs. " * (i + 1), groups=frozenset({f"g{i % 3}", "x"})) for i in range(20)
    ]
    first, folder = made(tmp_path / "one", documents)
    random.Random(7).shuffle(documents)
    second, other = made(tmp_path / "two", documents)
    assert first.version.id == second.version.id
    assert contents(folder) == contents(other)


def test_building_what_is_there_embeds_nothing_and_says_so(tmp_path: Path) -> None:
    first, _ = made(tmp_path)
    embedder = CountingEmbedder()
    again, _ = made(tmp_path, embedder=embedder)
    assert (again.new, again.version, embedder.seen) == (False, first.version, [])


@pytest.mark.parametrize(
    "change",
    [
        {"documents": [replace(PUMPS[0], text="The pump overheats at ten."), *PUMPS[1:]]},
        {"documents": [replace(PUMPS[0], title="Heat"), *PUMPS[1:]]},
        {"documents": [replace(PUMPS[0], uri="https://wiki.example"), *PUMPS[1:]]},
        {"documents": [replace(PUMPS[0], groups=frozenset({"staff"})), *PUMPS[1:]]},
        {"documents": [replace(PUMPS[0], tenant="other"), *PUMPS[1:]]},
        {"documents": PUMPS[:2]},
        {"embedder": CountingEmbedder(tag="other")},
        {"chunker": "fixed"},
        {"chunk_tokens": 150},
        {"overlap": 10},
    ],
)
def test_anything_that_changes_what_a_reader_gets_changes_the_id(tmp_path: Path, change: dict[str, object]) -> None:
    before, _ = made(tmp_path / "one")
    after, _ = made(tmp_path / "two", **change)  # type: ignore[arg-type]  # settings are literals here
    assert before.version.id != after.version.id


def test_a_parent_is_not_part_of_the_identity(tmp_path: Path) -> None:
    assert made(tmp_path / "one")[0].version.id == made(tmp_path / "two", parent="v000000000001")[0].version.id


def test_unchanged_text_is_not_embedded_again(tmp_path: Path) -> None:
    first, folder = made(tmp_path)
    embedder = CountingEmbedder()
    changed = [PUMPS[0], replace(PUMPS[1], groups=PUBLIC), replace(PUMPS[2], text="Rubber hose replaced in May.")]
    report, other = made(tmp_path, changed, embedder=embedder, parent=first.version.id)
    assert embedder.seen == ["Line one\nRubber hose replaced in May."]
    assert (report.embedded, report.reused_vectors, report.version.parent) == (1, 2, first.version.id)
    before, after = (np.load(path / "vectors.npy") for path in (folder, other))
    assert np.array_equal(before[:2], after[:2])


@pytest.mark.parametrize("chunker", ["semantic", "contextual"])
def test_passages_found_by_more_than_their_text_are_not_embedded_again_either(tmp_path: Path, chunker: str) -> None:
    old = [
        document(name, " ".join(f"The pump of hall {i} is oiled by crew {name}." for i in range(30)), title=name)
        for name in "abc"
    ]
    settings = {"chunker": chunker, "chunk_tokens": 40}
    first, _ = made(tmp_path, old, **settings)
    new = document("d", "The valve of the lake sticks in winter and is greased by nobody.")
    report, folder = made(tmp_path, [*old, new], parent=first.version.id, **settings)
    assert first.version.chunks > 6
    assert (report.embedded, report.reused_vectors) == (1, first.version.chunks)
    again, other = made(tmp_path / "anew", [new, *old], **settings)
    assert again.version.id == report.version.id
    assert contents(other) == contents(folder)


def test_vectors_of_another_embedder_are_not_taken(tmp_path: Path) -> None:
    first, _ = made(tmp_path)
    report, _ = made(tmp_path, embedder=CountingEmbedder(tag="other"), parent=first.version.id)
    assert report.reused_vectors == 0


def test_a_version_of_another_format_does_not_stop_the_build_that_replaces_it(tmp_path: Path) -> None:
    before, folder = made(tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"format": 1}))
    report, _ = made(tmp_path, [*PUMPS, document("d", "The hose leaks.")], parent=before.version.id)
    assert (report.new, report.embedded) == (True, 4)


class RemovingEmbedder(CountingEmbedder):
    """Somebody removes a folder while this one works."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        shutil.rmtree(self.folder, ignore_errors=True)
        return super().embed_documents(texts)


def test_a_version_that_is_removed_during_a_build_costs_the_build_nothing(tmp_path: Path) -> None:
    before, folder = made(tmp_path)
    more = [*PUMPS, document("d", "The hose leaks.")]
    report, built = made(tmp_path, more, parent=before.version.id, embedder=RemovingEmbedder(folder))
    assert (report.embedded, report.reused_vectors) == (1, 3)
    assert contents(built) == contents(made(tmp_path / "alone", more)[1])


def test_equal_texts_are_embedded_once(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    report, folder = made(tmp_path, [document("a", "Same."), document("b", "Same.")], embedder=embedder)
    assert embedder.seen == ["Same."]
    vectors = np.load(folder / "vectors.npy")
    assert np.array_equal(vectors[0], vectors[1])
    assert report.embedded == 2


@pytest.mark.parametrize("documents", [[], [document("a", " \n ")]])
def test_nothing_to_index_is_an_error_and_leaves_nothing(tmp_path: Path, documents: list[Document]) -> None:
    with pytest.raises(CorpusError, match="has no text to index"):
        made(tmp_path, documents)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_blank_files_is_named_with_the_way_out(tmp_path: Path) -> None:
    corpus = tmp_path / "notes"
    corpus.mkdir()
    for name, content in {
        "empty.txt": "",
        "spaces.txt": " \t ",
        "lines.md": "\n\r\n",
        "marks.txt": "... --- !!! ###",
    }.items():
        (corpus / name).write_text(content)
    with pytest.raises(CorpusError, match=r"notes has no text to index \(4 files .*add documents"):
        made(tmp_path, Corpus(corpus))  # type: ignore[arg-type]  # a Corpus is iterable, and that is all that is needed
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_the_report_tells_what_became_of_each_file(tmp_path: Path) -> None:
    corpus = tmp_path / "notes"
    corpus.mkdir()
    (corpus / "a.txt").write_text("The pump runs.")
    (corpus / "b.txt").write_text("")
    report, _ = made(tmp_path, Corpus(corpus, default_groups=PUBLIC))  # type: ignore[arg-type]  # as above
    assert [(each.path, each.status) for each in report.outcomes] == [
        ("a.txt", FileStatus.INDEXED),
        ("b.txt", FileStatus.SKIPPED),
    ]


def test_two_documents_with_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="'a' occurs twice"):
        made(tmp_path, [PUMPS[0], PUMPS[0]])


def test_impossible_chunk_settings_are_refused_before_a_document_is_read(tmp_path: Path) -> None:
    def documents() -> Sequence[Document]:
        raise AssertionError("read a document")
        yield

    with pytest.raises(ConfigError, match="overlap of 200"):
        made(tmp_path, documents(), overlap=200)


def test_an_embedder_that_gives_nonsense_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    class Broken(CountingEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
            return np.full((len(texts), self.dimensions), np.nan, np.float32)

    with pytest.raises(StageFailed, match="'broken' gave"):
        made(tmp_path, embedder=Broken(tag="broken"))
    assert not (tmp_path / "library" / "versions").exists()


def test_a_staging_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"Cannot write .*file"):
        made(tmp_path, staging=tmp_path / "file" / "staging")


def test_a_build_that_fails_late_leaves_no_staged_folder(tmp_path: Path) -> None:
    class Full(FolderRegistry):
        def publish(self, staged: Path, version: object) -> bool:
            raise OSError(28, "No space left on device", str(staged))

    with pytest.raises(StorageError, match=r"No space left on device.*free some space"):
        made(tmp_path, registry=Full(tmp_path / "library"))
    assert list((tmp_path / "staging").iterdir()) == []


def test_a_build_leaves_only_the_version(tmp_path: Path) -> None:
    made(tmp_path)
    assert list((tmp_path / "staging").iterdir()) == []


def test_progress_counts_up_to_the_whole(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    made(tmp_path, progress=lambda what, done, total: told.append((what, done, total)))
    assert told == [("reading", 3, 3), ("embedding", 0, 3), ("embedding", 3, 3), ("writing", 0, 0)]


def test_what_a_killed_build_left_behind_goes_with_the_next_one(tmp_path: Path) -> None:
    left = tmp_path / "staging" / "v000000000000-killed"
    left.mkdir(parents=True)
    (left / "chunks.jsonl").write_text("half")
    made(tmp_path)
    assert list((tmp_path / "staging").iterdir()) == []


def test_a_build_that_still_runs_keeps_its_folder(tmp_path: Path) -> None:
    with workplace(tmp_path / "staging", "other") as theirs:
        (theirs / "chunks.jsonl").write_text("half")
        made(tmp_path)
        assert (theirs / "chunks.jsonl").read_text() == "half"
    assert not theirs.exists()


def test_building_a_damaged_version_again_names_the_way_out_and_the_way_out_works(tmp_path: Path) -> None:
    first, folder = made(tmp_path)
    whole = contents(folder)
    (folder / "vectors.npy").write_bytes(b"broken off")
    with pytest.raises(StorageError, match=r"vectors.npy .*remove it and build again"):
        made(tmp_path)
    shutil.rmtree(folder)
    again, folder = made(tmp_path)
    assert again.new
    assert (again.version.id, contents(folder)) == (first.version.id, whole)
