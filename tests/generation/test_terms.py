"""Terms of questions and keys of texts."""

import pytest

from generation.terms import Kind, Term, entities, keys, terms


def kinds(question: str) -> dict[str, str]:
    return {term.shown: term.kind.value for term in terms(question)}


def test_a_question_is_its_names_identifiers_numbers_and_words() -> None:
    assert kinds("When did Northwind Robotics replace pump P3's 40 filters in 2024?") == {
        "Northwind Robotics": "name",
        "replace": "word",
        "pump": "word",
        "P3": "identifier",
        "40": "number",
        "filters": "word",
        "2024": "number",
    }


@pytest.mark.parametrize(
    "identifier", ["ERR_CONN_RESET", "C++", "C#", ".NET", "AR-7", "CVE-2024-1234", "P3", "PyTorch"]
)
def test_identifiers_are_kept_whole(identifier: str) -> None:
    assert kinds(f"what does {identifier} mean?") == {identifier: "identifier"}


def test_title_case_and_capitals_name_nothing() -> None:
    assert set(kinds("What Is the Oil of Pumps").values()) == {"word"}
    assert set(kinds("WHAT OIL DO PUMPS TAKE").values()) == {"word"}


def test_a_name_needs_its_words_side_by_side() -> None:
    name = Term("Saltmarsh Energy", ("saltmarsh", "energi"), Kind.NAME)
    assert name.within(keys("Energy of the day: Saltmarsh Energy."))
    assert not name.within(keys("Saltmarsh Pumps buys Tide Energy."))


def test_titles_initials_and_legal_forms_do_not_part_a_name() -> None:
    (name,) = (term for term in terms("what did Dr Ada Holm say?") if term.entity)
    assert name.within(keys("Ada M. Holm spoke."))
    (firm,) = (term for term in terms("what does Northwind Robotics Ltd make?") if term.entity)
    assert firm.within(keys("Northwind Robotics makes pumps."))


def test_words_match_across_inflection_case_accents_and_forms_of_letters() -> None:
    assert keys("The pumps were REPLACED") >= {"pump", "replac"}
    assert keys("café") & keys("cafe\u0301") & keys("ＣＡＦＥ")
    assert "password" in keys("pass\u200bword")


def test_a_date_is_found_in_either_spelling() -> None:
    assert keys("on 3 May 2024") >= {"2024-05-03"}
    assert keys("2024-05-03") >= {"2024", "may", "3"}


def test_a_related_word_shares_an_idea_but_no_key() -> None:
    (heavy,) = terms("how heavy?")
    assert heavy.related & keys("It comes to 505 kilograms.")
    assert not heavy.within(keys("It comes to 505 kilograms."))


def test_scripts_without_spaces_are_pairs_and_question_words_are_left_out() -> None:
    found = terms("主阀门在哪里？")
    assert [term.keys for term in found] == [("主阀",), ("阀门",), ("门在",)]
    assert {term.shown for term in found} == {"主阀门在"}  # a pair alone is no word a person would know
    assert keys("先关闭主阀门") >= {"主阀", "阀门"}


def test_entities_of_a_sentence_are_what_another_may_link_to() -> None:
    assert entities("The pump P3 was made by Northwind in 1999.") == {"p3", "northwind", "1999"}
