"""`tidegate evaluate`: what is printed where, exit codes, question sets, collections, and a served address."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from domain.releases import Outcome
from eval.questions import dump, load
from serving.address import free_port
from serving.api import create_app
from tests.tidegate.small import SMALL, small_library
from tidegate.cli import main
from tidegate.compose import evaluation_service, make_library, make_registry
from tidegate.console import Code
from tidegate.evaluate import OUTCOME_CODES
from tidegate.sample import questions_path
from tidegate.settings import Settings

Capture = pytest.CaptureFixture[str]
Sample = tuple[Settings, str]
LOW = ("--set", "evaluation.floors.recall@6=0.1", "--set", "evaluation.floors.citation_precision=0.1",
       "--set", "evaluation.floors.citation_recall=0.1")  # fmt: skip
HIGH = ("--set", "evaluation.floors.recall@6=1.0")

# Written for this test: five documents, three queries that share words with their document.
CORPUS = {
    "d1": "The sea gate closes at a tide of six metres.",
    "d2": "The blue crane lifts four tonnes of steel.",
    "d3": "Pump three needs a heavy oil in winter.",
    "d4": "The harbour bell rings twice in fog.",
    "d5": "Sand is dredged from the channel every spring.",
}
QUERIES = {
    "q1": "At which tide does the sea gate close?",
    "q2": "What does the blue crane lift?",
    "q3": "Who is mayor?",
}
QRELS = {"q1": {"d1": 1}, "q2": {"d2": 2, "d4": 0}, "q3": {"d5": 0}}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """The small sample library; decisions may be recorded there, nothing is built."""
    return small_library(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A BEIR collection with one split, and the data folder of the one version built from it."""
    folder, data_dir = tmp_path_factory.mktemp("collection"), tmp_path_factory.mktemp("data")
    write_lines(folder / "corpus.jsonl", [{"_id": i, "title": "", "text": text} for i, text in CORPUS.items()])
    write_lines(folder / "queries.jsonl", [{"_id": i, "text": text} for i, text in QUERIES.items()])
    write_split(folder, "test")
    assert main(["build", str(folder), "--format", "beir", *to(data_dir)]) == 0
    return folder, data_dir


def write_lines(path: Path, rows: Sequence[object]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def write_split(folder: Path, name: str) -> None:
    (folder / "qrels").mkdir(exist_ok=True)
    rows = [f"{query}\t{doc_id}\t{grade}" for query, grades in QRELS.items() for doc_id, grade in grades.items()]
    (folder / "qrels" / f"{name}.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows, ""]), "utf-8")


def to(data_dir: Path) -> list[str]:
    """Options for the settings of the small library over this data folder."""
    return [
        word for key, value in (SMALL | {"data_dir": str(data_dir)}).items() for word in ("--set", f"{key}={value}")
    ]


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The address of an application on a socket of this machine, for as long as the block runs."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="critical", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def service_of(settings: Settings) -> Starlette:
    return create_app(evaluation_service(settings, make_library(settings)))


# ---------------------------------------------------------------------------------------------- questions


def test_reaching_every_floor_ends_with_0_and_records_the_decision(here: Path, sample: Sample, capsys: Capture) -> None:
    settings, version = sample
    before = len(make_registry(settings).decisions(version))
    assert main(["evaluate", *LOW, *to(settings.data_dir)]) == 0
    out, _ = capsys.readouterr()
    assert out.splitlines()[-1].startswith(f"PASS: version {version}, 40 questions of set ")
    assert "PASS         recall@6: " in out
    assert "success              1.000  over 40 questions" in out
    decisions = make_registry(settings).decisions(version)
    assert len(decisions) == before + 1
    assert decisions[-1].outcome is Outcome.PASS


def test_a_floor_that_is_missed_ends_with_1_and_is_recorded_too(here: Path, sample: Sample, capsys: Capture) -> None:
    settings, version = sample
    assert main(["evaluate", version, *HIGH, *to(settings.data_dir)]) == Code.REFUSED
    assert "FAIL         recall@6: " in capsys.readouterr().out
    assert make_registry(settings).decisions(version)[-1].outcome is Outcome.FAIL


def test_what_nobody_is_eligible_for_could_not_be_measured_and_ends_with_4(
    here: Path, sample: Sample, capsys: Capture
) -> None:
    settings, _ = sample
    nulls = [question for question in load(questions_path(settings)) if question.type == "null"]
    Path("nulls.jsonl").write_text(dump(nulls), "utf-8")
    code = main(["evaluate", "--questions", "nulls.jsonl", "--slice", "all", *LOW, *to(settings.data_dir)])
    assert code == Code.NOT_MEASURED
    assert "ERROR        recall@6: not measured: none of the questions" in capsys.readouterr().out


def test_each_outcome_has_its_exit_code() -> None:
    assert {outcome.name: int(code) for outcome, code in OUTCOME_CODES.items()} == {
        "PASS": 0,
        "INCONCLUSIVE": 3,
        "ERROR": 4,
        "FAIL": 1,
    }


def test_as_json_stdout_is_one_document_with_every_number_and_its_count(
    here: Path, sample: Sample, capsys: Capture
) -> None:
    settings, version = sample
    options = ["--json", "--slice", "dev", *LOW, *to(settings.data_dir)]
    printed = []
    for _ in range(2):
        assert main(["evaluate", *options]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1], "the same input gives the same bytes"
    told = json.loads(printed[0])
    assert list(told) == ["version", "questions", "n", "failed", "metrics", "verdicts", "outcome", "binding"]
    dev = [question for question in load(questions_path(settings)) if question.slice == "dev"]
    assert (told["version"], told["n"], told["outcome"], told["failed"]) == (version, len(dev), "PASS", {})
    assert told["metrics"]["success"] == {"mean": 1.0, "n": len(dev)}
    assert told["binding"] == asdict(make_registry(settings).decisions(version)[-1].binding)
    assert 0 < told["metrics"]["recall@6"]["n"] < len(dev), "null questions are not eligible for recall"
    assert [verdict["gate"] for verdict in told["verdicts"]] == ["citation_precision", "citation_recall", "recall@6"]
    assert set(told["verdicts"][0]) == {"gate", "outcome", "reason"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--slice", "test"], "There is no slice 'test': dev, frozen or all."),
        (["--questions", "gone.jsonl"], "gone.jsonl cannot be read"),
        (["--split", "test"], "--split, --queries and --no-rerank belong to --beir DIR."),
        (["--no-rerank"], "belong to --beir DIR"),
        (["--beir", ".", "--questions", "q.jsonl"], "--questions and --beir are two measurements"),
        (["--beir", "."], "rerank.backend is none: add --no-rerank"),
        (["v000000000000"], "v000000000000"),
        (["--url", "localhost"], "'localhost' is no address"),
        (["--set", "evaluation.floors.recall@6=null"], "a recall floor"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(
    here: Path, sample: Sample, capsys: Capture, args: list[str], said: str
) -> None:
    assert main(["evaluate", *to(sample[0].data_dir), *args]) in (Code.USAGE, Code.REFUSED)
    out, err = capsys.readouterr()
    assert said in err
    assert not out
    assert "bug" not in err


def test_without_a_question_set_or_a_version_the_way_out_is_named(here: Path, capsys: Capture) -> None:
    assert main(["evaluate"]) == Code.USAGE
    assert "name one with --questions FILE, or make the sample library with tidegate up" in capsys.readouterr().err
    assert main(["evaluate", "--beir", "."]) == Code.USAGE
    assert "No version has been built yet: tidegate build CORPUS." in capsys.readouterr().err


def test_a_slice_without_questions_is_refused(here: Path, sample: Sample, capsys: Capture) -> None:
    settings, _ = sample
    frozen = [question for question in load(questions_path(settings)) if question.slice == "frozen"]
    Path("frozen.jsonl").write_text(dump(frozen), "utf-8")
    args = ["evaluate", "--questions", "frozen.jsonl", "--slice", "dev", *to(settings.data_dir)]
    assert main(args) == Code.USAGE
    assert f"has {len(frozen)} questions and none in slice dev" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- collections


def test_a_collection_gives_exactly_one_json_object_on_stdout(
    here: Path, collection: tuple[Path, Path], capsys: Capture
) -> None:
    folder, data_dir = collection
    capsys.readouterr()
    assert main(["evaluate", "--beir", str(folder), "--no-rerank", *to(data_dir)]) == 0
    out, err = capsys.readouterr()
    # Both scorable queries share their words with one document alone; q3 has no relevant document.
    assert json.loads(out) == {"ndcg@10": 1.0, "recall@10": 1.0, "recall@100": 1.0, "n": 2}
    assert "1 judged queries have no relevant document: not scorable, in no mean" in err
    assert "300 chunks a query, not reranked" in err


def test_reranking_a_collection_is_asked_for_by_default(
    here: Path, collection: tuple[Path, Path], capsys: Capture
) -> None:
    folder, data_dir = collection
    args = ["evaluate", "--beir", str(folder), "--split", "test", *to(data_dir), "--set", "rerank.backend=features"]
    assert main(args) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["recall@100"] == 1.0
    assert "300 chunks a query, reranked" in err


def test_other_queries_are_taken_by_name_and_those_missing_are_counted(
    here: Path, collection: tuple[Path, Path], capsys: Capture
) -> None:
    folder, data_dir = collection
    write_lines(folder / "queries.rewrite.jsonl", [{"_id": "q2", "text": "Sand of the channel in spring"}])
    options = ["--beir", str(folder), "--no-rerank", *to(data_dir)]
    assert main(["evaluate", *options, "--queries", "queries.rewrite.jsonl"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["n"] == 1
    assert json.loads(out)["ndcg@10"] < 1, "the other query is not about the judged document"
    assert "1 judged queries have no text in the file of queries" in err
    assert main(["evaluate", *options, "--queries", "gone.jsonl"]) == Code.REFUSED
    assert "there is: corpus.jsonl, queries.jsonl, queries.rewrite.jsonl" in capsys.readouterr().err


def test_a_folder_that_is_no_collection_or_has_several_splits_is_refused_with_what_is_there(
    here: Path, sample: Sample, collection: tuple[Path, Path], capsys: Capture
) -> None:
    folder, _ = collection
    many = here / "many"
    many.mkdir()
    (many / "queries.jsonl").write_bytes((folder / "queries.jsonl").read_bytes())
    for name in ("dev", "test"):
        write_split(many, name)
    (here / "empty").mkdir()
    for where, args, said in (
        ("gone", [], "gone/qrels has 0 splits (none)"),
        ("empty", [], "empty/qrels has 0 splits (none)"),
        ("many", [], "many/qrels has 2 splits (dev, test): choose one with --split."),
        ("many", ["--split", "train"], "many/qrels has no split 'train', there are: dev, test."),
    ):
        assert main(["evaluate", "--beir", where, "--no-rerank", *to(sample[0].data_dir), *args]) == Code.REFUSED
        out, err = capsys.readouterr()
        assert said in err
        assert not out


def test_a_collection_that_was_never_built_finds_nothing_and_says_so(
    here: Path, sample: Sample, collection: tuple[Path, Path], capsys: Capture
) -> None:
    settings, version = sample
    assert main(["evaluate", "--beir", str(collection[0]), "--no-rerank", *to(settings.data_dir)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"ndcg@10": 0.0, "recall@10": 0.0, "recall@100": 0.0, "n": 2}
    assert f"no query found any relevant document: was {version} built from {collection[0]}?" in err


# ---------------------------------------------------------------------------------------------- a served address


def test_what_is_served_is_measured_over_http_without_a_decision(here: Path, sample: Sample, capsys: Capture) -> None:
    settings, version = sample
    before = make_registry(settings).decisions(version)
    options = ["--json", *LOW, *to(settings.data_dir)]
    assert main(["evaluate", version, *options]) == 0
    in_process = json.loads(capsys.readouterr().out)
    with serving(service_of(settings)) as url:
        assert main(["evaluate", version, "--url", url, *options]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == in_process | {"binding": None}
    assert "no decision is recorded" in err
    assert len(make_registry(settings).decisions(version)) == len(before) + 1, "the one measured in this process"


def test_a_collection_can_be_measured_over_http(here: Path, collection: tuple[Path, Path], capsys: Capture) -> None:
    folder, data_dir = collection
    from tests.tidegate.tiny import settings as tiny_settings

    version = make_registry(tiny_settings(data_dir)).versions()[-1].id
    with serving(service_of(tiny_settings(data_dir))) as url:
        code = main(["evaluate", version, "--beir", str(folder), "--no-rerank", "--url", url, *to(data_dir)])
    out, err = capsys.readouterr()
    assert code == 0
    assert json.loads(out) == {"ndcg@10": 1.0, "recall@10": 1.0, "recall@100": 1.0, "n": 2}
    assert f"searching at {url}, 100 chunks a query" in err


def test_an_address_where_nothing_answers_is_named(here: Path, sample: Sample, capsys: Capture) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert main(["evaluate", "--url", url, *to(sample[0].data_dir)]) == Code.USAGE
    out, err = capsys.readouterr()
    assert f"Nothing answers at {url}" in err
    assert not out
    assert "bug" not in err


def test_a_server_that_fails_every_question_could_not_be_measured(here: Path, sample: Sample, capsys: Capture) -> None:
    async def broken(_: Any) -> JSONResponse:
        return JSONResponse({"error": {"code": "internal", "message": "Something went wrong."}}, 500)

    async def welcome(_: Any) -> PlainTextResponse:
        return PlainTextResponse("Welcome to another service")

    for endpoint, said in ((broken, "internal: Something went wrong."), (welcome, "bad_reply: /v1/answers answered")):
        with serving(Starlette(routes=[Route("/v1/answers", endpoint, methods=["POST"])])) as url:
            assert main(["evaluate", "--url", url, *to(sample[0].data_dir)]) == Code.NOT_MEASURED
        out, err = capsys.readouterr()
        assert f"All 40 questions failed, the first with {said}" in err
        assert not out
