"""What `bench rerank` makes of what its contenders say."""

from typing import Any

import pytest

from load.closed_loop import Result
from tidegate import bench_rerank_served
from tidegate.bench_rerank import figures_of, parity


def said(pairs_per_cpu_s: float, *scores: list[float], **more: Any) -> dict[str, Any]:
    return {"pairs": 100, "cpu_s": 100 / pairs_per_cpu_s, "wall_s": 2.0, "p95_s": 0.2, "scores": list(scores), **more}


def ours(pairs_per_cpu_s: float, *scores: list[float]) -> dict[str, Any]:
    return said(pairs_per_cpu_s, *scores, crowd_wall_s=1.6, crowd_p95_s=0.9, apart=0.0, useful_share=0.97)


def by_name(figures: list[Any]) -> dict[str, Any]:
    return {figure.name: figure for figure in figures}


def test_ratios_are_ours_to_each_peer_and_the_aims_are_judged() -> None:
    best = {"ours": ours(70, [1.0, 2.0, 3.0]), "st": said(10, [1.0, 2.0, 3.1]), "ort": said(60, [1.0, 2.0, 3.0])}
    told = by_name(figures_of(best))
    assert told["pairs_per_cpu_s"].value == pytest.approx(70)
    assert told["pairs_per_cpu_s"].ratio == pytest.approx({"st": 7.0, "ort": 70 / 60, "st_best": None})
    assert (told["ratio_st"].met, told["ratio_ort"].met) == (True, False)
    # 100 pairs in 1.6 s with eight at a time, in 2 s one at a time.
    assert told["crowd_pairs_per_s"].ratio == pytest.approx({"alone": 1.25})


def test_without_peers_what_they_would_say_is_not_measured() -> None:
    told = by_name(figures_of({"ours": ours(70, [1.0, 2.0])}))
    assert [told[name].value for name in ("ratio_st", "ratio_ort", "spearman", "kendall", "max_apart")] == [None] * 5
    assert told["ratio_st"].met is None


def test_parity_is_the_mean_over_lists_and_the_worst_is_told() -> None:
    # The second list has one pair of neighbours turned round: Spearman 1 - 6 * 2 / (4 * 15) = .8, Kendall (5 - 1) / 6.
    told = by_name(parity([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0]], [[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]))
    assert (told["spearman"].value, told["spearman"].peers["worst"]) == pytest.approx((0.9, 0.8))
    assert told["kendall"].peers["worst"] == pytest.approx(4 / 6)
    assert told["max_apart"].value == 1.0
    assert (told["spearman"].met, told["kendall"].met) == (False, False)


def test_what_is_served_is_judged_by_the_time_of_one_client_and_the_gain_of_eight() -> None:
    wide = Result(1, 10.0, [400.0] * 20), Result(8, 10.0, [3000.0] * 21)
    narrow = Result(1, 10.0, [700.0] * 14), Result(8, 10.0, [3000.0] * 21)
    told = by_name(bench_rerank_served.figures_of(wide, narrow))
    assert (told["http_ms"].value, told["http_ms"].met) == (400.0, True)
    assert (told["concurrent8"].value, told["concurrent8"].met) == (pytest.approx(1.5), True)
    assert told["concurrent8"].peers["all_cores_on_one_request"] == pytest.approx(1.05)
    narrow[1].failures.append("503")
    assert {figure.value for figure in bench_rerank_served.figures_of(wide, narrow)} == {None}
