"""BM25 over postings: the formula, what readers may see, identifiers, and the awkward inputs."""

import gc
import math
import os
from collections import Counter
from pathlib import Path

import bm25s
import numpy as np
import pytest

from retrieval.analysis import analyse
from retrieval.arms import Ranking, Visible
from retrieval.lexical import Bm25Arm

WORDS = ["pump", "valve", "seal", "rotor", "gasket", "hose", "clamp", "brass", "copper", "winter", "noon", "robot"]


def everyone(n: int) -> Visible:
    return Visible(np.ones(n, np.bool_))


def only(n: int, *rows: int) -> Visible:
    mask = np.zeros(n, np.bool_)
    mask[list(rows)] = True
    return Visible(mask)


def random_texts(seed: int, n: int = 40) -> list[str]:
    rng = np.random.default_rng(seed)
    common_first = 1 / np.arange(1, len(WORDS) + 1)
    lengths = rng.integers(0, 15, n)  # blank rows among them
    return [" ".join(rng.choice(WORDS, length, p=common_first / common_first.sum())) for length in lengths]


def by_hand(texts: list[str], query: str, rows: list[int], k1: float = 0.9, b: float = 0.4) -> dict[int, float]:
    """BM25 of the textbook over `rows`, as if nothing else existed."""
    bags = {row: Counter(analyse(texts[row])) for row in rows}
    average = sum(bag.total() for bag in bags.values()) / len(rows)
    scores = dict.fromkeys(rows, 0.0)
    for token in analyse(query):
        df = sum(token in bag for bag in bags.values())
        idf = math.log(1 + (len(rows) - df + 0.5) / (df + 0.5))
        for row, bag in bags.items():
            if bag[token]:
                scores[row] += idf * bag[token] / (bag[token] + k1 * (1 - b + b * bag.total() / average))
    return {row: score for row, score in scores.items() if score > 0}


def found(ranking: Ranking) -> dict[int, float]:
    return dict(zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True))


# ------------------------------------------------------------------------------------------------------ the formula


def test_a_score_is_the_one_on_paper():
    arm = Bm25Arm.build(["pump pump valve", "valve"])
    # N = 2, df = 1: idf ln(1 + 1.5 / 1.5) = ln 2. Average length 2, so length norm .6 + .4 * 3 / 2 = 1.2.
    # ln 2 * 2 / (2 + .9 * 1.2) = .4501
    assert found(arm.search("pump", 10, everyone(2))) == {0: pytest.approx(math.log(2) * 2 / 3.08, abs=1e-7)}


@pytest.mark.parametrize("seed", range(5))
def test_scores_over_everything_are_those_of_bm25s(seed: int):
    texts = random_texts(seed)
    oracle = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    oracle.index([analyse(text) for text in texts], show_progress=False)
    arm = Bm25Arm.build(texts)
    for query in ("pump", "pump seal copper", "robot robot brass", "winter noon valve hose"):
        theirs = oracle.get_scores(analyse(query))
        ours = np.zeros(len(texts))
        ranking = arm.search(query, len(texts), everyone(len(texts)))
        ours[ranking.rows] = ranking.scores
        assert np.abs(ours - theirs).max() < 1e-4


@pytest.mark.parametrize("seed", range(20))
def test_scores_for_a_reader_are_those_of_a_library_of_what_the_reader_sees(seed: int):
    texts = random_texts(seed)
    arm = Bm25Arm.build(texts)
    mask = np.random.default_rng(seed + 100).random(len(texts)) < 0.4
    rows = np.flatnonzero(mask).tolist()
    for query in ("pump", "pump seal copper pump", "robot brass unheardof"):
        assert found(arm.search(query, 100, Visible(mask))) == pytest.approx(by_hand(texts, query, rows), abs=1e-6)


def test_the_best_come_first_and_ties_by_row():
    texts = ["seal brass", "pump", "pump valve", "pump", "pump pump"]
    ranking = Bm25Arm.build(texts).search("pump", 10, everyone(5))
    assert ranking.rows.tolist() == [4, 1, 3, 2]
    assert ranking.scores.tolist() == sorted(ranking.scores.tolist(), reverse=True)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 1_000_000_000])
def test_at_most_n_rows_come_back_and_they_are_the_first_of_the_full_ranking(n: int):
    texts = ["pump", "pump valve", "pump", "valve", "pump pump"]
    arm = Bm25Arm.build(texts)
    full = arm.search("pump", 100, everyone(5))
    assert arm.search("pump", n, everyone(5)).rows.tolist() == full.rows.tolist()[:n]


def test_a_repeated_query_word_counts_twice():
    arm = Bm25Arm.build(["pump", "valve"])
    once, twice = (arm.search(query, 1, everyone(2)).scores[0] for query in ("pump", "pump pumps"))
    assert twice == 2 * once


def test_a_score_is_above_zero_for_every_row_with_a_query_word_however_common():
    texts = ["A robot arm paints", "One robot arm welds", "No robot arm sews"]
    assert found(Bm25Arm.build(texts).search("robot arm", 10, everyone(3))).keys() == {0, 1, 2}
    two = Bm25Arm.build(["The pump overheats.", "The valve sticks."])
    assert found(two.search("pump", 10, everyone(2))).keys() == {0}


def test_rows_are_scored_as_in_search_and_zero_without_a_common_word():
    texts = random_texts(3)
    arm, visible = Bm25Arm.build(texts), Visible(np.arange(len(texts)) % 2 == 0)
    scores = found(arm.search("pump seal", 100, visible))
    wanted = visible.rows[::-1]
    assert arm.score("pump seal", wanted, visible).tolist() == [scores.get(row, 0.0) for row in wanted.tolist()]


# ------------------------------------------------------------------------------------------------------------- shards


@pytest.mark.parametrize("seed", range(5))
def test_arms_over_parts_score_like_one_over_all_with_the_statistics_of_all(seed: int):
    texts = random_texts(seed)
    mask = np.random.default_rng(seed).random(len(texts)) < 0.7
    cut = 15
    whole, one, other = Bm25Arm.build(texts), Bm25Arm.build(texts[:cut]), Bm25Arm.build(texts[cut:])
    for query in ("pump", "pump seal copper pump unheardof", "ERR_CONN_RESET robot"):
        expected = whole.score(query, np.arange(len(texts)), Visible(mask))
        views = ((one, Visible(mask[:cut])), (other, Visible(mask[cut:])))
        known = views[0][0].statistics(query, views[0][1]) + views[1][0].statistics(query, views[1][1])
        parts = [arm.score(query, np.arange(seen.mask.size), seen, known) for arm, seen in views]
        assert np.concatenate(parts).tobytes() == expected.tobytes()


def test_an_identifier_that_only_another_part_holds_is_known_whole():
    known = Bm25Arm.build(["ERR_CONN_RESET"]).statistics("ERR_CONN_RESET", everyone(1))
    arm = Bm25Arm.build(["conn reset", "valve"])
    alone = arm.search("ERR_CONN_RESET", 1, everyone(2)).scores[0]
    both = known + arm.statistics("ERR_CONN_RESET", everyone(2))
    assert arm.search("ERR_CONN_RESET", 1, everyone(2), both).scores[0] < alone  # its parts count a quarter


# --------------------------------------------------------------------------------------------------- what one may see


@pytest.mark.parametrize("seed", range(10))
def test_hidden_rows_change_not_one_bit(seed: int):
    rng = np.random.default_rng(seed)
    open_texts, hidden_texts = random_texts(seed), random_texts(seed + 1000, n=60)
    alone = Bm25Arm.build(open_texts)
    # The open texts keep their order but stand among hidden ones, at other row numbers.
    places = np.sort(rng.permutation(len(open_texts) + len(hidden_texts))[: len(open_texts)])
    visible = Visible(np.isin(np.arange(len(open_texts) + len(hidden_texts)), places))
    opened, hidden = iter(open_texts), iter(hidden_texts)
    mixed = Bm25Arm.build([next(opened) if seen else next(hidden) for seen in visible.mask])
    for query in ("pump", "pump seal copper winter", "ERR_CONN_RESET robot robot brass"):
        expected = alone.search(query, 100, everyone(len(open_texts)))
        ranking = mixed.search(query, 100, visible)
        assert ranking.rows.tolist() == places[expected.rows].tolist()
        assert ranking.scores.tobytes() == expected.scores.tobytes()


@pytest.mark.parametrize("room", [0, 3000, 1 << 20])
def test_what_an_arm_keeps_of_its_postings_changes_no_bit(room: int):
    texts = random_texts(7)
    fresh, keeping = Bm25Arm.build(texts).segment, Bm25Arm(Bm25Arm.build(texts).segment, room=room)
    readers = [everyone(len(texts)), only(len(texts), 1, 4, 5, 9, 30), everyone(len(texts))]
    for query in ("pump", "pump seal", "winter noon", "pump") * 2:
        for visible in readers:
            first = Bm25Arm(fresh, room=0).search(query, 9, Visible(visible.mask))
            again = keeping.search(query, 9, visible)
            assert again.rows.tolist() == first.rows.tolist()
            assert again.scores.tobytes() == first.scores.tobytes()


def test_an_identifier_known_only_to_others_counts_as_unknown():
    texts = ["conn reset", "valve", "ERR_CONN_RESET"]
    arm = Bm25Arm.build(texts)
    without = Bm25Arm.build(texts[:2])
    seen = arm.search("ERR_CONN_RESET", 10, only(3, 0, 1))
    assert seen.scores.tobytes() == without.search("ERR_CONN_RESET", 10, everyone(2)).scores.tobytes()


def test_nothing_hidden_is_ever_returned():
    arm = Bm25Arm.build(["pump", "pump", "valve"])
    assert found(arm.search("pump", 10, only(3, 1, 2))).keys() == {1}
    assert found(arm.search("pump", 10, only(3))) == {}


def test_what_is_remembered_about_a_reader_goes_with_the_reader():
    arm, visible = Bm25Arm.build(["pump", "valve"]), everyone(2)
    arm.search("pump", 1, visible)
    assert len(arm._totals) == 1
    del visible
    gc.collect()
    assert len(arm._totals) == 0


# ------------------------------------------------------------------------------------------------- identifiers, scripts

CASE_4 = {
    "cpp": "Our tide model was ported to C++ last year.",
    "csharp": "Payroll exports come from a small C# program.",
    "c": "Firmware of the buoys is plain C.",
    "net": "Install .NET before the invoices are printed.",
    "web": "A torn net is mended on the quay.",
    "ar7": "Order seal AR-7 for the inner lock.",
    "ar70": "Order seal AR-70 for the outer lock.",
    "seven": "There are seven more seals on the AR shelf.",
    "err": "ERR_CONN_RESET appears when the far station hangs up.",
    "err2": "After the err we reset the station, and conn was fine.",
    "cve": "Version 5 closes CVE-2024-1234.",
    "cve2": "Version 6 closes CVE-2024-4321. Ticket 1234 of 2024 repeats 1234 of 2024.",
}


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("C++", "cpp"),
        ("C#", "csharp"),
        ("C", "c"),
        (".NET", "net"),
        ("AR-7", "ar7"),
        ("AR-7.", "ar7"),
        ("ERR_CONN_RESET", "err"),
        ("err_conn_reset", "err"),
        ("CVE-2024-1234", "cve"),
    ],
)
def test_the_exact_identifier_ranks_first(query: str, first: str):
    ranking = Bm25Arm.build(list(CASE_4.values())).search(query, 12, everyone(12))
    assert list(CASE_4)[ranking.rows[0]] == first


def test_c_and_its_relatives_do_not_find_each_other():
    arm = Bm25Arm.build(list(CASE_4.values()))
    for query in ("C", "C++", "C#"):
        assert arm.search(query, 12, everyone(12)).rows.size == 1


def test_a_part_of_an_identifier_finds_it():
    names = list(CASE_4)
    rows = Bm25Arm.build(list(CASE_4.values())).search("conn reset", 12, everyone(12)).rows
    assert {names[row] for row in rows} == {"err", "err2"}


def test_an_identifier_outdoes_a_shorter_passage_full_of_its_parts():
    once = "ERR_CONN_RESET " + " ".join(f"word{i}" for i in range(120))
    parts = "reset conn err " * 10
    others = [" ".join(f"filler{i}" for i in range(j, j + 60)) for j in range(100)]
    assert Bm25Arm.build([parts, once, *others]).search("ERR_CONN_RESET", 5, everyone(102)).rows.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("query", "rows"), [("主阀门", [0]), ("皮带", [1]), ("冷却水", [2, 0]), ("วาล์ว", [3]), ("P3", [4])]
)
def test_a_word_inside_text_without_spaces_is_found(query: str, rows: list[int]):
    texts = ["冷却前先关闭主阀门。", "每周检查皮带。", "冷却水を月曜日に替える。", "ปิดวาล์วหลักก่อน", "P3泵已修理"]
    assert Bm25Arm.build(texts).search(query, 5, everyone(5)).rows.tolist() == rows


# -------------------------------------------------------------------------------------------------------- nothing there


@pytest.mark.parametrize("texts", [[], ["", " \t\n", "... --- !!! ###"], ["the of and"]])
def test_an_empty_or_blank_library_answers_with_an_empty_ranking(texts: list[str], tmp_path: Path):
    arm = Bm25Arm.build(texts)
    arm.save(tmp_path)
    for each in (arm, Bm25Arm.load(tmp_path)):
        assert each.search("pump", 10, everyone(len(texts))).rows.size == 0


@pytest.mark.parametrize("query", ["", "   ", "the of and", "???", "qqqxxyy"])
def test_a_query_without_a_known_token_finds_nothing(query: str):
    ranking = Bm25Arm.build(["The pump overheats.", ""]).search(query, 10, everyone(2))
    assert (ranking.rows.tolist(), ranking.scores.tolist()) == ([], [])


def test_blank_rows_are_rows_of_the_library_too():
    # N counts what the reader may see, with or without words: ln(1 + (3 - 1 + .5) / 1.5) for one row of three.
    arm = Bm25Arm.build(["pump", "", ""])
    idf = math.log(1 + 2.5 / 1.5)
    assert found(arm.search("pump", 1, everyone(3))) == {0: pytest.approx(idf / (1 + 0.9 * (0.6 + 0.4 * 3)))}


# ---------------------------------------------------------------------------------------------- the failure collection


@pytest.mark.data
@pytest.mark.parametrize(
    ("folder", "query", "first"),
    [
        ("case-01/corpus2", "pump", ["a.txt"]),
        ("case-01/corpus4", "copper", ["d1.txt", "d2.txt"]),
        ("case-01/corpus3all", "robot arm", ["d1.txt", "d2.txt", "d3.txt"]),
        ("case-03", "主阀门", ["zh.txt"]),
        ("case-03", "皮带", ["zh2.txt"]),
        ("case-03", "冷却水", ["ja.txt"]),
        ("case-03", "วาล์ว", ["th.txt"]),
        ("case-03", "P3泵 冷却液", ["zh.txt"]),
        ("case-04", "C++", ["cpp.txt"]),
        ("case-04", "C#", ["csharp.txt"]),
        ("case-04", ".NET", ["net.txt"]),
        ("case-04", "AR-7", ["ar7.txt"]),
        ("case-04", "ERR_CONN_RESET", ["err.txt"]),
        ("case-04", "err_conn_reset", ["err.txt"]),
        ("case-04", "CVE-2024-1234", ["cve.txt"]),
        ("case-04", "AR-7.", ["ar7.txt"]),
        ("case-05", "caf\u00e9 Z\u00fcrich", ["nfc.txt", "nfd.txt"]),
        ("case-05", "cafe\u0301 Zu\u0308rich", ["nfc.txt", "nfd.txt"]),
        ("case-05", "ABC123", ["fullwidth.txt"]),
        ("case-05", "password", ["zerowidth.txt"]),
    ],
)
def test_the_collected_failures_do_not_happen(folder: str, query: str, first: list[str]):
    collections = os.environ.get("TIDEGATE_DATA")
    if not collections:
        pytest.skip("TIDEGATE_DATA does not name the folder of the public collections")
    files = sorted((Path(collections) / "cases" / "inputs" / folder).iterdir())
    arm = Bm25Arm.build([file.read_text(encoding="utf-8") for file in files])
    ranking = arm.search(query, 10, everyone(len(files)))
    assert {files[row].name for row in ranking.rows[: len(first)]} == set(first)
