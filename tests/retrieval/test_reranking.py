from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from domain.errors import ConfigError, StageFailed
from domain.types import Hit, Query, Reranking
from retrieval.pair_features import FEATURES
from retrieval.reranking import FeatureReranker, ScoredReranker, passage, read_weights, reorder, standardised
from tests.fakes import chunk, hits

NOTHING = dict.fromkeys(FEATURES, 0.0)
FOUND = hits(chunk("a#0", "pump"), chunk("b#0", "kiln glaze"), chunk("c#0", "kiln"))


class Lengths:
    """Scores a hit by the length of its text."""

    tag, listwise = "lengths", False

    def score(self, query: str, hits: tuple[Hit, ...]) -> list[float]:
        return [float(len(hit.chunk.text)) for hit in hits]


def ids(found: tuple[Hit, ...]) -> list[str]:
    return [hit.chunk.id for hit in found]


def test_a_passage_is_title_heading_and_text() -> None:
    titled = chunk("a#0", "It is hot.", title="Kilns")
    assert passage(titled) == "Kilns\nIt is hot."
    assert passage(replace(titled, heading="Use > Heat")) == "Kilns\nUse > Heat\nIt is hot."


def test_reordering_sorts_by_score_then_chunk_id_and_ranks_from_one() -> None:
    found = reorder(FOUND, [1.0, 2.0, 1.0], "test")
    assert ids(found) == ["b#0", "a#0", "c#0"]
    assert [(hit.rank, hit.score, hit.method) for hit in found] == [
        (1, 2.0, "test"),
        (2, 1.0, "test"),
        (3, 1.0, "test"),
    ]


def test_reordering_never_adds_or_loses_a_hit() -> None:
    many = hits(*(chunk(f"d#{i}", "text") for i in range(40)))
    for seed in range(30):
        scores = np.random.default_rng(seed).integers(0, 5, 40).astype(float).tolist()
        found = reorder(many, scores, "test")
        assert sorted(ids(found)) == sorted(ids(many))
        assert [hit.rank for hit in found] == list(range(1, 41))
        assert all(a.score > b.score or a.chunk.id < b.chunk.id for a, b in pairwise(found))


def test_missing_or_infinite_scores_fail_the_stage() -> None:
    for scores in ([1.0, 2.0], [1.0, float("nan"), 2.0], [1.0, float("inf"), 2.0]):
        with pytest.raises(StageFailed, match="one finite score per hit"):
            reorder(FOUND, scores, "test")


def test_without_weights_the_first_stage_order_stays() -> None:
    scores = FeatureReranker(NOTHING).score("kiln glaze", FOUND)
    assert ids(reorder(FOUND, scores, "f")) == ids(FOUND)


def test_a_weighted_feature_moves_the_passage_that_has_it() -> None:
    scores = FeatureReranker(NOTHING | {"coverage": 5.0}).score("kiln glaze", FOUND)
    assert ids(reorder(FOUND, scores, "f"))[0] == "b#0"


def test_equal_values_say_nothing_and_are_not_blown_up() -> None:
    columns = np.array([[0.1 + 0.2, 1.0], [0.3, 2.0], [0.3, 3.0]])
    assert standardised(columns)[:, 0].tolist() == [0, 0, 0]
    assert standardised(columns)[:, 1] == pytest.approx([-1.2247449, 0, 1.2247449])
    assert FeatureReranker(dict.fromkeys(FEATURES, 1.0)).score("kiln", FOUND[:1]) == [0]


def test_the_tag_names_the_weights() -> None:
    assert FeatureReranker(NOTHING).tag == FeatureReranker(NOTHING).tag
    assert FeatureReranker(NOTHING).tag != FeatureReranker(NOTHING | {"title": 0.1}).tag


def test_weights_that_do_not_fit_are_refused() -> None:
    for weights in ({"coverage": 1.0}, NOTHING | {"other": 1.0}, NOTHING | {"title": float("nan")}):
        with pytest.raises(ConfigError, match="one finite number for each of coverage"):
            FeatureReranker(weights)


def test_the_shipped_weights_are_read_and_unreadable_ones_refused_by_name(tmp_path: Path) -> None:
    assert set(read_weights()) == set(FEATURES)
    for content in ("", "[]", "{}", '{"weights": {"title": "much"}}'):
        broken = tmp_path / "weights.json"
        broken.write_text(content)
        with pytest.raises(ConfigError, match=r"weights\.json.*train-reranker"):
            read_weights(broken)


async def test_the_stage_reorders_the_head_and_keeps_the_tail_below_it() -> None:
    many = hits(*(chunk(f"d#{i}", "x" * i) for i in range(6)))
    with ThreadPoolExecutor(1) as pool:
        found = (await ScoredReranker(Lengths(), 4, pool).rerank(Query("q"), many)).hits
        assert await ScoredReranker(Lengths(), 4, pool).rerank(Query("q"), ()) == Reranking(())
    assert ids(found) == ["d#3", "d#2", "d#1", "d#0", "d#4", "d#5"]
    assert [hit.rank for hit in found] == [1, 2, 3, 4, 5, 6]
    assert [hit.method for hit in found] == ["lengths"] * 4 + ["fake"] * 2
