from dataclasses import replace

import numpy as np
import pytest

from domain.types import Hit
from retrieval.pair_features import FEATURES, PairFeatures, names_in
from tests.fakes import chunk, hits


def column(name: str, query: str, found: tuple[Hit, ...]) -> list[float]:
    return PairFeatures()(query, found)[:, FEATURES.index(name)].tolist()


def passages(*texts: str, title: str = "-") -> tuple[Hit, ...]:
    return hits(*(chunk(f"d{i}#0", text, title=title) for i, text in enumerate(texts)))


def test_coverage_grows_with_matched_words_and_saturates_with_repeats() -> None:
    none, one, two, twice = column(
        "coverage", "kiln glaze", passages("pump", "kiln pump", "kiln glaze", "kiln kiln glaze glaze")
    )
    assert none == 0 < one < two < twice < 1
    assert twice - two < two - one


def test_a_word_that_every_hit_holds_weighs_least() -> None:
    # both passages cover one of the two words; "pump" is rare in this list, "kiln" is everywhere
    common, rare = column("coverage", "kiln pump", passages("kiln fan", "kiln pump"))
    assert rare > 2 * common


def test_proximity_is_matched_words_per_window() -> None:
    near, far, lone = column(
        "proximity", "kiln glaze", passages("kiln glaze", "kiln pump fan rotor valve glaze", "kiln kiln")
    )
    assert near == pytest.approx(1)  # 2 words in a window of 2
    assert far == pytest.approx(2 / 6)  # 2 words in a window of 6
    assert lone == 0


def test_proximity_takes_the_smallest_of_several_windows() -> None:
    (found,) = column("proximity", "kiln glaze", passages("kiln pump fan rotor glaze valve kiln glaze"))
    assert found == pytest.approx(1)


def test_phrase_is_the_longest_run_of_question_words() -> None:
    found = column(
        "phrase",
        "blue kiln glaze recipe",
        passages("blue kiln glaze recipe", "recipe of blue kiln glaze", "kiln pump glaze", "pump"),
    )
    # runs of 4, 3, 1 and 0 words: (run - 1) / 3
    assert found == pytest.approx([1, 2 / 3, 0, 0])


def test_title_counts_words_of_title_and_heading() -> None:
    plain, titled = passages("kiln glaze"), passages("pump", title="Kiln")
    headed = tuple(replace(hit, chunk=replace(hit.chunk, heading="Glaze")) for hit in titled)
    assert column("title", "kiln glaze", plain) == [0]
    assert column("title", "kiln glaze", titled)[0] > 0
    assert column("title", "kiln glaze", headed) == pytest.approx([1])


def test_maxsim_is_one_for_the_same_words_and_less_for_similar_ones() -> None:
    same, similar, other = column("maxsim", "temperatures", passages("temperatures", "temperature", "budget"))
    assert same == pytest.approx(1)
    assert same > similar > other + 0.3


def test_maxsim_uses_the_vectors_it_is_given() -> None:
    known = {"oven": [1.0, 0.0], "kiln": [0.6, 0.8], "pump": [0.0, 1.0]}
    features = PairFeatures(lambda words: np.array([known[word] for word in words], np.float32))
    found = features("oven", hits(chunk("a#0", "kiln", title="kiln"), chunk("b#0", "pump", title="pump")))
    assert found[:, FEATURES.index("maxsim")] == pytest.approx([0.6, 0])


def test_maxsim_of_a_script_without_spaces_is_by_held_pairs() -> None:
    whole, half, none = column("maxsim", "战国无双", passages("战国无双三", "战国时代", "锅炉温度"))
    assert whole == pytest.approx(1)
    assert 0 < half < 1
    assert none == 0


def test_a_cosine_that_is_not_known_counts_as_the_lowest_known() -> None:
    found = tuple(replace(h, cosine=c) for h, c in zip(passages("a", "b", "c"), (0.5, None, 0.2), strict=True))
    assert column("doc_cosine", "kiln", found) == pytest.approx([0.5, 0.2, 0.2])


def test_an_identifier_is_matched_literally_and_whole() -> None:
    found = column(
        "exact_id", "what is ERR_CONN_RESET?", passages("see ERR_CONN_RESET.", "err conn reset", "ERR_CONN_RESETS")
    )
    assert found == [1, 0, 0]


def test_names_are_digits_inner_signs_and_capitals() -> None:
    assert names_in("Does NATO use E-42 in app.config, as in 1998?") == {"nato", "e-42", "app.config", "1998"}
    assert names_in("HOW HOT IS THE KILN") == frozenset()


def test_length_is_the_logarithm_of_the_tokens() -> None:
    assert column("length", "kiln", passages("", "kiln glaze pump")) == pytest.approx([0, np.log(4)])


def test_every_feature_is_finite_whatever_the_input() -> None:
    texts = ["", " ", "\x00", "\ud800", "?" * 5000, "战" * 3000, "a" * 100_000, "kiln"]
    for query in ["", "the", "kiln", "战国", "\ud800", "a.b " * 300]:
        found = PairFeatures()(query, passages(*texts))
        assert found.shape == (len(texts), 8)
        assert np.isfinite(found).all()
    assert PairFeatures()("kiln", ()).shape == (0, 8)


def test_memory_is_bounded_and_forgetting_changes_nothing() -> None:
    small, large = PairFeatures(remembered=2, max_words=5), PairFeatures()
    for round_ in range(3):
        found = passages(*(f"kiln{i} glaze{round_} pump rotor{i}" for i in range(6)))
        assert (small("kiln3 rotor", found) == large("kiln3 rotor", found)).all()
    assert len(small._readings) <= 2


def test_a_changed_title_is_read_anew() -> None:
    features = PairFeatures()
    before = features("kiln", hits(chunk("d#0", "text", title="pump")))
    after = features("kiln", hits(chunk("d#0", "text", title="kiln")))
    assert before[0, FEATURES.index("title")] < after[0, FEATURES.index("title")]
