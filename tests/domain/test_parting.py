"""Questions taken apart by rules; what no rule knows stays whole."""

import pytest

from domain.parting import Dates, dates_in, ids_in, parts_of


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Which is older, the Tern or the Gannet?", ("Which is older, the Tern", "Which is older, the Gannet")),
        ("What is the difference between pump P3 and pump P4?", ("What is the pump P3", "What is the pump P4")),
        ("Compare X100 with Y200.", ("X100", "Y200")),
        ("Is Alder Works bigger than Birch Yard?", ("Is Alder Works", "Is Birch Yard")),
        (
            "Did Northwind or Alder earn more in 2024? And who leads that one?",
            ("Did Northwind earn more in 2024", "Did Alder earn more in 2024", "And who leads that one?"),
        ),
        (
            "Which came first: the opening of Skarn Head or the fire at Low Quay?",
            ("Which came first: the opening of Skarn Head", "Which came first: the fire at Low Quay"),
        ),
    ],
)
def test_what_is_compared_is_asked_about_one_by_one(question: str, parts: tuple[str, ...]) -> None:
    assert parts_of(question) == parts


@pytest.mark.parametrize(
    "question", ["Who runs Northwind?", "salt and pepper?", "", "???", "Alder or Alder?", "x" * 4000]
)
def test_what_is_one_question_stays_whole(question: str) -> None:
    assert parts_of(question) == ()


@pytest.mark.parametrize(
    ("question", "dates"),
    [
        ("Who led it in March 2024?", Dates("", "2024-03-31")),
        ("reports after 2023", Dates("2023-01-01", "")),
        ("between 2021 and 2022-03", Dates("2021-01-01", "2022-03-31")),
        ("before May 2020", Dates("", "2020-05-31")),
        ("as of 2024-05-06", Dates("", "2024-05-06")),
        ("incidents since Sep 2022", Dates("2022-09-01", "")),
        ("What is 2024?", Dates()),
        ("in room 2024b", Dates()),
    ],
)
def test_the_time_that_is_named(question: str, dates: Dates) -> None:
    assert dates_in(question) == dates


def test_both_ends_belong_to_a_time_and_what_has_no_date_is_in_none() -> None:
    march = Dates("2024-03-01", "2024-03-31")
    assert [day in march for day in ("2024-02-29", "2024-03-01", "2024-03-31T08:00", "2024-04-01", "")] == [
        False, True, True, False, False,
    ]  # fmt: skip


def test_chunk_ids_are_found_in_their_order_and_other_words_are_not() -> None:
    assert ids_in("what say tide#0-aa1f and (pump.md#12-ff09)? tide#0-aa1f") == ("tide#0-aa1f", "pump.md#12-ff09")
    assert ids_in("issue #12 and C# and a#b") == ()
