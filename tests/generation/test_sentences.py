"""Passages as quotable sentences."""

import pytest

from generation.sentences import MAX_CHARS, Sentence, sentences


def texts(passage: str) -> list[str]:
    return [sentence.text for sentence in sentences(passage)]


def test_hard_wraps_are_undone_and_abbreviations_end_nothing() -> None:
    assert texts("Pump P3 needs\nISO 46 oil. Dr. Holm checked it in the U.S. office.") == [
        "Pump P3 needs ISO 46 oil.",
        "Dr. Holm checked it in the U.S. office.",
    ]


def test_headings_say_what_follows_is_about_and_are_no_answers_themselves() -> None:
    assert sentences("# Pumps\n\n## Oil\n\nUse ISO 46.\n") == (Sentence("Use ISO 46.", "Oil"),)


def test_a_question_is_what_its_answer_is_about() -> None:
    assert sentences("Q: What is the limit?\nA: It is 40 bar.") == (Sentence("It is 40 bar.", "What is the limit?"),)


def test_list_items_stand_alone_without_their_bullets() -> None:
    assert texts("- Close the\n  valve.\n2) Wait.\n* Open it") == ["Close the valve.", "Wait.", "Open it"]


def test_a_table_row_repeats_its_column_names() -> None:
    assert texts("| Pump | Oil |\n|---|---|\n| P3 | ISO 46 |\n| P4 | |") == ["Pump: P3; Oil: ISO 46", "Pump: P4"]


def test_a_speaker_is_what_a_sentence_is_about_but_a_value_keeps_its_name() -> None:
    assert sentences("**Ada Holm:** We open the quay in May.") == (Sentence("We open the quay in May.", "Ada Holm"),)
    assert texts("Oil: ISO 46") == ["Oil: ISO 46"]


def test_a_dateline_is_no_part_of_the_first_sentence() -> None:
    assert sentences("KÖLN, 3 May 2024 - The quay was opened today.") == (
        Sentence("The quay was opened today.", "KÖLN, 3 May 2024"),
    )


def test_stops_of_other_scripts_end_sentences() -> None:
    assert texts("先关闭主阀门。然后排水！最后加油") == ["先关闭主阀门。", "然后排水！", "最后加油"]
    assert texts("الصمام مغلق۔ المضخة تعمل۔") == ["الصمام مغلق۔", "المضخة تعمل۔"]


@pytest.mark.parametrize("passage", ["", "  \n\t", "... --- !!! ###", "```\n```", "|||\n|-|-|"])
def test_nothing_quotable_gives_no_sentences(passage: str) -> None:
    assert sentences(passage) == ()


@pytest.mark.parametrize(
    "passage",
    ["x" * 50_000, "word " * 10_000, "A. " * 5_000, "A.A-" * 5_000, "(" * 5_000, "**a" * 5_000, "字" * 20_000],
)
def test_pieces_stay_short_and_lose_no_letter_whatever_the_passage(passage: str) -> None:
    pieces = texts(passage)
    assert all(0 < len(piece) <= MAX_CHARS for piece in pieces)
    assert sum(map(str.isalnum, "".join(pieces))) == sum(map(str.isalnum, passage))
