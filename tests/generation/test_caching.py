"""A model that would silently not cache is refused before the first call."""

import pytest

from domain.errors import CannotCache
from generation.caching import check_cacheable, least_tokens

TABLE = {"vendor.big": 1024, "vendor.big-5": 4096}


@pytest.mark.parametrize(
    "model_id", ["vendor.big-v1:0", "eu.vendor.big-v1:0", "arn:aws:bedrock:::x/us.vendor.big-v1:0"]
)
def test_a_prefix_of_the_minimum_is_fine_under_every_name_of_the_model(model_id: str) -> None:
    check_cacheable(model_id, 1024, TABLE)


def test_a_prefix_below_the_minimum_is_refused_with_both_numbers_and_the_way_out() -> None:
    with pytest.raises(CannotCache, match=r"1024 tokens.*at least 300.*allow_uncached: true"):
        check_cacheable("vendor.big-v1:0", 300, TABLE)


def test_the_longest_name_decides() -> None:
    with pytest.raises(CannotCache, match="4096"):
        check_cacheable("vendor.big-5-v1:0", 2000, TABLE)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(CannotCache, match=r"'other.model'.*allow_uncached: true"):
        check_cacheable("other.model", 100_000, TABLE)


def test_an_operator_who_knows_better_than_the_table_is_believed() -> None:
    check_cacheable("other.model", 300, TABLE, minimum=16)
    with pytest.raises(CannotCache, match="5000 tokens"):
        check_cacheable("vendor.big-v1:0", 1024, TABLE, minimum=5000)


def test_a_text_has_at_least_a_token_for_every_word_and_every_run_of_punctuation() -> None:
    assert least_tokens("Say so, like [S1]: it is.") == 10  # Say so , like [ S1 ]: it is .
    assert least_tokens(" \n") == 0
