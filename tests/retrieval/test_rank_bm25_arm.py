"""BM25 on rank-bm25: an oracle of the other arm, with the package's own flaws kept away."""

import numpy as np
import pytest

from domain.errors import ConfigError
from retrieval.arms import Ranking, Visible
from retrieval.lexical import Bm25Arm
from retrieval.rank_bm25_arm import RankBm25Arm

WORDS = ["pump", "valve", "seal", "rotor", "gasket", "hose", "AR-7", "ERR_CONN_RESET", "conn", "冷却水"]


def everyone(n: int) -> Visible:
    return Visible(np.ones(n, np.bool_))


def random_texts(seed: int, n: int = 30) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, length)) for length in rng.integers(0, 12, n)]


def rows(ranking: Ranking) -> list[int]:
    return ranking.rows.tolist()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("query", ["pump", "valve AR-7 valve", "ERR_CONN_RESET", "冷却 hose unheardof", "the of"])
def test_both_arms_agree_for_every_reader_up_to_a_constant(seed: int, query: str):
    texts = random_texts(seed)
    visible = Visible(np.random.default_rng(seed + 100).random(len(texts)) < 0.5)
    ours, theirs = (arm.build(texts).search(query, 100, visible) for arm in (Bm25Arm, RankBm25Arm))
    by_row = dict(zip(rows(ours), ours.scores.tolist(), strict=True))
    # rank-bm25 keeps the factor k1 + 1 = 1.9 of the original formula.
    assert dict(zip(rows(theirs), (theirs.scores / 1.9).tolist(), strict=True)) == pytest.approx(by_row, abs=1e-5)


def test_a_word_in_half_of_the_rows_or_in_all_still_scores_above_zero():
    half = RankBm25Arm.build(["copper gasket", "copper washer", "rubber hose", "steel clamp"])
    assert rows(half.search("copper", 10, everyone(4))) == [0, 1]
    whole = RankBm25Arm.build(["robot arm paints", "robot arm welds", "robot arm sews"])
    assert rows(whole.search("robot arm", 10, everyone(3))) == [0, 1, 2]


@pytest.mark.parametrize("texts", [[], ["", " ", "..."], ["the of and"]])
def test_an_empty_or_blank_library_answers_with_an_empty_ranking(texts: list[str]):
    assert rows(RankBm25Arm.build(texts).search("pump", 10, everyone(len(texts)))) == []


def test_a_reader_who_may_see_nothing_or_only_blanks_finds_nothing():
    arm = RankBm25Arm.build(["pump", ""])
    assert rows(arm.search("pump", 10, Visible(np.array([False, False])))) == []
    assert rows(arm.search("pump", 10, Visible(np.array([False, True])))) == []


def test_rows_are_scored_as_in_search_and_zero_without_a_common_word():
    texts = random_texts(3)
    arm, visible = RankBm25Arm.build(texts), Visible(np.arange(len(texts)) % 2 == 0)
    ranking = arm.search("pump seal", 100, visible)
    scores = dict(zip(rows(ranking), ranking.scores.tolist(), strict=True))
    wanted = visible.rows[::-1]
    assert arm.score("pump seal", wanted, visible).tolist() == [scores.get(row, 0.0) for row in wanted.tolist()]


def test_only_the_last_readers_models_are_kept():
    arm = RankBm25Arm.build(["pump", "valve"])
    readers = [everyone(2) for _ in range(10)]
    for reader in readers:
        arm.search("pump", 1, reader)
    arm.search("pump", 1, readers[6])
    assert list(arm._models) == [readers[7], readers[8], readers[9], readers[6]]


def test_statistics_are_those_of_the_other_arm():
    texts = random_texts(5)
    visible = Visible(np.arange(len(texts)) % 3 > 0)
    query = "pump AR-7 ERR_CONN_RESET unheardof"
    assert RankBm25Arm.build(texts).statistics(query, visible) == Bm25Arm.build(texts).statistics(query, visible)


def test_the_statistics_of_a_larger_library_are_refused():
    arm = RankBm25Arm.build(["pump", "valve"])
    own = arm.statistics("pump", everyone(2))
    assert rows(arm.search("pump", 5, everyone(2), own)) == [0]
    with pytest.raises(ConfigError, match=r"2 of the 4 chunks.*set retrieval\.lexical to bm25"):
        arm.search("pump", 5, everyone(2), own + own)
