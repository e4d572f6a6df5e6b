"""`tidegate up` before a server starts: what is refused early, what the server is told, and the curl line."""

import json
import shlex
import socket
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from tests.tidegate.tiny import sets, settings, write_corpus
from tidegate.cli import main
from tidegate.console import Code, Shared
from tidegate.loading import load as load_settings
from tidegate.up import curl, ending, example_question, server_arguments, with_question_set

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def corpus(here: Path) -> Path:
    return write_corpus(here / "corpus")


# ---------------------------------------------------------------------------------------------- refused early


def test_a_taken_port_is_refused_by_number_before_anything_is_built(here: Path, capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["up", "--port", str(port), *sets(here / "data")]) == Code.REFUSED
    err = capsys.readouterr().err
    assert f"error: Port {port} on 127.0.0.1 is taken by " in err
    assert "(pid " in err
    assert not (here / "data").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["corpus"], Code.USAGE, "corpus has no question set to be evaluated on: name one with --questions FILE"),
        (["--force"], Code.USAGE, "--force needs --reason"),
        (["--force", "--reason", " "], Code.USAGE, "--force needs --reason"),
        (["--port", "0"], Code.USAGE, "Invalid value for '--port'"),
        (["--port", "65536"], Code.USAGE, "Invalid value for '--port'"),
        (["gone", "--force", "--reason", "x"], Code.REFUSED, "Corpus gone does not exist"),
        (["corpus", "--questions", "gone.jsonl"], Code.REFUSED, "gone.jsonl"),
        (["corpus", "--questions", "corpus"], Code.REFUSED, "corpus"),
    ],
)
def test_what_can_be_refused_early_is_refused_in_one_line(
    corpus: Path, here: Path, capsys: Capture, words: list[str], code: Code, said: str
) -> None:
    assert main(["up", *words, *sets(here / "data")]) == code
    out, err = capsys.readouterr()
    assert not out
    assert said in err
    assert err.splitlines()[-1].startswith("error: ")
    assert "bug" not in err
    assert not (here / "data" / "registry").exists()


# ---------------------------------------------------------------------------------------------- what is served


def test_the_server_decides_on_the_question_set_that_was_named_here(here: Path) -> None:
    ctx = typer.Context(get_command(typer.Typer(callback=lambda: None)), obj=Shared(None, {"data_dir": "d"}))
    ours = with_question_set(settings(here / "data"), Path("asked set.jsonl"))
    named = str(here / "asked set.jsonl")
    assert server_arguments(ctx, ours, Path("asked set.jsonl"), 8123) == [
        "--set", "data_dir=d", "--set", f"evaluation.question_set={named}", "--port", "8123",
    ]  # fmt: skip
    assert load_settings(None, {}, {"evaluation.question_set": named}).settings.evaluation.question_set == Path(named)
    assert server_arguments(ctx, settings(here / "data"), None, None) == ["--set", "data_dir=d"]


def test_an_example_is_asked_even_where_no_question_is_offered(here: Path) -> None:
    assert example_question(settings(here / "data")) == "What is this library about?"


# ---------------------------------------------------------------------------------------------- the curl line


@pytest.mark.parametrize(
    "asked",
    ["When?", "What's \"the\" keeper's $HOME `id` \\ !x?", "Wann öffnet das Tor? 港", "a\nb\t'\"'", "@file", "-d"],
)
def test_the_curl_line_is_one_line_that_a_shell_reads_as_the_question(asked: str) -> None:
    line = curl("http://127.0.0.1:8123", asked)
    words = shlex.split(line)
    assert "\n" not in line
    assert line.isascii()
    assert words[:3] == ["curl", "-s", "http://127.0.0.1:8123/v1/answers"]
    assert json.loads(words[words.index("-d") + 1]) == {"question": asked}


def test_the_line_that_ends_it_names_the_settings_it_was_started_with() -> None:
    shared = Shared(Path("a b.yaml"), {"data_dir": "my data"})
    ctx = typer.Context(get_command(typer.Typer(callback=lambda: None)), obj=shared)
    assert ending(ctx).endswith(" --config 'a b.yaml' --set 'data_dir=my data' down")
