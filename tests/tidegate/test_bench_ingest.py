"""What `bench ingest` makes of its rounds, and what it counts as a page."""

import json
from pathlib import Path

import pytest

from domain.types import Document, Mark
from tests.retrieval.parsing.made import pdf
from tests.tidegate.tiny import sets
from tidegate.bench_ingest import Round, figures_of, pages_of
from tidegate.cli import main
from tidegate.console import Code


def document(text: str, *marks: str) -> Document:
    placed = tuple(Mark(i, name) for i, name in enumerate(marks))
    return Document("d", "D", text, "", "", "", frozenset(), "t", "h", placed)


def test_a_page_is_a_page_a_slide_or_three_thousand_characters() -> None:
    assert pages_of(document("x" * 9000, "page 1", "page 2")) == 2
    assert pages_of(document("x", "slide 1")) == 1
    assert pages_of(document("x" * 9000, "part 1")) == 3
    assert pages_of(document("x")) == 1


def test_rates_are_those_of_the_usual_round_and_growth_is_the_end_against_the_beginning() -> None:
    rounds = [Round(2.0, 100, 50), Round(1.0, 100, 50), Round(1.0, 100, 90), Round(1.0, 100, 50), Round(9.0, 120, 51)]
    figures = {figure.name: figure for figure in figures_of(rounds, files=4, pages=10, size=2_000_000)}
    assert (figures["pages_per_s"].value, figures["files_per_s"].value, figures["mb_per_s"].value) == (10, 4, 2)
    assert (figures["peak_here_mb"].value, figures["peak_apart_mb"].value) == (120, 90)
    assert (figures["memory_growth_here"].value, figures["memory_growth_here"].met) == (1.2, False)
    assert (figures["memory_growth_apart"].value, figures["memory_growth_apart"].met) == (pytest.approx(1.02), True)


def test_memory_that_nobody_could_look_at_is_not_measured() -> None:
    figures = {figure.name: figure for figure in figures_of([Round(1.0, 100, 0)] * 5, 1, 1, 1)}
    assert (figures["peak_apart_mb"].value, figures["memory_growth_apart"].met) == (None, None)


def test_it_reads_a_folder_and_tells_seven_figures(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "files").mkdir()
    (here / "files" / "a.pdf").write_bytes(pdf(["Gears need oil."], ["Belts need covers."]))
    code = main(["bench", "ingest", "--corpus", str(here / "files"), "--rounds", "5", "--json", *sets(here / "data")])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code in (Code.DONE, Code.REFUSED)  # whether memory is flat is the machine's to say
    assert [one["name"] for one in told][:2] == ["pages_per_s", "files_per_s"]
    assert len(told) == 7


def test_a_folder_that_is_not_there_or_holds_nothing_is_refused(here: Path) -> None:
    (here / "empty").mkdir()
    for folder in ("absent", "empty"):
        assert main(["bench", "ingest", "--corpus", str(here / folder), *sets(here / "data")]) != Code.DONE
