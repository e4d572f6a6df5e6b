"""`tidegate up`, up to the moment a server starts: what is refused early, what is admitted, and the curl line."""

import json
import shlex
import socket
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from domain.errors import NotAdmitted
from domain.releases import Outcome
from eval.questions import load
from retrieval.registry import FolderRegistry
from tests.tidegate.tiny import sets, settings, write_corpus
from tidegate.cli import main
from tidegate.console import Code, Shared
from tidegate.settings import Settings
from tidegate.up import build_and_admit, curl, ending, example_question

Capture = pytest.CaptureFixture[str]


def question(id: str, query: str, doc_id: str, text: str, answer: str) -> str:
    """One line of a question set: a public visitor of the harbour asks for a fact of one document."""
    fields = {"id": id, "query": query, "answer": answer, "aliases": [], "type": "inference", "hops": 1}
    asked = {"slice": "frozen", "persona": "visitor", "tenant": "harbour", "groups": ["public"], "history": []}
    return json.dumps({**fields, **asked, "evidence": [{"doc_id": doc_id, "text": text}]}) + "\n"


OIL = question("q1", "Which oil does pump P3 need?", "pump.txt", "Pump P3 needs oil of grade ISO 46.", "ISO 46")
LIFT = question("q2", "How much does the blue crane lift?", "crane.md", "It lifts four tonnes.", "four tonnes")
UNTRUE = question("q3", "Who paints the lighthouse?", "gate.md", "The mayor paints it.", "the mayor")


@pytest.fixture
def corpus(here: Path) -> Path:
    (here / "asked.jsonl").write_text(OIL + LIFT)
    (here / "untrue.jsonl").write_text(UNTRUE)
    return write_corpus(here / "corpus")


def admitted(ours: Settings, corpus: Path, questions: Path | None, forced: str = "") -> str:
    return build_and_admit(ours, corpus, questions, "", forced, lambda *_: None)


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


# ---------------------------------------------------------------------------------------------- admitted or not


def test_a_corpus_that_reaches_its_floors_becomes_what_people_get(corpus: Path, here: Path) -> None:
    ours = settings(here / "data")
    version = admitted(ours, corpus, here / "asked.jsonl")
    registry = FolderRegistry(ours.data_dir / "registry")
    assert registry.rollout().stable == version
    assert [decision.outcome for decision in registry.decisions(version)] == [Outcome.PASS]


def test_the_same_again_is_neither_built_nor_measured_again(corpus: Path, here: Path) -> None:
    ours = settings(here / "data")
    version = admitted(ours, corpus, here / "asked.jsonl")
    registry = FolderRegistry(ours.data_dir / "registry")
    before = registry.rollout(), registry.decisions(version)
    assert admitted(ours, corpus, here / "asked.jsonl") == version
    assert (registry.rollout(), registry.decisions(version)) == before


def test_a_corpus_that_misses_its_floors_is_refused_with_the_numbers(corpus: Path, here: Path) -> None:
    ours = settings(here / "data")
    with pytest.raises(
        NotAdmitted, match=r"citation_recall: 0.0000 over 1 question.*nobody gets anything yet.*--force"
    ):
        admitted(ours, corpus, here / "untrue.jsonl")
    assert FolderRegistry(ours.data_dir / "registry").rollout().stable is None


def test_what_is_served_already_is_measured_again_under_other_settings(corpus: Path, here: Path) -> None:
    version = admitted(settings(here / "data"), corpus, here / "asked.jsonl")
    other = settings(here / "data", evaluation__floors__abstention="1.0", answering__k="5")
    with pytest.raises(NotAdmitted, match=f"may not be served under these settings .*people keep getting {version}"):
        admitted(other, corpus, here / "untrue.jsonl")


def test_force_admits_and_its_reason_is_recorded(corpus: Path, here: Path, capsys: Capture) -> None:
    ours = settings(here / "data")
    version = admitted(ours, corpus, None, "we are only trying it out")
    registry = FolderRegistry(ours.data_dir / "registry")
    assert registry.rollout().stable == version
    assert [decision.forced for decision in registry.decisions(version)] == ["we are only trying it out"]
    assert "forced: we are only trying it out" in capsys.readouterr().err


def test_the_questions_offered_are_about_what_is_served(corpus: Path, here: Path) -> None:
    ours = settings(here / "data")
    admitted(ours, corpus, here / "asked.jsonl")
    assert example_question(ours) in {q.query for q in load(here / "asked.jsonl")}
    admitted(ours, corpus, None, "no questions this time")
    assert example_question(ours) == "What is this library about?"


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
