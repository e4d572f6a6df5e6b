"""`tidegate forget`, `restore`, `readers`, `compact`: gone at once everywhere, and back only when somebody asks."""

import json
from pathlib import Path

import pytest

from retrieval.registry import FolderRegistry
from tests.tidegate.tiny import admit, sets, write_corpus
from tidegate.cli import main

Capture = pytest.CaptureFixture[str]
KILNS = {
    "keep.txt": "The blue kiln reaches 900 degrees.\n",
    "drop.txt": "The zebrawood kiln reaches 1200 degrees.\n",
}


@pytest.fixture
def data(here: Path) -> Path:
    assert main(["build", str(write_corpus(here / "corpus", KILNS)), *sets(here / "data")]) == 0
    admit(here / "data")
    return here / "data"


def found(data: Path, capsys: Capture, mode: str = "hybrid", *more: str) -> list[str]:
    capsys.readouterr()
    assert main(["search", "zebrawood kiln", "--mode", mode, "--json", *more, *sets(data)]) == 0
    return [hit["doc_id"] for hit in json.loads(capsys.readouterr().out)["hits"]]


def test_a_forgotten_document_is_in_no_mode_and_not_cited_also_after_building_again(
    here: Path, data: Path, capsys: Capture
) -> None:
    assert "drop.txt" in found(data, capsys)
    assert main(["forget", "drop.txt", "--reason", "a request", *sets(data)]) == 0
    assert "drop.txt: forgotten" in capsys.readouterr().out
    # Another text makes another version, which holds the document once more.
    (here / "corpus" / "new.txt").write_text("The new kiln reaches 700 degrees.\n")
    assert main(["build", str(here / "corpus"), *sets(data)]) == 0
    for version in ("old", "new"):
        if version == "new":
            admit(data)
        for mode in ("hybrid", "lexical", "dense"):
            assert "drop.txt" not in found(data, capsys, mode)
        capsys.readouterr()
        assert main(["ask", "How hot is the zebrawood kiln?", *sets(data)]) == 0
        assert "1200" not in capsys.readouterr().out
    assert main(["forget", "drop.txt", *sets(data)]) == 0
    assert "was forgotten before" in capsys.readouterr().out
    assert main(["restore", "drop.txt", *sets(data)]) == 0
    assert "drop.txt" in found(data, capsys)
    changes = FolderRegistry(data / "registry").changes()
    assert [(change.verb.value, change.reason) for change in changes] == [("forget", "a request"), ("restore", "")]


@pytest.mark.parametrize("verb", [["forget"], ["restore"], ["readers", "--nobody"]])
@pytest.mark.parametrize("name", ["nope.txt", "../escape.txt", "."])
def test_an_unknown_document_is_named_and_nothing_is_changed(
    data: Path, capsys: Capture, verb: list[str], name: str
) -> None:
    assert main([*verb, name, *sets(data)]) == 1
    assert f"No version holds document '{name}'" in capsys.readouterr().err
    assert FolderRegistry(data / "registry").changes() == ()


def test_readers_change_at_once_and_go_back(data: Path, capsys: Capture) -> None:
    assert main(["readers", "drop.txt", "--groups", " hr , board,", *sets(data)]) == 0
    assert "drop.txt: read by board, hr" in capsys.readouterr().out
    assert found(data, capsys) == ["keep.txt"]
    assert found(data, capsys, "hybrid", "--groups", "hr") == ["drop.txt"]
    assert main(["readers", "drop.txt", "--as-built", *sets(data)]) == 0
    assert sorted(found(data, capsys)) == ["drop.txt", "keep.txt"]


@pytest.mark.parametrize("said", [[], ["--groups", " ,"], ["--groups", "hr", "--nobody"], ["--nobody", "--as-built"]])
def test_who_may_read_is_said_in_exactly_one_way(data: Path, capsys: Capture, said: list[str]) -> None:
    assert main(["readers", "drop.txt", *said, *sets(data)]) == 2
    assert "one of --groups" in capsys.readouterr().err


def test_a_compacted_version_is_without_the_text(data: Path, capsys: Capture) -> None:
    assert main(["forget", "drop.txt", *sets(data)]) == 0
    capsys.readouterr()
    assert main(["compact", "--json", *sets(data)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["new"], told["left_out"], told["embedded"], told["version"]["documents"]) == (True, 1, 0, 1)
    folder = FolderRegistry(data / "registry").folder(told["version"]["id"])
    assert not [path for path in folder.rglob("*") if path.is_file() and b"zebrawood" in path.read_bytes()]


def test_when_everything_was_forgotten_there_is_nothing_to_compact(data: Path, capsys: Capture) -> None:
    assert main(["forget", "drop.txt", "keep.txt", *sets(data)]) == 0
    assert main(["compact", *sets(data)]) == 1
    assert "All 2 documents" in capsys.readouterr().err
