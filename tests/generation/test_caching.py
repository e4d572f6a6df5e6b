"""A model that would silently not cache is refused before the first call."""

import pytest

from domain.errors import CannotCache
from generation.caching import check_cacheable

TABLE = {"vendor.big": 1024, "vendor.big-5": 4096}


@pytest.mark.parametrize(
    "model_id", ["vendor.big-v1:0", "eu.vendor.big-v1:0", "arn:aws:bedrock:::x/us.vendor.big-v1:0"]
)
def test_a_prefix_of_the_minimum_is_fine_under_every_name_of_the_model(model_id: str) -> None:
    check_cacheable(model_id, 1024, TABLE)


def test_a_prefix_below_the_minimum_is_refused_with_both_numbers_and_the_way_out() -> None:
    with pytest.raises(CannotCache, match=r"1024 tokens.*about 300.*allow_uncached: true"):
        check_cacheable("vendor.big-v1:0", 300, TABLE)


def test_the_longest_name_decides() -> None:
    with pytest.raises(CannotCache, match="4096"):
        check_cacheable("vendor.big-5-v1:0", 2000, TABLE)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(CannotCache, match=r"'other.model'.*allow_uncached: true"):
        check_cacheable("other.model", 100_000, TABLE)
