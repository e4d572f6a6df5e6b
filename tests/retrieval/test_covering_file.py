"""The weights of abstention as a file: read as written, damage named, and the shipped ones know their cases."""

import json
from pathlib import Path

import pytest

from domain.covering import Cover, Covering, Tree, decide
from domain.errors import ConfigError
from domain.packing import pack
from domain.types import Chunk, Hit
from retrieval.covering_file import SHIPPED, read, record_of
from tests.fakes import chunk

SMALL = Covering("any", 0.25, (Tree((1,) * 7, (0.5,) * 7, (-1.0,) * 4 + (1.0,) * 4),), bar=0.4)
SHEET = chunk(
    "sheet#0-aa",
    "The AR-7 pump weighs 40 kilograms. Its list price is 1,200 crowns. The AR-7 was released on 3 May 2021 by "
    "Corran Pumps.",
    title="AR-7 data sheet",
)
NOTES = chunk("notes#0-bb", "The workshop keeps two spare AR-7 pumps. A service takes four hours.", title="Notes")
REPORT = chunk("report#0-cc", "In 2023 the revenue of Corran Pumps came to 80.2 million crowns.", title="Annual report")
MENU = chunk("menu#0-dd", "The canteen in Aldersea opens at noon and closes at two.", title="Canteen")


def cover(question: str, *found: tuple[Chunk, float, float | None]) -> Cover:
    """What the shipped weights make of passages with these cosines and BM25 scores, as MiniLM finds such."""
    hits = tuple(Hit(one, 1.0, rank, "fake", cosine, bm25) for rank, (one, cosine, bm25) in enumerate(found, 1))
    return decide(question, pack((), hits, 1, 6000), hits, read()).cover


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "covering.json"
    path.write_text(json.dumps(record_of(SMALL, {"dev": 1})), "utf-8")
    assert read(path) == SMALL


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"signals": ["named"]}, "learned from other signals"),
        ({"trees": [{"asks": [0], "bars": [0.0], "leaves": [0.0, 0.0]}]}, "a tree has 7 nodes"),
        ({"trees": 3}, "holds no weights"),
        ({"bar": None}, "holds no weights"),
    ],
)
def test_a_file_that_is_none_is_named_with_the_way_out(tmp_path: Path, change: dict[str, object], told: str) -> None:
    path = tmp_path / "covering.json"
    path.write_text(json.dumps(record_of(SMALL, {}) | change), "utf-8")
    with pytest.raises(ConfigError, match=told) as refused:
        read(path)
    assert str(path) in str(refused.value)
    assert "train-abstention" in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.json"):
        read(tmp_path / "nowhere.json")


def test_the_shipped_weights_are_of_the_bundled_encoder_and_say_what_was_measured() -> None:
    assert read().encoder == "minilm"
    assert set(json.loads(SHIPPED.read_text("utf-8"))["measured"]) == {"learned_on", "bar_set_on", "dev"}


@pytest.mark.parametrize(
    ("question", "sheet", "bm25"),
    [("How heavy is the AR-7?", 0.66, 9.0), ("When was the AR-7 released?", 0.62, 9.0)],
)
def test_what_the_library_tells_is_covered(question: str, sheet: float, bm25: float) -> None:
    others = ((NOTES, 0.45, 4.0), (MENU, 0.1, None), (REPORT, 0.15, None))
    assert cover(question, (SHEET, sheet, bm25), *others) is Cover.COVERED


def test_a_thing_that_is_known_without_what_is_asked_of_it_is_not_covered() -> None:
    question = "How many decibels does the AR-7 make at full load?"
    found = ((SHEET, 0.45, 4.0), (NOTES, 0.4, 3.0), (MENU, 0.1, None), (REPORT, 0.12, None))
    assert cover(question, *found) is Cover.NOT_COVERED


def test_a_thing_that_is_not_in_the_library_is_not_covered() -> None:
    found = ((SHEET, 0.45, 2.0), (NOTES, 0.3, None), (MENU, 0.1, None), (REPORT, 0.1, None))
    assert cover("How heavy is the BX-9?", *found) is Cover.NOT_COVERED


def test_a_question_about_the_world_at_large_is_not_covered() -> None:
    found = ((MENU, 0.2, 1.0), (NOTES, 0.1, None), (SHEET, 0.05, None), (REPORT, 0.1, None))
    assert cover("Who painted the ceiling of the Sistine Chapel?", *found) is Cover.NOT_COVERED


def test_a_question_that_takes_for_granted_what_never_happened_is_not_covered() -> None:
    found = ((REPORT, 0.45, 3.0), (SHEET, 0.35, 2.0), (NOTES, 0.2, None), (MENU, 0.1, None))
    question = "Which lawsuit followed the sale of Corran Pumps to Meridian Trust?"
    assert cover(question, *found) is Cover.NOT_COVERED
