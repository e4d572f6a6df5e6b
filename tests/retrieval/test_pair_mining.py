"""Hard negatives: found by the first stage, never right, never nearly right; and lists that are kept whole."""

from pathlib import Path

import pytest

from retrieval.embedding import HashingEmbedder
from retrieval.pair_lists import DevList, Lists, read_lists, write_lists
from retrieval.pair_mining import mine
from retrieval.pair_sets import Pair, TrainingSet, held_out, of_pairs
from retrieval.reranking import FeatureReranker, read_weights

PAIRS = [Pair(f"what holds part {i}", "", f"Part {i} is held by a bolt of {i} mm.", ()) for i in range(24)]
LONGER = Pair("what holds the longer one", "", "Note: Part 3 is held by a bolt of 3 mm. It is steel.", ())


def mined(training: TrainingSet) -> Lists:
    learn, dev = held_out(training, 0.25, 10)
    return mine(learn, dev, HashingEmbedder(), FeatureReranker(read_weights()))


@pytest.fixture(scope="module")
def lists() -> Lists:
    return mined(of_pairs("s", [*PAIRS, LONGER], 25, 7))


def test_wrong_passages_are_neither_the_right_one_nor_one_that_holds_it(lists: Lists) -> None:
    training = of_pairs("s", [*PAIRS, LONGER], 25, 7)
    for one in lists.learn:
        right = training.chunks[one.right].text
        for row in one.wrong:
            assert right not in training.chunks[row].text
            assert training.chunks[row].text not in right


def test_a_wrong_passage_closer_to_the_question_than_the_right_one_is_learnt_from() -> None:
    echo = Pair("which words come back", "", "What holds part 3? What holds part 3?", ())
    training = of_pairs("s", [*PAIRS, echo], 25, 7)
    asked = [one for one in mined(training).learn if one.question == "what holds part 3"]
    assert asked, "another seed is needed: this question was held out"
    assert any("What holds part 3?" in training.chunks[row].text for row in asked[0].wrong)


def test_mining_twice_finds_the_same(lists: Lists) -> None:
    assert mined(of_pairs("s", [*PAIRS, LONGER], 25, 7)) == lists


def test_a_list_to_choose_by_has_its_right_passage_and_a_prior_for_each(lists: Lists) -> None:
    assert lists.dev
    for one in lists.dev:
        assert set(one.right) & set(one.rows)
        assert len(one.prior) == len(one.rows) == len(set(one.rows))


def test_lists_are_kept_as_they_are(tmp_path: Path, lists: Lists) -> None:
    write_lists(tmp_path / "lists.jsonl", lists)
    assert read_lists(tmp_path / "lists.jsonl") == lists


def test_ndcg_of_a_list_counts_right_ones_that_were_not_found() -> None:
    one = DevList("s", "q", (5, 6, 7), (0.0, 0.0, 0.0), (6, 9))
    # 6 at rank 1 of two right ones: 1 / (1 + 1/log2(3)) = .6131; at rank 2: .6309 / 1.6309 = .3869
    assert one.ndcg10([0.0, 1.0, 0.0]) == pytest.approx(0.6131, abs=1e-4)
    assert one.ndcg10([1.0, 1.0, 0.0]) == pytest.approx(0.3869, abs=1e-4), "equal scores keep their order"
