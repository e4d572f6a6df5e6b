"""What the lexical bench measures; how fast it is, only the bench itself says."""

from collections import Counter
from pathlib import Path

import pytest

from tidegate.bench_lexical import figures, p50_ms, update_ms
from tidegate.bench_texts import questions, short_texts
from tidegate.progress import Report

TEXTS = [f"pump valve number{i} seal{i % 7}" for i in range(600)]


def quiet(_what: str, _done: int, _total: int) -> None:
    pass


QUIET: Report = quiet


@pytest.mark.slow
def test_every_figure_is_measured_and_scores_are_those_of_the_peer(tmp_path: Path) -> None:
    found = {figure.name: figure for figure in figures(TEXTS, ["pump seal3", "number77"], tmp_path, QUIET)}
    assert all(figure.value is not None for figure in found.values())
    assert found["p50_ms"].peers.keys() == {"bm25s", "bm25s_scores", "rank_bm25"}
    assert (found["scores_apart"].value or 0) < 1e-5


def test_an_update_is_found_by_the_search_that_is_timed(tmp_path: Path) -> None:
    assert update_ms(TEXTS, tmp_path) > 0  # it raises when the search after an update does not find it


@pytest.mark.slow
def test_more_texts_begin_with_the_fewer_and_invented_words_are_as_unequal_as_those_of_a_language() -> None:
    texts = list(short_texts(300))
    assert list(short_texts(100)) == texts[:100]
    assert Counter(" ".join(texts).split()).most_common(1)[0][1] > 200


@pytest.mark.slow
def test_questions_are_all_different() -> None:
    asked = questions(50)
    assert len(asked) == len(set(asked)) == 50


def test_the_median_is_of_the_second_time_a_query_is_asked() -> None:
    seen: list[str] = []
    p50_ms(seen.append, ["a", "b"])
    assert seen == ["a", "b", "a", "b"]
