"""Pictures of an evaluation: the same for the same numbers, and every number on them is one that was given."""

import random
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from domain.evaluation import ALL, Difference, Estimate
from eval.plots import answer_times, by_metric, by_slice, differences, growth, latencies, png, recall_curve, svg

WHOLE = Estimate(0.81, 0.79, 0.83, 900)
SLICES = {"type=null": Estimate(0.5, None, None, 3), ALL: WHOLE, "hops=2": Estimate(0.75, 0.6, 0.9, 40)}
DROP = Difference("recall@6", ALL, Estimate(-0.035, -0.05, -0.02, 880), max_drop=0.02)
DRAWN = {
    "by_slice": lambda: by_slice("recall@6", SLICES, 0.7),
    "by_slice_of_both": lambda: by_slice("recall@6", SLICES, 0.7, {ALL: WHOLE, "hops=2": WHOLE, "gone=1": WHOLE}),
    "by_metric": lambda: by_metric({"recall@6": WHOLE, "success": Estimate(1, 0.99, 1, 900)}, {"recall@6": 0.7}, "v2"),
    "differences": lambda: differences([DROP], "v2", "v1"),
    "recall_curve": lambda: recall_curve({"v2": {1: Estimate(0.4, 0.3, 0.5, 9), 6: WHOLE}, "v1": {1: WHOLE, 6: WHOLE}}),
    "growth": lambda: growth([(5000, 2.0, 6.0, 153.0), (50000, 9.0, 20.0, None)], "hybrid search"),
    "latencies": lambda: latencies([10.0, 20.0, 30.0, 400.0]),
    "answer_times": lambda: answer_times({"v1": [10.0, 20.0, 400.0], "v2": [12.0, 25.0]}),
}


def words(picture: str) -> list[str]:
    """Every text that stands in an SVG, in its order."""
    root = ElementTree.fromstring(picture)
    return [text for element in root.iter() if element.tag.endswith("text") and (text := "".join(element.itertext()))]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DRAWN))
def test_the_same_numbers_give_the_same_bytes(name: str) -> None:
    once, again = DRAWN[name](), DRAWN[name]()
    assert png(once) == png(again)
    assert svg(once) == svg(again)
    assert png(once).startswith(b"\x89PNG")


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_a_picture_for_a_page_loads_nothing_and_says_no_date(name: str) -> None:
    picture = svg(DRAWN[name]())
    assert picture.startswith("<svg")
    assert not re.search(r"<image|<script|href=\"(?!#)|20[0-9]{2}-[0-9]{2}", picture)


def test_a_slice_shows_its_mean_interval_and_count_and_all_questions_stand_first() -> None:
    told = words(svg(by_slice("recall@6", SLICES, 0.7)))
    assert [text for text in told if "=" in text or text == "all questions"] == ["all questions", "hops=2", "type=null"]
    assert "0.810   0.790 to 0.830   n 900" in told
    assert "0.500   no interval   n 3" in told
    assert "floor 0.7" in told


def test_an_earlier_version_is_drawn_within_the_frame_and_without_numbers() -> None:
    low = Estimate(0.1, 0.05, 0.2, 40)
    figure = by_slice("recall@6", SLICES, 0.7, {"hops=2": low})
    assert figure.axes[0].get_xlim()[0] <= 0.05
    assert words(svg(figure)).count("0.100   0.050 to 0.200   n 40") == 0
    assert len(figure.axes[0].lines) == len(by_slice("recall@6", SLICES, 0.7).axes[0].lines) + 2, "whisker and dot"


def test_a_difference_carries_its_sign() -> None:
    told = words(svg(differences([DROP], "v2", "v1")))
    assert "-0.035   -0.050 to -0.020   n 880" in told
    assert "v2 against v1" in told


def test_percentiles_are_times_that_were_measured() -> None:
    # Of 1..100 ms the median is the 51st, as 50 are below it; 95 are below the 96th, 99 below the 100th.
    times = [float(ms) for ms in range(1, 101)]
    random.Random(3).shuffle(times)
    told = [text.strip() for text in words(svg(latencies(times)))]
    assert [text for text in told if text.startswith("p")] == ["p50 51 ms", "p95 96 ms", "p99 100 ms"]


def test_the_times_of_each_version_are_told_apart() -> None:
    # Of 1..100 ms the median is the 51st, the 95th percentile the 96th; twice as long for the other version.
    times = [float(ms) for ms in range(1, 101)]
    told = words(svg(answer_times({"v1": times, "v2": [2 * ms for ms in times]})))
    assert [text for text in told if text.startswith("v")] == [
        "v1   p50 51 ms   p95 96 ms   n 100",
        "v2   p50 102 ms   p95 192 ms   n 100",
    ]


@pytest.mark.parametrize("name", ["source=$x$", r"source=$\bad$", "type=<b>&", "persona=潮汐"])
def test_the_name_of_a_slice_is_text_whatever_it_is_made_of(name: str) -> None:
    assert name in words(svg(by_slice("recall@6", {ALL: WHOLE, name: WHOLE})))


def test_what_no_font_can_hold_is_replaced_in_the_name_of_a_slice() -> None:
    assert "type=a\ufffd\ufffdb" in words(svg(by_slice("recall@6", {ALL: WHOLE, "type=a\ud800\x00b": WHOLE})))


def test_versions_that_end_alike_are_labelled_one_above_the_other() -> None:
    figure = recall_curve({name: {1: WHOLE, 6: WHOLE} for name in ("v1", "v2", "v3")})
    heights = sorted(text.xy[1] for text in figure.axes[0].texts)
    assert all(above - below >= 0.05 - 1e-9 for below, above in pairwise(heights))


def test_drawing_leaves_the_settings_of_matplotlib_as_they_were() -> None:
    from matplotlib import rcParams

    before = dict(rcParams)
    png(DRAWN["differences"]())
    assert dict(rcParams) == before


def test_of_very_many_slices_the_largest_are_drawn_and_the_title_says_so() -> None:
    slices = {ALL: Estimate(0.5, 0.4, 0.6, 9)} | {f"source={i:04d}": Estimate(0.5, 0.4, 0.6, i) for i in range(5000)}
    told = words(svg(by_slice("recall@6", slices)))
    assert "recall@6 in every slice, the 80 largest of 5001" in told
    # all questions and the 79 largest: 4999 down to 4921
    assert [text for text in told if text.startswith("source=")] == [f"source={i}" for i in range(4921, 5000)]
    assert "all questions" in told
