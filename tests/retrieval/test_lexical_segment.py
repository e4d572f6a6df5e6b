"""Postings of some rows: what stands where, how often, counted a piece at a time."""

from collections import Counter

import numpy as np
import pytest

from retrieval.analysis import analyse
from retrieval.lexical_segment import Segment

TEXTS = ["valve pump pump", "", "pump AR-7", "the of and", "冷却水 valve"]


def postings(segment: Segment) -> dict[str, dict[int, int]]:
    """Row to count, by term."""
    found = {term: segment.find(term) for term in segment.terms.all()}
    return {term: dict(zip(rows.tolist(), counts.tolist(), strict=True)) for term, (rows, counts) in found.items()}


def by_hand(texts: list[str]) -> dict[str, dict[int, int]]:
    counted: dict[str, dict[int, int]] = {}
    for row, text in enumerate(texts):
        for token, times in Counter(analyse(text)).items():
            counted.setdefault(token, {})[row] = times
    return counted


def test_a_segment_holds_what_counting_gives():
    assert postings(Segment.of(TEXTS)) == by_hand(TEXTS)
    assert Segment.of(TEXTS).lengths.tolist() == [len(analyse(text)) for text in TEXTS]


def test_rows_of_a_term_are_ascending_and_no_term_is_without_any():
    segment = Segment.of(TEXTS * 3)
    assert all(segment.find(term)[0].size for term in segment.terms.all())
    assert all(np.all(np.diff(segment.find(term)[0]) > 0) for term in segment.terms.all())


@pytest.mark.parametrize("at_a_time", [1, 2, 5])
def test_how_many_tokens_are_counted_at_a_time_changes_nothing(at_a_time: int):
    whole = Segment.of(TEXTS * 2)
    pieces = Segment.of(TEXTS * 2, at_a_time)
    assert postings(pieces) == postings(whole)
    assert pieces.lengths.tobytes() == whole.lengths.tobytes()


def test_what_is_not_there_has_no_rows():
    rows, counts = Segment.of(TEXTS).find("rotor")
    assert (rows.tolist(), counts.tolist()) == ([], [])
    assert Segment.of([]).find("pump")[0].size == 0
