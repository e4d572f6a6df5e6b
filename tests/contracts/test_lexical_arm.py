"""What every lexical arm promises, whatever it keeps its words in: the segment, the snapshot of several, rank-bm25."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from retrieval.arms import LexicalArm, Visible
from retrieval.lexical import Bm25Arm
from retrieval.lexical_updates import LexicalUpdates
from retrieval.rank_bm25_arm import RankBm25Arm

TEXTS = ["pump valve", "pump", "seal AR-7", "", "pump", "rotor rotor seal", "ERR_CONN_RESET", "pump valve valve"]
QUERIES = ["pump", "valve pump pump", "AR-7 rotor", "ERR_CONN_RESET", "unheardof", "the of", "  "]

Reader = Callable[[np.ndarray], Visible]
Opened = tuple[LexicalArm, Reader]


def one_segment(texts: Sequence[str], _: Path) -> Opened:
    return Bm25Arm.build(texts), Visible


def on_disk(texts: Sequence[str], folder: Path) -> Opened:
    Bm25Arm.build(texts).save(folder)
    return Bm25Arm.load(folder), Visible


def several_segments(texts: Sequence[str], folder: Path) -> Opened:
    """Three updates in the order of rows, so that rows are in the order of ids here too."""
    with LexicalUpdates(folder) as writer:
        for first in range(0, len(texts), 3):
            writer.add({f"d{first + i:03d}": text for i, text in enumerate(texts[first : first + 3])})
        return writer.snapshot, writer.snapshot.visible


def rank_bm25(texts: Sequence[str], _: Path) -> Opened:
    return RankBm25Arm.build(texts), Visible


ARMS = [one_segment, on_disk, several_segments, rank_bm25]


@pytest.fixture(params=ARMS, ids=lambda make: make.__name__)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    made: Opened = request.param(TEXTS, tmp_path)
    return made


def mask(*rows: int) -> np.ndarray:
    return np.isin(np.arange(len(TEXTS)), rows)


EVERY = mask(*range(len(TEXTS)))


def test_nothing_hidden_is_found(opened: Opened) -> None:
    arm, reader = opened
    for query in QUERIES:
        assert set(arm.search(query, 99, reader(mask(0, 3, 6))).rows.tolist()) <= {0, 3, 6}


def test_the_best_come_first_ties_by_row_and_all_above_zero(opened: Opened) -> None:
    arm, reader = opened
    ranking = arm.search("pump", 99, reader(EVERY))
    assert ranking.rows.tolist() == [1, 4, 0, 7]
    assert ranking.scores.tolist() == sorted(ranking.scores.tolist(), reverse=True)
    assert (ranking.scores > 0).all()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 99])
def test_fewer_are_the_first_of_more(n: int, opened: Opened) -> None:
    arm, reader = opened
    for query in QUERIES:
        assert (
            arm.search(query, n, reader(EVERY)).rows.tolist() == arm.search(query, 99, reader(EVERY)).rows.tolist()[:n]
        )


def test_rows_are_scored_as_in_search(opened: Opened) -> None:
    arm, reader = opened
    visible = reader(mask(0, 1, 2, 4, 6))
    for query in QUERIES:
        ranking = arm.search(query, 99, visible)
        found = dict(zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True))
        rows = visible.rows[::-1]
        assert arm.score(query, rows, visible).tolist() == [found.get(row, 0.0) for row in rows.tolist()]


@pytest.mark.parametrize("make", ARMS)
def test_what_is_hidden_changes_not_one_bit(make: Callable[[Sequence[str], Path], Opened], tmp_path: Path) -> None:
    seen = [0, 2, 4, 5, 6]
    arm, reader = make(TEXTS, tmp_path / "all")
    alone, reader_alone = make([TEXTS[row] for row in seen], tmp_path / "alone")
    for query in QUERIES:
        among = arm.search(query, 99, reader(mask(*seen)))
        expected = alone.search(query, 99, reader_alone(np.ones(len(seen), np.bool_)))
        assert among.rows.tolist() == [seen[row] for row in expected.rows.tolist()]
        assert among.scores.tobytes() == expected.scores.tobytes()


def test_statistics_count_what_the_reader_sees(opened: Opened) -> None:
    arm, reader = opened
    told = arm.statistics("pump valve pump unheardof", reader(mask(0, 3, 4, 5)))
    assert (told.chunks, told.tokens) == (4, 6)  # pump valve, nothing, pump, rotor rotor seal
    assert {token: n for token, n in told.holding.items() if n} == {"pump": 2, "valv": 1}


def test_an_arms_own_statistics_change_nothing(opened: Opened) -> None:
    arm, reader = opened
    visible = reader(mask(0, 1, 2, 6, 7))
    for query in QUERIES:
        given = arm.search(query, 99, visible, arm.statistics(query, visible))
        assert given.scores.tobytes() == arm.search(query, 99, visible).scores.tobytes()


def test_a_reader_who_sees_nothing_finds_nothing(opened: Opened) -> None:
    arm, reader = opened
    assert arm.search("pump", 99, reader(mask())).rows.size == 0
    assert arm.statistics("pump", reader(mask())).chunks == 0
