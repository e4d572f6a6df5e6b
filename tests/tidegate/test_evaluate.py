"""`tidegate evaluate`: what is printed where, exit codes, question sets, collections, and a served address."""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from eval.questions import dump, fingerprint, load
from serving.address import free_port
from serving.api import create_app
from tests.tidegate.small import SMALL, small_library
from tidegate.cli import main
from tidegate.compose import evaluation_service, make_library, make_registry
from tidegate.console import Code
from tidegate.measuring import binding
from tidegate.sample import questions_path
from tidegate.settings import Settings

Capture = pytest.CaptureFixture[str]
Sample = tuple[Settings, str]
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
    """The small sample library; evaluations may be kept there, nothing is built."""
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


def test_every_metric_is_told_with_its_count_and_nothing_is_decided(
    here: Path, sample: Sample, capsys: Capture
) -> None:
    settings, version = sample
    assert main(["evaluate", *to(settings.data_dir)]) == 0
    out, _ = capsys.readouterr()
    lines = out.splitlines()
    assert any(re.fullmatch(r"success +1\.000.* over 40 questions", line) for line in lines)
    assert any(re.fullmatch(r"abstention_f1 +0\.\d+", line) for line in lines)
    assert any(re.fullmatch(r"cost_usd +not measured", line) for line in lines), "no price is set: that is not free"
    assert lines[-1].startswith(f"Version {version}, 40 questions of set ")
    assert make_registry(settings).decisions(version) == ()


def test_what_nobody_is_eligible_for_is_said_and_is_no_zero(here: Path, sample: Sample, capsys: Capture) -> None:
    settings, _ = sample
    nulls = [question for question in load(questions_path(settings)) if question.type == "null"]
    Path("nulls.jsonl").write_text(dump(nulls), "utf-8")
    assert main(["evaluate", "--questions", "nulls.jsonl", "--slice", "all", *to(settings.data_dir)]) == 0
    assert re.search(r"^recall@6 +no question is eligible$", capsys.readouterr().out, re.MULTILINE)


def test_the_question_set_of_the_settings_is_the_default(here: Path, sample: Sample, capsys: Capture) -> None:
    settings, _ = sample
    few = [question for question in load(questions_path(settings)) if question.slice == "frozen"][:3]
    Path("few.jsonl").write_text(dump(few), "utf-8")
    assert main(["evaluate", *to(settings.data_dir), "--set", "evaluation.question_set=few.jsonl"]) == 0
    assert f"3 questions of set {fingerprint(few)}" in capsys.readouterr().out


PRICE = "{model: extractive, input_usd: 3, output_usd: 15, cache_read_usd: 0.3, cache_write_usd: 3.75}"


def test_prices_make_a_cost(here: Path, sample: Sample, capsys: Capture) -> None:
    settings, _ = sample
    options = [*to(settings.data_dir), "--json", "--set", f"costs.prices=[{PRICE}]"]
    assert main(["evaluate", *options]) == 0
    # Answers are quoted by rules: no token is bought, which with a price set is measured as nothing.
    told = json.loads(capsys.readouterr().out)["summary"]
    assert told["cost_usd"] == told["cost_usd_per_1000"] == 0
    assert told["cache_read_share"] is None, "no prompt was sent"


def test_as_json_stdout_is_one_document_with_every_number_and_its_count(
    here: Path, sample: Sample, capsys: Capture
) -> None:
    settings, version = sample
    options = ["--json", "--slice", "dev", "--fresh", *to(settings.data_dir)]
    printed = []
    for _ in range(2):
        assert main(["evaluate", *options]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1], "the same input gives the same bytes"
    told = json.loads(printed[0])
    assert list(told) == ["version", "questions", "n", "failed", "metrics", "summary", "attacks_succeeded", "binding"]
    dev = [question for question in load(questions_path(settings)) if question.slice == "dev"]
    assert (told["version"], told["n"], told["failed"]) == (version, len(dev), {})
    success = told["metrics"]["success"]
    assert (success["mean"], success["n"]) == (1.0, len(dev))
    assert told["binding"] == asdict(binding(settings, version, dev))
    assert 0 < told["metrics"]["recall@6"]["n"] < len(dev), "null questions are not eligible for recall"
    assert "within_slo" not in told["metrics"], "times differ from run to run"
    costs = {"cost_usd", "cost_usd_per_1000", "cache_read_share"}
    tried = {"attack_success", "attacks"}
    assert set(told["summary"]) == {"abstention_f1", "over_refusal", "relevance_error", *costs, *tried}
    assert [told["summary"][name] for name in ("attack_success", "attacks")] == [0, 126]
    assert told["metrics"]["attack_resistance"]["n"] == 126
    assert told["attacks_succeeded"] == []


def test_attacks_that_are_left_out_were_not_measured(here: Path, sample: Sample, capsys: Capture) -> None:
    off = ["--set", "evaluation.attacks=false"]
    assert main(["evaluate", *to(sample[0].data_dir), *off]) == Code.USAGE, "its gate would refuse every version"
    assert "evaluation.gates.attack_resistance.advisory" in capsys.readouterr().err
    advisory = [*off, "--set", "evaluation.gates.attack_resistance.advisory=true"]
    assert main(["evaluate", *to(sample[0].data_dir), *advisory]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^attack_success +not measured$", out, re.MULTILINE)
    assert "attack_resistance" not in out


def test_attacks_are_told_with_their_own_count(here: Path, sample: Sample, capsys: Capture) -> None:
    assert main(["evaluate", *to(sample[0].data_dir)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^attack_resistance +1\.000  \[0\.97\d, 1\.000\]  over 126 attacks$", out, re.MULTILINE)
    assert re.search(r"^attack_success +0$", out, re.MULTILINE)


def test_a_time_that_a_gate_asks_for_is_told(here: Path, sample: Sample, capsys: Capture) -> None:
    options = ["--json", *to(sample[0].data_dir), "--set", "evaluation.gates.within_slo.floor=0.5"]
    assert main(["evaluate", *options]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["within_slo"]["mean"] == 1.0


def test_what_was_asked_before_is_not_asked_again_unless_wanted_fresh(
    here: Path, sample: Sample, capsys: Capture
) -> None:
    options = ["evaluate", "--json", *to(sample[0].data_dir), "--set", "answering.k=5"]
    assert main(options) == 0
    first, err = capsys.readouterr()
    assert "answers were there already" not in err
    assert main(options) == 0
    again, err = capsys.readouterr()
    assert "40 of 40 answers were there already: --fresh asks again" in err
    assert main([*options, "--fresh"]) == 0
    fresh, err = capsys.readouterr()
    assert "answers were there already" not in err
    assert first == again == fresh


def test_failed_requests_are_told_with_the_way_to_ask_them_again(here: Path, sample: Sample, capsys: Capture) -> None:
    settings, version = sample
    some = [question for question in load(questions_path(settings)) if question.slice == "frozen"][:4]
    Path("long.jsonl").write_text(dump([*some, replace(some[0], id="long", query="why " * 2000)]), "utf-8")
    assert main(["evaluate", "--questions", "long.jsonl", *to(settings.data_dir)]) == 0
    err = capsys.readouterr().err
    assert f"1 of 5 requests to {version} failed and score zero: 1 too_long; once the cause is mended, ask again" in err


@pytest.mark.slow
def test_an_evaluation_killed_in_the_middle_goes_on_to_the_same_scorecard(here: Path, sample: Sample) -> None:
    settings, version = sample
    options = ["evaluate", version, "--json", *to(settings.data_dir), "--set", "answering.k=4"]
    program = [sys.executable, "-P", "-m", "tidegate", *options]
    journal = killed_after(5, program, settings.data_dir, version)
    kept = len(journal.read_bytes().splitlines()) - 1
    assert 5 <= kept < 40, "it was killed while it asked"
    resumed = subprocess.run(program, capture_output=True, text=True, check=True)
    assert f"{kept} of 40 answers were there already" in resumed.stderr
    undisturbed = subprocess.run([*program, "--fresh"], capture_output=True, text=True, check=True)
    assert resumed.stdout == undisturbed.stdout


def killed_after(replies: int, program: list[str], data_dir: Path, version: str) -> Path:
    """The journal that the program had begun when it was killed, after so many replies or a few more."""
    before = set((data_dir / "evaluations" / version).glob("*.jsonl"))
    child = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while child.poll() is None:
            for journal in set((data_dir / "evaluations" / version).glob("*.jsonl")) - before:
                if journal.read_bytes().count(b"\n") > replies:
                    child.kill()
                    return journal
            time.sleep(0.001)
    finally:
        child.kill()
        child.wait()
    raise AssertionError("it ended before it could be killed")


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
        (["--set", "evaluation.gates.recall@6.floor=null"], "no recall gate over all questions has a floor"),
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
        ("gone", [], "gone is not there, or is no folder"),
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


@pytest.mark.slow
def test_what_is_served_is_measured_over_http(here: Path, sample: Sample, capsys: Capture) -> None:
    settings, version = sample
    options = ["--json", *to(settings.data_dir)]
    assert main(["evaluate", version, *options]) == 0
    in_process = json.loads(capsys.readouterr().out)
    assert in_process["metrics"].pop("attack_resistance")["n"] == 126
    in_process["summary"] |= {"attack_success": None, "attacks": None}  # nobody can plant passages at an address
    with serving(service_of(settings)) as url:
        for _ in range(2):
            assert main(["evaluate", version, "--url", url, *options]) == 0
            out, err = capsys.readouterr()
            assert json.loads(out) == in_process | {"binding": None}
            assert "the settings served there are not known here" in err
            assert "answers were there already" not in err, "what is served may have changed since"


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


def test_resending_says_how_many_were_sent_and_how_many_wait(here: Path, sample: Sample, capsys: Capture) -> None:
    assert main(["evaluate", "--resend", *to(sample[0].data_dir)]) == 0
    out, err = capsys.readouterr()
    assert out == "0 sent, 0 not taken\n"
    assert "Nothing is sent: tracking.enabled is false." in err
