"""`tidegate build` and `versions`: what is told of every file, and that nothing half-written is left."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidegate.tiny import FILES, served, sets, write_corpus
from tidegate.cli import main
from tidegate.console import Code

Capture = pytest.CaptureFixture[str]


def written(data_dir: Path) -> list[str]:
    """Every file below a data folder."""
    return sorted(str(path.relative_to(data_dir)) for path in data_dir.rglob("*") if path.is_file())


# ---------------------------------------------------------------------------------------------- built


def test_a_build_names_its_version_and_counts_on_stdout(here: Path, capsys: Capture) -> None:
    assert main(["build", str(write_corpus(here / "corpus")), *sets(here / "data")]) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert out.startswith("v")
    assert "3 documents, 3 chunks (3 embedded, 0 re-used); files: 3 indexed" in out
    assert "note" not in err


def test_the_same_corpus_again_is_the_same_version(here: Path, capsys: Capture) -> None:
    corpus = str(write_corpus(here / "corpus"))
    assert main(["build", corpus, *sets(here / "data")]) == 0
    assert main(["build", f"./{Path(corpus).name}", *sets(here / "data")]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.split()[0] == second.split()[0]
    assert "was there already" in second


def test_a_build_as_json_is_one_document(here: Path, capsys: Capture) -> None:
    corpus = write_corpus(here / "corpus", {**FILES, "blank.txt": " \t\n"})
    assert main(["build", str(corpus), "--json", *sets(here / "data")]) == 0
    built = json.loads(capsys.readouterr().out)
    assert built["files"] == {"indexed": 3, "warning": 0, "skipped": 1, "failed": 0, "records": 0, "total": 4}
    assert [(o["path"], o["code"]) for o in built["outcomes"]] == [("blank.txt", "blank")]


def test_paths_with_blanks_and_letters_of_any_script_work(here: Path, capsys: Capture) -> None:
    corpus = write_corpus(here / "meine Akten ü 港", {"größe 港.txt": "The zebrawood kiln is large."})
    assert main(["build", corpus.name, *sets(here / "my data ü")]) == 0
    assert main(["versions", "--json", *sets(here / "my data ü")]) == 0
    assert '"documents": 1' in capsys.readouterr().out


def test_versions_are_listed_with_their_role(here: Path, capsys: Capture) -> None:
    data_dir, version = served(here)
    assert main(["build", str(here / "corpus"), *sets(data_dir, chunking__strategy="whole")]) == 0
    capsys.readouterr()
    assert main(["versions", *sets(data_dir)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0]: line.split()[-1] for line in lines}[version] == "stable"
    assert len(lines) == 2


def test_without_a_version_the_list_is_empty_and_the_way_on_is_named(here: Path, capsys: Capture) -> None:
    assert main(["versions", *sets(here / "data")]) == 0
    assert capsys.readouterr() == ("", "note: no version has been built yet: tidegate build CORPUS\n")


# ---------------------------------------------------------------------------------------------- told of files


def test_when_some_files_fail_the_others_are_built_and_the_code_is_5(here: Path, capsys: Capture) -> None:
    corpus = write_corpus(here / "corpus", {**FILES, "bad.jsonl": '{"id": "a", "text": 5}\n', "photo.png": "x"})
    assert main(["build", str(corpus), *sets(here / "data")]) == Code.PARTIAL
    out, err = capsys.readouterr()
    assert "3 documents" in out
    assert err.index("bad.jsonl:1: failed (bad_record)") < err.index("photo.png: skipped (unknown_kind)")


def test_of_many_files_left_out_only_the_first_are_named(here: Path, capsys: Capture) -> None:
    corpus = write_corpus(here / "corpus", {**FILES, **{f"{i:03}.png": "x" for i in range(100)}})
    assert main(["build", str(corpus), *sets(here / "data")]) == 0
    err = capsys.readouterr().err
    assert err.count("unknown_kind") == 20
    assert "note: and 80 more; `tidegate build --json` lists them all" in err


def test_documents_that_nobody_may_read_are_told_with_the_way_out(here: Path, capsys: Capture) -> None:
    corpus = str(write_corpus(here / "corpus"))
    assert main(["build", corpus, *sets(here / "data", access__default_groups="[]")]) == 0
    assert "name their readers, for example with --groups public" in capsys.readouterr().err
    assert main(["build", corpus, "--groups", "public", *sets(here / "data", access__default_groups="[]")]) == 0
    assert "nobody" not in capsys.readouterr().err


@pytest.mark.parametrize(("tokens", "whole"), [(None, True), ("200", True), ("300", False), ("8", False)])
def test_passages_of_a_collection_stay_whole_unless_another_size_is_asked_for(
    here: Path, capsys: Capture, tokens: str | None, whole: bool
) -> None:
    # 425 estimated tokens: within the 700 of a passage that is left whole. 200 is the default, so nobody asked for it.
    text = " ".join(["The kiln is hot."] * 100)
    corpus = write_corpus(here / "beir", {"corpus.jsonl": f'{{"_id": "1", "title": "Kiln", "text": "{text}"}}\n'})
    size = {} if tokens is None else {"chunking__tokens": tokens}
    assert main(["build", str(corpus), "--format", "beir", "--json", *sets(here / "data", **size)]) == 0
    assert (json.loads(capsys.readouterr().out)["version"]["chunks"] == 1) is whole


@pytest.mark.parametrize("words", [[], ["--format", "beir"]])
def test_a_beir_collection_may_be_read_by_the_anonymous_reader(here: Path, capsys: Capture, words: list[str]) -> None:
    corpus = write_corpus(here / "beir", {"corpus.jsonl": '{"_id": "1", "title": "Kiln", "text": "Zebrawood."}\n'})
    (corpus / "qrels").mkdir()
    assert main(["build", str(corpus), *words, *sets(here / "data", access__default_groups="[]")]) == 0
    assert "nobody" not in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- refused

BLANKS = {"zero.txt": "", "blanks.txt": " \t ", "ends.txt": "\n\r\n\r", "signs.md": "... --- !!! ###"}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "has no text to index"),
        (BLANKS, "has no text to index (4 files or records were left out)"),
        ({"photo.png": "x"}, "photo.png: skipped (unknown_kind)"),
    ],
)
def test_a_corpus_without_text_is_refused_and_nothing_is_written(
    here: Path, capsys: Capture, files: dict[str, str], said: str
) -> None:
    corpus = write_corpus(here / "corpus", files)
    assert main(["build", str(corpus), *sets(here / "data")]) == Code.REFUSED
    out, err = capsys.readouterr()
    assert not out
    assert said in err
    assert err.splitlines()[-1].startswith(f"error: Corpus {corpus} has no text")
    assert all(f"{name}: skipped" in err for name in files)
    assert not (here / "data").exists()


def test_a_file_of_a_known_kind_is_a_corpus_of_one(here: Path, capsys: Capture) -> None:
    corpus = write_corpus(here / "corpus")
    assert main(["build", str(corpus / "pump.txt"), *sets(here / "data")]) == 0
    assert "1 documents" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["gone"], Code.REFUSED, "Corpus gone does not exist: name a folder of documents."),
        (["corpus", "--format", "pdf"], Code.USAGE, "Corpus format 'pdf' is not known: use auto, folder or beir."),
        (["corpus", "--format", "beir"], Code.REFUSED, "corpus has no corpus.jsonl"),
        ([], Code.USAGE, "Missing argument"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_one_line_and_nothing_is_written(
    here: Path, capsys: Capture, words: list[str], code: Code, said: str
) -> None:
    write_corpus(here / "corpus")
    assert main(["build", *words, *sets(here / "data")]) == code
    out, err = capsys.readouterr()
    assert not out
    assert said in err
    assert err.splitlines()[-1].startswith("error: ")
    assert not (here / "data").exists()


def test_a_data_folder_that_is_a_file_is_refused_by_name(here: Path, capsys: Capture) -> None:
    (here / "data").write_text("")
    assert main(["build", str(write_corpus(here / "corpus")), *sets(here / "data")]) == Code.REFUSED
    assert f"Cannot write {here / 'data'}" in capsys.readouterr().err


def test_a_build_that_is_refused_leaves_earlier_versions_as_they_were(here: Path) -> None:
    data_dir, _ = served(here)
    before = written(data_dir)
    assert main(["build", str(write_corpus(here / "blank", BLANKS)), *sets(data_dir)]) == Code.REFUSED
    assert written(data_dir) == before


def run_without_privileges(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """One real process for which a folder's permissions count, also when the tests are run by root."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("TIDEGATE_")} | {"HOME": ""}
    bound = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.getuid() == 0 else []
    command = [*bound, sys.executable, "-m", "tidegate", *words]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture
def read_only(here: Path) -> Iterator[Path]:
    """A data folder with the three documents admitted, which nobody may write."""
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere here, and there is no setpriv")
    data_dir, _ = served(here)
    places = [data_dir, *data_dir.rglob("*")]
    for place in places:
        place.chmod(0o555 if place.is_dir() else 0o444)
    yield data_dir
    for place in places:
        place.chmod(0o755)


@pytest.mark.slow
def test_a_read_only_data_folder_answers_and_says_that_it_cannot_be_written(read_only: Path) -> None:
    before = written(read_only)
    asked = run_without_privileges(read_only.parent, "ask", "Which oil does pump P3 need?", *sets(read_only))
    assert (asked.returncode, "ISO 46" in asked.stdout) == (0, True)
    for words in (["build", "corpus"], ["up", "corpus", "--force", "--reason", "x"]):
        refused = run_without_privileges(read_only.parent, *words, *sets(read_only))
        assert refused.returncode == Code.REFUSED
        assert refused.stderr.startswith(
            f"error: Cannot write {read_only} (Permission denied): serving works read-only"
        )
    assert written(read_only) == before


def test_a_file_that_may_not_be_read_fails_and_the_others_are_built(here: Path) -> None:
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may read everywhere here, and there is no setpriv")
    (write_corpus(here / "corpus") / "pump.txt").chmod(0)
    built = run_without_privileges(here, "build", "corpus", *sets(here / "data"))
    assert built.returncode == Code.PARTIAL
    assert "2 documents" in built.stdout
    assert "pump.txt: failed (unreadable)" in built.stderr
