"""Segments made of others are those that counting all texts gives, byte by byte."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from retrieval import lexical_files
from retrieval.lexical_merging import Taken, merge_into, merged
from retrieval.lexical_segment import Segment

WORDS = ["pump", "valve", "seal", "AR-7", "ERR_CONN_RESET", "冷却水", "zürich", "the"]


def random_texts(seed: int, n: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, length)) for length in rng.integers(0, 6, n)]


def written(segment: Segment, folder: Path) -> dict[str, bytes]:
    lexical_files.write(segment, folder)
    return content(folder)


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def dealt(seed: int, texts: list[str]) -> list[Taken]:
    """Parts that together become `texts`, each with rows of its own that nobody takes, in any order and repeated."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, 3, len(texts))
    parts = []
    for number in range(3):
        places = rng.permutation(np.flatnonzero(owner == number))
        stock = [*random_texts(seed + number, 4), *dict.fromkeys(texts[place] for place in places)]
        rng.shuffle(stock)
        rows = np.array([stock.index(texts[place]) for place in places], np.int64)
        parts.append(Taken(Segment.of(stock), rows, places))
    return parts


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("at_a_time", [1, 7, 1 << 20])
def test_parts_become_what_counting_all_texts_gives(seed: int, at_a_time: int, tmp_path: Path):
    texts = random_texts(seed, 30)
    expected = written(Segment.of(texts), tmp_path / "counted")
    parts = dealt(seed, texts)
    assert written(merged(parts, len(texts), at_a_time), tmp_path / "merged") == expected
    merge_into(tmp_path / "in place", parts, len(texts), at_a_time)
    assert content(tmp_path / "in place") == expected


def test_a_term_whose_rows_are_all_left_out_is_gone(tmp_path: Path):
    segment = Segment.of(["pump " * 300, "valve", "rotor seal"])  # 300 takes two bytes, 1 takes one
    kept = merged([Taken(segment, np.array([1]), np.array([0]))], 1)
    assert written(kept, tmp_path / "one") == written(Segment.of(["valve"]), tmp_path / "two")


def test_a_place_that_no_part_takes_is_a_blank_row(tmp_path: Path):
    segment = Segment.of(["valve"])
    spread = merged([Taken(segment, np.array([0, 0]), np.array([3, 1]))], 5)
    expected = written(Segment.of(["", "valve", "", "valve", ""]), tmp_path / "two")
    assert written(spread, tmp_path / "one") == expected


def test_taking_little_of_a_large_segment_takes_little_memory():
    # Two rows of 20,000, whose terms stand first and last: all other 200,000 postings lie between them.
    large = Segment.of(["aa zz", "aa", *(" ".join(f"w{(7 * i + j) % 3000}" for j in range(10)) for i in range(20_000))])
    tracemalloc.start()
    kept = merged([Taken(large, np.array([0, 1]), np.array([0, 1]))], 2, at_a_time=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kept.terms.at([0, 1]) == ["aa", "zz"]
    assert peak < 1_000_000  # 16 bytes a row of the segment, 8 a term; all of its postings at once take 5 MB


@pytest.mark.parametrize("n_rows", [0, 3])
def test_of_nothing_comes_what_counting_blank_texts_gives(n_rows: int, tmp_path: Path):
    expected = written(Segment.of([""] * n_rows), tmp_path / "counted")
    merge_into(tmp_path / "none", [], n_rows)
    assert content(tmp_path / "none") == expected
