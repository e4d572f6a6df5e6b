"""What `bench embed` makes of what its contenders say, and which texts they are given."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate.bench_embed import PEER, figures_of, texts_of
from tidegate.settings import Settings


def said(passages_per_cpu_s: float, query_ms: float) -> dict[str, Any]:
    queries = {"query_ms": query_ms, "query_p95_ms": 2 * query_ms, "query_cpu_ms": query_ms}
    return {"name": "openvino-bfloat16", "passages": 60, "cpu_s": 60 / passages_per_cpu_s} | queries


def by_name(figures: list[Any]) -> dict[str, Any]:
    return {figure.name.split()[0]: figure for figure in figures}


def test_the_best_round_of_each_counts_and_the_aims_are_judged(tmp_path: Path) -> None:
    np.save(tmp_path / "ours.npy", np.array([[1, 0], [0.8, 0.6]], np.float32))
    np.save(tmp_path / f"{PEER}.npy", np.array([[2, 0], [0.6, 0.8]], np.float32))  # the peer's need not be unit
    told = by_name(figures_of({"ours": [said(20, 9), said(30, 3)], PEER: [said(10, 6)]}, tmp_path))
    assert told["passages_per_cpu_s"].ratio == pytest.approx({"st": 3.0})
    assert (told["ratio_st"].met, told["query_ms"].value, told["query_ms"].met) == (True, 3, True)
    assert told["cosine_min"].value == pytest.approx(0.96)  # .8 * .6 + .6 * .8
    assert told["cosine_min"].met is False
    assert told["cosine_mean"].value == pytest.approx(0.98)


def test_without_the_peer_what_it_would_say_is_not_measured(tmp_path: Path) -> None:
    told = by_name(figures_of({"ours": [said(20, 5)]}, tmp_path))
    assert (told["ratio_st"].value, told["ratio_st"].met, told["cosine_min"].value) == (None, None, None)
    assert told["query_ms"].met is False


def test_the_texts_of_a_collection_are_those_that_a_build_embeds(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "1", "title": "Kilns", "text": "The kiln is hot."}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "how hot?"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\n")
    texts, asked = texts_of(Settings(), tmp_path, tmp_path)
    assert texts == ["Kilns\nThe kiln is hot."]
    assert asked == ["how hot?"]
