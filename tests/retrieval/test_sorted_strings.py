"""Strings in two arrays, found by halving."""

import numpy as np
import pytest

from retrieval.sorted_strings import SortedStrings

WORDS = sorted({"pump", "pumps", "valve", "a", "zürich", "泵", "冷却", "\U00020000", "~", "e\u0301"})


def test_every_string_is_found_where_it_stands_and_no_other_anywhere():
    strings = SortedStrings.of(WORDS)
    assert [strings.place(word) for word in WORDS] == list(range(len(WORDS)))
    for stranger in ("", "pum", "pumpss", "zz", "\U0010ffff", "\ud800"):
        assert strings.place(stranger) is None


def test_the_order_of_the_bytes_is_that_of_the_code_points():
    assert SortedStrings.of(WORDS).all() == WORDS  # UTF-16 would put the last plane before the private one


def test_strings_come_back_in_the_order_of_the_places_asked():
    assert SortedStrings.of(["a", "bb", "ccc"]).at([2, 0, 2]) == ["ccc", "a", "ccc"]


def test_half_a_character_is_found_nowhere_not_even_where_a_question_mark_stands():
    strings = SortedStrings.of(["?", "a?", "b"])
    assert [strings.place(word) for word in ("\ud800", "a\udcff", "?", "a?", "b")] == [None, None, 0, 1, 2]


def test_of_no_strings_none_is_found():
    none = SortedStrings.of([])
    assert (len(none), none.all(), none.place("a")) == (0, [], None)


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(ValueError, match="utf-8"):
        SortedStrings(np.frombuffer(b"\xff", np.uint8), np.array([0, 1], np.int64)).all()
