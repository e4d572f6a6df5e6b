"""What a second ranking gains: values on paper, pairing, and agreement with the means told elsewhere."""

from math import log2

import numpy as np
import pytest

from eval.beir import score
from eval.ranking_gain import gain, ndcg10


def test_ndcg_comes_query_by_query_and_an_unranked_query_has_zero() -> None:
    qrels = {"qa": {"d1": 1}, "qb": {"d2": 1}, "qc": {"d3": 0}}
    # qa: found at rank 3, 1 / log2(4) = 0.5. qb: not ranked. qc: nothing is relevant, so it is in no mean.
    assert ndcg10({"qa": ["d7", "d8", "d1"]}, qrels) == {"qa": 0.5, "qb": 0.0}


def test_the_mean_is_the_one_that_evaluate_tells() -> None:
    rng = np.random.default_rng(3)
    qrels = {f"q{i}": {f"d{j}": int(rng.integers(0, 3)) for j in range(5)} | {"d9": 1} for i in range(20)}
    rankings = {query: [f"d{j}" for j in rng.permutation(12)] for query in qrels}
    values = ndcg10(rankings, qrels)
    assert np.mean(list(values.values())) == pytest.approx(score(rankings, qrels)["ndcg@10"], abs=5e-5)


def test_a_gain_is_the_mean_difference_of_pairs_with_its_interval() -> None:
    before = {f"q{i}": 0.5 for i in range(40)}
    after = {query: 0.5 + (0.2 if i % 2 else 0.0) for i, query in enumerate(before)}
    found = gain(before, after)
    assert (found.n, found.before, found.difference) == (40, 0.5, pytest.approx(0.1))
    assert found.after == pytest.approx(0.6)
    # deviation .1, n 40: a standard error of .016 and an interval of about .1 +- .031
    assert (found.low, found.high) == (pytest.approx(0.069, abs=0.006), pytest.approx(0.131, abs=0.006))


def test_the_safe_interval_is_never_the_narrower_one() -> None:
    rng = np.random.default_rng(5)
    before = {f"q{i}": float(v) for i, v in enumerate(rng.random(60))}
    found = gain(before, {query: value / 2 for query, value in before.items()})
    assert found.safe_low <= found.low < found.difference < found.high <= found.safe_high


def test_equal_rankings_gain_nothing_and_say_so_without_doubt() -> None:
    values = {"q1": 1 / log2(3), "q2": 0.0}
    found = gain(values, values)
    assert (found.difference, found.low, found.high) == (0.0, 0.0, 0.0)


def test_rankings_of_other_queries_do_not_pair_up() -> None:
    with pytest.raises(ValueError, match="do not pair up"):
        gain({"q1": 1.0}, {"q2": 1.0})
