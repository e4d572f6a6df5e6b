"""Spellings that are one number, date or identifier, and others that are not."""

import pytest

from domain.specifics import Date, Identifier, Number, stated, states


def says(passage: str, claim: str) -> bool:
    """Everything that the claim states exactly is stated by the passage."""
    specifics = stated(claim).specifics
    assert specifics, f"nothing was recognised in {claim!r}"
    return all(states(stated(passage), specific) for specific in specifics)


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("1,200 kg", "1200 kilograms"),
        ("1\u202f200 kg", "1,200kg"),  # a narrow blank between thousands
        ("1 200", "1'200"),
        ("1.200", "1,200"),  # German thousands
        ("3,5 metres", "3.5 m"),  # a decimal comma
        ("1.234,5", "1,234.5"),
        ("two million crowns", "2,000,000 crowns"),
        ("twenty-five years", "25 years"),
        ("a nine-kilogram bell", "9 kg"),
        ("5 %", "five per cent"),
        ("$5", "5 dollars"),
        ("-5 °C", "\u22125 °C"),  # a real minus sign
        ("between 5 and 10 kg", "5-10 kg"),
        ("Weight (kg): 9", "9 kg"),  # a table names its unit elsewhere
        ("9 kg", "9"),
        ("the 20th century", "20"),
        ("3 March 2024", "2024-03-03"),
        ("2024-03-03", "March 3rd, 2024"),
        ("3 Mar 2024", "on 3rd of March 2024"),
        ("03/04/2024", "3 April 2024"),
        ("3 March 2024", "March 2024"),
        ("3 March 2024", "3 March"),
        ("3 March 2024", "2024"),
        ("In 2024 they met on 3 March", "3 March 2024"),
        ("it opens in May", "in May"),
        ("VX-33's gate", "vx33"),
        ("the VX-33-based gate", "VX\u201133"),  # a hyphen that does not break
        ("ERR_CONN_RESET.", "err_conn_reset"),
        ("C++, C#", "C#"),
        ("release 6.16.2", "6.16.2"),
        ("at 14:30", "14:30"),
        ("係留場所は21か所です", "21"),  # no blanks around
    ],
)
def test_two_spellings_state_the_same(passage: str, claim: str) -> None:
    assert says(passage, claim)


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("1,200 kg", "1.2 kg"),
        ("1,200 kg", "12,00 kg"),
        ("9 kg", "9 g"),
        ("9 kilowatts", "9 megawatts"),
        ("9", "9 kg"),  # of what, nobody says
        ("$5", "5 euros"),
        ("5 million", "5 thousand"),
        ("-5 °C", "5 °C"),
        ("120", "12"),
        ("3.14", "3"),
        ("3 March 2024", "4 March 2024"),
        ("3 March 2024", "3 May 2024"),
        ("3 March 2024", "3 March 2023"),
        ("March 2024", "3 March 2024"),
        ("VX-33", "VX-35"),
        ("VX-33", "VX-3"),
        ("VX-33", "AX-33"),
        ("VX-33/B", "VX-33/C"),
        ("ERR_CONN_RESET", "ERR_CONN_REFUSED"),
        ("C++", "C#"),
        ("6.16.2", "6.16"),
        ("CVE-2024-1234", "CVE-2024-4321"),
        ("CVE-2024-1234", "2024"),
        ("at 14:30", "14:03"),
        ("係留場所は21か所です", "27"),
    ],
)
def test_something_else_is_stated(passage: str, claim: str) -> None:
    assert not says(passage, claim)


def test_a_text_states_its_specifics_in_order_and_its_other_words_as_keys() -> None:
    found = stated("The AR-7 gate, opened on 3 March 2024, weighs 9 kg.")
    assert [type(specific) for specific in found.specifics] == [Identifier, Date, Number]
    assert found.words == {"gate", "opene", "weigh"}, "five letters, no final s, no common word"


def test_words_that_only_look_exact_are_words() -> None:
    for text in ("one of them", "well-known and/or e.g. so-called", "He may march on.", "no units: kg, metres"):
        assert stated(text).specifics == (), text


def test_unspaced_scripts_are_compared_by_pairs_of_characters() -> None:
    assert stated("主阀门").words == {"主阀", "阀门"}
