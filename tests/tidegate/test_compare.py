"""`tidegate compare`: two versions of a small sample library, measured, told and written as a page."""

import contextlib
import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from eval.gates import gates
from eval.questions import dump, load, slices
from eval.verdicts import judge
from tests.eval.test_markup import Elements
from tests.tidegate.small import SMALL, small_library
from tidegate.build import build_version
from tidegate.cli import main
from tidegate.compose import make_registry
from tidegate.console import Code
from tidegate.evaluate import question_set
from tidegate.measuring import recalled
from tidegate.sample import corpus_path, questions_path
from tidegate.settings import Settings

Capture = pytest.CaptureFixture[str]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ROWS = [
    {"metric": "recall@6", "floor": 0.05, "max_drop": 0.02, "min_items": 1},
    {"metric": "citation_recall", "floor": 0.05, "max_drop": 0.02, "min_items": 1},
]
GATES = f"evaluation.gates={json.dumps(ROWS)}"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, str, str]:
    """The small sample library with two versions: read it, and write reports elsewhere."""
    settings, first = small_library(tmp_path_factory.mktemp("library"))
    chopped = settings.chunking.model_copy(update={"strategy": "fixed", "tokens": 32, "overlap": 0})
    chopping = settings.model_copy(update={"chunking": chopped})
    return settings, first, build_version(chopping, corpus_path(settings), lambda *_: None).version.id


def to(settings: Settings, *more: str) -> list[str]:
    pairs = [f"{key}={value}" for key, value in (SMALL | {"data_dir": str(settings.data_dir)}).items()]
    return [word for pair in (*pairs, GATES, *more) for word in ("--set", pair)]


@dataclass(frozen=True)
class Printed:
    """What one comparison printed for a person and, with every changed question, for a machine; and the page of it."""

    text: str
    json: Any  # whatever the verb prints
    page: str


def printed(*args: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["compare", *args]) == Code.DONE
    return out.getvalue()


@pytest.fixture(scope="module")
def compared(library: tuple[Settings, str, str], tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """The second version against the first, compared once for all who only look."""
    settings, first, second = library
    path = tmp_path_factory.mktemp("report") / "new" / "report.html"
    text = printed(first, second, *to(settings))
    found = printed(first, second, "--json", "--top", "1000", "--html", str(path), *to(settings))
    return Printed(text, json.loads(found), path.read_text("utf-8"))


@pytest.mark.slow
def test_both_versions_are_told_and_the_page_is_written_and_named(
    library: tuple[Settings, str, str], compared: Printed
) -> None:
    settings, first, second = library
    lines = compared.text.splitlines()
    path = settings.data_dir / "reports" / f"{first}-{second}.html"
    assert lines[:2] == [f"V1 {first}", f"V2 {second}"]
    assert lines[-1] == f"Report with plots: {path}"
    assert f"FAIL: With {first} as what people have, {second} would be refused. Nothing was recorded." in lines
    assert f"{second} against {first}" in Elements(path.read_text("utf-8")).text
    assert make_registry(settings).decisions(second) == (), "nothing is decided"


def test_the_numbers_are_those_the_gate_decides_on(library: tuple[Settings, str, str], compared: Printed) -> None:
    settings, first, second = library
    asked = question_set(settings, None)
    before, after = (recalled(settings, version, asked) for version in (first, second))
    assert before
    assert after
    wanted = judge(
        after.scorecard,
        before.scorecard,
        gates(ROWS),
        {question.id: slices(question) for question in asked},
        alpha=settings.evaluation.alpha,
        seed=settings.evaluation.seed,
    )
    assert [(v["gate"], v["outcome"], v["reason"]) for v in compared.json["verdicts"]] == [
        (v.gate, v.outcome.name, v.reason) for v in wanted
    ]
    assert compared.json["outcome"] == "FAIL"
    recall = next(line for line in compared.json["metrics"] if line["metric"] == "recall@6")
    said = [v.outcome for v in wanted if v.gate in ("recall@6 floor", "recall@6 max_drop")]
    assert recall["outcome"] == max(said).name
    values = [(before.scorecard.values["recall@6"][q.id], after.scorecard.values["recall@6"][q.id]) for q in asked]
    pairs = [(old, new) for old, new in values if old is not None and new is not None]
    assert recall["difference"]["n"] == len(pairs)
    assert recall["worse"] == sum(new < old for old, new in pairs)
    assert recall["before"] == pytest.approx(sum(old for old, _ in pairs) / len(pairs))
    assert recall["difference"]["mean"] == pytest.approx(recall["after"] - recall["before"])


def test_every_question_that_changed_can_be_shown_the_most_changed_first(compared: Printed) -> None:
    totals = [one["total"] for one in compared.json["shown"]]
    assert len(totals) == compared.json["changed"] > 3
    assert totals == sorted(totals, reverse=True)
    assert compared.page.count("<article>") == len(totals)


def test_text_for_some_readers_only_is_left_out_unless_all_is_asked_for(
    here: Path, library: tuple[Settings, str, str], compared: Printed
) -> None:
    settings, first, second = library
    hidden = [one for one in compared.json["shown"] if not one["visible"]]
    assert hidden
    assert {(one["query"], one["gold"], str(one["after"]["pieces"])) for one in hidden} == {("", "", "[]")}
    args = ["--all-text", "--top", "1000", "--html", "all.html", *to(settings)]
    everything = json.loads(printed(first, second, "--json", *args))
    texts = {one["question"]: one["query"] for one in everything["shown"]}
    secret = [texts[one["question"]] for one in hidden]
    assert all(secret)
    assert not any(text in Elements(compared.page).text for text in secret)
    assert all(text in Elements(Path("all.html").read_text("utf-8")).text for text in secret)


def test_a_version_compared_with_itself_differs_in_nothing(here: Path, library: tuple[Settings, str, str]) -> None:
    settings, first, _ = library
    found = json.loads(printed(first, first, "--json", "--html", "report.html", *to(settings)))
    assert (found["alike"], found["changed"], found["reworded"], found["shown"]) == (True, 0, 0, [])
    assert {line["difference"]["mean"] for line in found["metrics"] if line["difference"]} == {0.0}
    assert "every difference is zero" in Path("report.html").read_text("utf-8")


@pytest.mark.slow
def test_a_forbidden_term_is_in_nothing_that_is_told(here: Path, library: tuple[Settings, str, str]) -> None:
    settings, first, second = library
    Path("terms.txt").write_text("harbour\n", "utf-8")  # the tenant, and so a slice too
    args = ["--all-text", "--html", "report.html", *to(settings, "answering.forbidden_terms_file=terms.txt")]
    said = printed(first, second, *args) + printed(first, second, "--json", *args)
    page = Path("report.html").read_text("utf-8")
    assert "[name removed]" in said
    assert "[name removed]" in page
    assert "harbour" not in (said + page).lower()


@pytest.mark.slow
def test_nothing_is_asked_twice_and_the_same_comparison_is_the_same(
    here: Path, library: tuple[Settings, str, str], compared: Printed, capsys: Capture
) -> None:
    settings, first, second = library
    again = json.loads(printed(first, second, "--json", "--top", "1000", "--html", "report.html", *to(settings)))
    assert again | {"report": ""} == compared.json | {"report": ""}
    assert Path("report.html").read_text("utf-8") == compared.page
    assert "evaluating" not in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- refused


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["v000000000000", "{second}"], Code.REFUSED, "v000000000000"),
        (["{first}", "v000000000000"], Code.REFUSED, "v000000000000"),
        (["{first}"], Code.USAGE, "CANDIDATE"),
        (["{first}", "{second}", "--top", "-1"], Code.USAGE, "--top"),
        (["{first}", "{second}", "--questions", "gone.jsonl"], Code.REFUSED, "gone.jsonl cannot be read"),
        (["{first}", "{second}", "--html", "taken"], Code.REFUSED, "taken"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_what_is_wrong(
    here: Path, library: tuple[Settings, str, str], capsys: Capture, args: list[str], code: Code, said: str
) -> None:
    settings, first, second = library
    Path("taken").mkdir()
    assert main(["compare", *(arg.format(first=first, second=second) for arg in args), *to(settings)]) == code
    out, err = capsys.readouterr()
    assert said.lower() in err.lower()
    assert not out
    assert "bug" not in err


@pytest.mark.slow
def test_a_version_that_cannot_be_measured_ends_with_4_and_says_how_it_could_be(
    here: Path, library: tuple[Settings, str, str], capsys: Capture
) -> None:
    settings, first, second = library
    shutil.copytree(settings.data_dir, here / "own")
    settings = settings.model_copy(update={"data_dir": here / "own"})
    # Under another encoder neither can be opened. On these questions they were never measured under their own.
    frozen = [question for question in load(questions_path(settings)) if question.slice == "frozen"]
    Path("few.jsonl").write_text(dump(frozen[:5]), "utf-8")
    args = ["compare", first, second, "--questions", "few.jsonl", "--html", "report.html"]
    other = to(settings, "embedding.dimensions=128")
    assert main([*args, *other]) == Code.NOT_MEASURED
    out, err = capsys.readouterr()
    assert f"{first} could not be measured: All 5 questions failed" in err
    assert (
        f"Measure it to the end on these questions under the settings it was built for, tidegate evaluate {first}"
        in err
    )
    assert not out
    assert not Path("report.html").exists()
    # Measured under its own, it is compared by that, and the page says that the settings are not the same as asked for.
    assert main([*args, *to(settings)]) == Code.DONE
    capsys.readouterr()
    assert main([*args, *other]) == Code.DONE
    assert (
        f"{first} cannot be opened under these settings: compared with what it achieved on " in capsys.readouterr().err
    )


def test_a_gate_that_is_no_gate_is_refused_before_anything_is_measured(
    here: Path, library: tuple[Settings, str, str], capsys: Capture
) -> None:
    settings, first, second = library
    assert main(["compare", first, second, *to(settings, "evaluation.gates=[]")]) == Code.USAGE
    assert "no citation gate" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- in a browser


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
async def test_a_browser_shows_the_page_without_a_complaint_or_a_request(
    tmp_path: Path, compared: Printed, scheme: Literal["light", "dark"], width: int
) -> None:
    from playwright.async_api import async_playwright

    (tmp_path / "report.html").write_text(compared.page, "utf-8")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = await browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        asked: list[str] = []
        complaints: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: complaints.append(message.text))
        await tab.goto((tmp_path / "report.html").as_uri())
        assert await tab.title() == f"{compared.json['candidate']} against {compared.json['baseline']} - Tidegate"
        wide = await tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0, "tables and plots scroll by themselves"
        assert complaints == []
        assert len(asked) == 1
        await browser.close()
