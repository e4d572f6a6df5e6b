"""`tidegate ask` and `search`: what is printed where, and what is refused before anything is loaded."""

import json
from pathlib import Path

import pytest

from retrieval.registry import FolderRegistry
from tests.tidegate.tiny import admit, served, sets, write_corpus
from tidegate.cli import main
from tidegate.console import Code

Capture = pytest.CaptureFixture[str]


# ---------------------------------------------------------------------------------------------- ask


def test_an_answer_goes_to_stdout_with_its_sources_underneath(
    here: Path, library: tuple[Path, str], capsys: Capture
) -> None:
    data_dir, version = library
    assert main(["ask", "Which oil does pump P3 need?", *sets(data_dir)]) == 0
    out, err = capsys.readouterr()
    answer, sources = out.split("\n\n")
    assert "ISO 46" in answer
    assert "[S1]" in answer
    assert sources.startswith("[S1] pump")
    assert out.endswith("\n")
    assert not out.endswith("\n\n")
    assert version in err


def test_an_answer_without_sources_ends_with_one_line(here: Path, library: tuple[Path, str], capsys: Capture) -> None:
    data_dir, _ = library
    assert main(["ask", "Which oil does pump P3 need?", *sets(data_dir), "--groups", "nobody"]) == 0
    out, err = capsys.readouterr()
    assert out == "The library has nothing on this question.\n"
    assert "ungrounded, no_sources" in err


def test_an_answer_as_json_is_one_document(here: Path, library: tuple[Path, str], capsys: Capture) -> None:
    data_dir, version = library
    assert main(["ask", "Which oil does pump P3 need?", "--json", *sets(data_dir)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "ISO 46" in answer["answer"]
    assert answer["index_version"] == version
    assert [citation["doc_id"] for citation in answer["citations"]] == ["pump.txt"]


def test_what_stands_in_a_document_does_not_steer_the_terminal(here: Path, capsys: Capture) -> None:
    # A right-to-left override and an escape: the first survives cleaning, the second would colour the terminal.
    corpus = write_corpus(here / "corpus", {"a.txt": "The zebrawood kiln reaches \u202e1200\u2066 \x1b[31mdegrees.\n"})
    assert main(["build", str(corpus), *sets(here / "data")]) == 0
    admit(here / "data")
    capsys.readouterr()
    assert main(["ask", "How hot is the zebrawood kiln?", *sets(here / "data")]) == 0
    assert main(["search", "zebrawood kiln", *sets(here / "data")]) == 0
    out, _ = capsys.readouterr()
    assert "1200" in out
    assert all(character.isprintable() or character == "\n" for character in out)


def test_a_no_break_space_is_shown_as_one(here: Path, capsys: Capture) -> None:
    corpus = write_corpus(here / "corpus", {"a.txt": "The zebrawood kiln reaches 1200\u00a0degrees.\n"})
    assert main(["build", str(corpus), *sets(here / "data")]) == 0
    admit(here / "data")
    assert main(["search", "zebrawood kiln", *sets(here / "data")]) == 0
    assert "\\xa0" not in capsys.readouterr().out


# ---------------------------------------------------------------------------------------------- search


def test_a_search_lists_each_passage_once_and_no_more_than_there_are(
    here: Path, library: tuple[Path, str], capsys: Capture
) -> None:
    data_dir, version = library
    assert main(["search", "sea gate", "--k", "10", "--json", *sets(data_dir)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["index_version"] == version
    assert sorted(hit["doc_id"] for hit in found["hits"]) == ["crane.md", "gate.md", "pump.txt"]
    assert found["hits"][0]["doc_id"] == "gate.md"
    assert all(abs(hit["score"]) < 1e6 for hit in found["hits"])


def test_a_search_that_finds_nothing_says_so_beside_the_result(
    here: Path, library: tuple[Path, str], capsys: Capture
) -> None:
    data_dir, _ = library
    assert main(["search", "qqqxxyy", "--mode", "lexical", *sets(data_dir)]) == 0
    assert capsys.readouterr() == ("", "note: nothing found\n")


# ---------------------------------------------------------------------------------------------- refused


VERBS = ("ask", "search")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([""], Code.USAGE, "The question is blank"),
        (["\t\n \u200b"], Code.USAGE, "The question is blank"),
        (["x" * 100_000], Code.USAGE, "has 100000 characters, at most 4000 are read"),
        (["oil", "--k", "0"], Code.USAGE, "--k is 0: a whole number from 1 to 100 is wanted"),
        (["oil", "--k", "-1"], Code.USAGE, "--k is -1: a whole number from 1 to 100 is wanted"),
        (["oil", "--k", "2.5"], Code.USAGE, "Invalid value for '--k'"),
        (["oil", "--k", "1e9"], Code.USAGE, "Invalid value for '--k'"),
        (["oil", "--k", "1000000000"], Code.USAGE, "--k is 1000000000: a whole number from 1 to 100 is wanted"),
        (["oil", "--version", "../x"], Code.REFUSED, "Index version '../x' does not exist; there are: v"),
        (["oil", "--version", "v000000000000"], Code.REFUSED, "Index version 'v000000000000' does not exist"),
        ([], Code.USAGE, "Missing argument"),
        (["oil", "and", "water"], Code.USAGE, "unexpected extra argument"),
    ],
)
def test_bad_input_is_refused_in_one_line_that_names_it(
    here: Path, library: tuple[Path, str], capsys: Capture, verb: str, words: list[str], code: Code, said: str
) -> None:
    data_dir, _ = library
    assert main([verb, *words, *sets(data_dir)]) == code
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize("verb", VERBS)
def test_before_anything_is_admitted_the_way_out_is_named(here: Path, capsys: Capture, verb: str) -> None:
    assert main([verb, "oil", *sets(here / "data")]) == Code.REFUSED
    assert capsys.readouterr().err == (
        "error: No index version is admitted yet: run `tidegate up`, or name one with --version.\n"
    )
    assert not (here / "data").exists()


@pytest.mark.parametrize("verb", VERBS)
def test_an_index_of_another_encoder_is_refused_with_both_names_and_the_way_out(
    here: Path, library: tuple[Path, str], capsys: Capture, verb: str
) -> None:
    data_dir, version = library
    assert main([verb, "oil", *sets(data_dir, embedding__dimensions="128")]) == Code.REFUSED
    assert main([verb, "oil", "--version", version, *sets(data_dir, embedding__dimensions="128")]) == Code.REFUSED
    out, err = capsys.readouterr()
    assert not out
    for line in err.splitlines():
        assert version in line
        assert "'hashing-256-1' (256 dimensions)" in line
        assert "'hashing-128-1' (128 dimensions)" in line
        assert "`tidegate build CORPUS`" in line


@pytest.mark.slow
def test_an_index_without_model_and_one_of_minilm_refuse_each_other(here: Path, capsys: Capture) -> None:
    without, _ = served(here / "without")
    with_model, _ = served(here / "with", ["--set", "embedding.backend=minilm"])
    capsys.readouterr()
    assert main(["ask", "oil", *sets(without, embedding__backend="minilm")]) == Code.REFUSED
    assert main(["ask", "oil", *sets(with_model)]) == Code.REFUSED
    for line, names in zip(
        capsys.readouterr().err.splitlines(), (("hashing", "minilm"), ("minilm", "hashing")), strict=True
    ):
        built, asked = line.split(", settings ask for ")
        assert names[0] in built
        assert names[1] in asked


@pytest.mark.slow
def test_a_version_of_another_encoder_stays_usable_under_its_own_settings(here: Path, capsys: Capture) -> None:
    data_dir, version = served(here)
    assert main(["build", str(here / "corpus"), *sets(data_dir, embedding__dimensions="128")]) == 0
    assert len(FolderRegistry(data_dir / "registry").versions()) == 2
    assert main(["ask", "Which oil does pump P3 need?", "--version", version, *sets(data_dir)]) == 0
    assert "ISO 46" in capsys.readouterr().out
