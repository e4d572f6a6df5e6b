import json
from pathlib import Path

import numpy as np
import pytest

from domain.errors import CorpusError
from retrieval.embedding import HashingEmbedder
from retrieval.feature_training import DEPTH, chosen, domains_in, fit, lists_of, ndcg10, padded, sampled, train
from retrieval.pair_features import FEATURES
from retrieval.pair_sets import Pair

TITLE = FEATURES.index("title")


def made(n: int, useful: int, seed: int) -> np.ndarray:
    """Lists of ten whose relevant candidate stands out by one feature, now and then, and by nothing else."""
    rng = np.random.default_rng(seed)
    lists = rng.normal(size=(n, 10, 9))
    lists[:, 0, 0] += 1  # the first stage is right more often than not
    lists[:, 0, 1 + useful] += 2
    return lists


def test_the_useful_feature_gets_the_weight_and_none_is_negative() -> None:
    weights = fit({"a": padded(list(made(200, TITLE, 1)))}, ridge=0.1)
    assert weights.argmax() == TITLE
    assert weights.min() >= 0
    assert weights[TITLE] > 5 * np.delete(weights, TITLE).max()


def test_the_fit_is_a_minimum_of_the_loss() -> None:
    lists, ridge = {"a": padded(list(made(60, TITLE, 2))), "b": padded(list(made(30, 0, 3)))}, 0.05

    def loss(relative: np.ndarray, first: float) -> float:
        weights = np.concatenate([[first], first * relative])
        total = 0.5 * ridge * float((weights[1:] ** 2).sum())
        for group in lists.values():
            scores = group.inputs @ weights + group.padding
            total += float((np.log(np.exp(scores).sum(1)) - scores[:, 0]).mean()) / len(lists)
        return total

    found = fit(lists, ridge)
    first = min(np.linspace(0.05, 3, 600), key=lambda f: loss(found, f))
    for i in range(8):
        for step in (-0.02, 0.02):
            moved = found.copy()
            moved[i] = max(0.0, moved[i] + step)
            assert loss(moved, first) >= loss(found, first) - 1e-5


def test_a_stronger_ridge_holds_the_weights_back() -> None:
    lists = {"a": padded(list(made(200, TITLE, 4)))}
    assert fit(lists, 1.0).sum() < fit(lists, 0.1).sum() < fit(lists, 0.01).sum()


def test_ndcg_counts_the_rank_of_the_relevant_one() -> None:
    first = np.zeros((3, 9))
    first[:, 0] = [1.0, 2.0, 0.0]  # the relevant candidate is second: 1 / log2(3)
    alone = np.zeros((1, 9))  # padded places do not count: rank 1
    assert ndcg10(padded([first, alone]), np.zeros(8)) == pytest.approx((0.63093 + 1) / 2, abs=1e-5)


def test_the_mildest_of_equally_good_choices_is_taken() -> None:
    tried = {
        (0.1, 1.0): {"a": 0.02, "b": 0.00},
        (0.1, 0.5): {"a": 0.01, "b": 0.005},
        (0.1, 0.25): {"a": -0.01, "b": 0.02},
    }
    # means .01, .0075 and (4 * -.01 + .02) / 2 = -.01; standard error of the best .01: the bar is 0
    assert chosen(tried, {(0.1, 1.0): 1.0, (0.1, 0.5): 0.5, (0.1, 0.25): 0.25}) == (0.1, 0.5)


PAIRS = [
    Pair(f"what holds part {i}", "parts", f"Part {i} is held by a bolt of {i} mm.", (f"Bolt {i} of another machine.",))
    for i in range(12)
]


def test_lists_put_the_relevant_passage_first_and_leave_unclear_ones_out() -> None:
    pairs = [*PAIRS, Pair("what holds part 3", "longer", "Note: Part 3 is held by a bolt of 3 mm. It is steel.", ())]
    lists = lists_of({"set": pairs}, HashingEmbedder(), None)["set"]
    assert lists.inputs.shape == (13, DEPTH, 9)
    counts = (lists.padding == 0).sum(1)
    # 12 positives, 12 wrong ones and the longer one; where one contains the other, it is left out
    assert counts.tolist() == [25 if i != 3 else 24 for i in range(12)] + [24]


def test_training_twice_gives_the_same_record_and_usable_weights() -> None:
    names = ("squad-train-paragraphs", "squad-train-sentences", "nq-qed", "boolq-dev", "nq-open-dev", "selqa", "bioasq",
             "medquad", "pubmedqa", "covid-qa", "covid-faq", "conditionalqa", "policyqa", "stackexchange", "texfaq",
             "software-faqs")  # fmt: skip
    lists = {name: padded(list(made(12, TITLE, i))) for i, name in enumerate(names)}
    record = train(lists)
    assert record == train(lists)
    assert set(record["weights"]) == set(FEATURES)
    assert set(record["gain_when_left_out"]) == set(names)
    json.dumps(record)


def test_a_sample_is_drawn_by_seed() -> None:
    assert sampled(PAIRS, 1) == sampled(PAIRS, 1) != sampled(PAIRS, 2)


def folders(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).mkdir()
        (root / name / "pairs.jsonl.gz").touch()
    return root


def test_known_sets_keep_their_domains_and_leave_others_aside(tmp_path: Path) -> None:
    there = folders(tmp_path, "nq-qed", "selqa", "policyqa", "multi-hop")
    assert domains_in(there) == {"encyclopedic": ["nq-qed", "selqa"], "rules": ["policyqa"]}


def test_unknown_sets_are_a_domain_each(tmp_path: Path) -> None:
    assert domains_in(folders(tmp_path, "b", "a")) == {"a": ["a"], "b": ["b"]}


def test_one_domain_cannot_be_left_out(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="at least 2"):
        domains_in(folders(tmp_path, "nq-qed", "selqa"))
