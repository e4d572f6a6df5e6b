"""Signals of evidence: each one on passages small enough to count by hand."""

import pytest

from domain.evidence_signals import SIGNALS, signals, wanted
from domain.packing import pack
from domain.types import Chunk, Evidence, Hit
from tests.fakes import chunk

PUMP = chunk("pump#0-aa", "Pump AR-7 weighs 40 kilograms. It was overhauled in 2021.", title="Pump manual")
TOWN = chunk("town#0-bb", "Corran Pumps has its seat in Aldersea.", title="Gazette")


def found(*chunks: Chunk, cosine: float | None = 0.5, bm25: float | None = None) -> tuple[Hit, ...]:
    return tuple(Hit(one, 1.0, rank, "fake", cosine, bm25) for rank, one in enumerate(chunks, 1))


def evidence_of(hits: tuple[Hit, ...]) -> tuple[Evidence, ...]:
    return pack((), hits, 1, 6000)


def seen(question: str, hits: tuple[Hit, ...]) -> dict[str, float]:
    return signals(question, evidence_of(hits), hits)


def test_every_signal_is_there_and_finite_whatever_is_asked() -> None:
    for question in ("How heavy is the AR-7?", "???", "何分ですか", "a " * 500, "AR-7 AR-7 AR-7"):
        for hits in ((), found(PUMP), found(PUMP, TOWN, cosine=None)):
            told = seen(question, hits)
            assert tuple(told) != ()
            assert set(told) == set(SIGNALS)
            assert all(-1 <= value < 100 for value in told.values())


def test_a_question_is_taken_apart_into_what_it_names_says_and_limits() -> None:
    want = wanted("How heavy was the AR-7 of Corran Pumps in 2021?")
    assert want.names == ("Corran Pumps",)
    assert [one.key for one in want.identifiers] == ["ar7"]
    assert len(want.qualifiers) == 1
    assert want.kind == "number"
    assert "heavy" in want.words
    assert not want.words & {"corra", "pump"}


def test_a_thing_that_no_passage_names_is_not_named() -> None:
    here, gone = seen("How heavy is the AR-7?", found(PUMP, TOWN)), seen("How heavy is the BX-9?", found(PUMP, TOWN))
    assert (here["named"], here["first_about"], here["passages_about"]) == (1.0, 1.0, 1 / 6)
    assert (gone["named"], gone["first_about"], gone["cosine_about"]) == (0.0, 0.0, 0.0)


def test_words_are_counted_where_the_thing_is_named() -> None:
    told = seen("Which decibels does the AR-7 reach?", found(PUMP, TOWN))
    assert told["unknown_words"] == 2  # decibels and reach stand nowhere
    assert told["words_beside"] == 0.0
    assert seen("What does the AR-7 weigh?", found(PUMP))["words_beside"] == 1.0


def test_a_year_that_the_passages_do_not_state_is_not_qualified() -> None:
    assert seen("What did the AR-7 weigh in 2021?", found(PUMP))["qualified"] == 1.0
    assert seen("What did the AR-7 weigh in 1950?", found(PUMP))["qualified"] == 0.0


@pytest.mark.parametrize(
    ("question", "beside"),
    [("How heavy is the AR-7?", 1.0), ("When was the AR-7 sold?", 0.0), ("Is the AR-7 blue?", 0.5)],
)
def test_the_kind_of_fact_that_is_wanted_stands_beside_the_thing_or_not(question: str, beside: float) -> None:
    heavy = chunk("pump#1-cc", "Pump AR-7 weighs 40 kilograms.", title="Manual of March")
    assert seen(question, found(heavy))["kind_beside"] == beside


def test_a_passage_of_an_earlier_turn_counts_for_words_and_has_no_cosine() -> None:
    hits = found(TOWN)
    pooled = pack([(PUMP, 1)], hits, 2, 6000)
    told = signals("How heavy is the AR-7?", pooled, hits)
    assert (told["named"], told["cosine_about"]) == (1.0, 0.0)


def test_equal_evidence_gives_equal_signals() -> None:
    assert seen("How heavy is the AR-7?", found(PUMP, TOWN)) == seen("How heavy is the AR-7?", found(PUMP, TOWN))
