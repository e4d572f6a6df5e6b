"""What is a name, and whether a text has it."""

import pytest

from domain.names import missing, names


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Today the yard belongs to Nordhavn Salvage.", ("Nordhavn Salvage",)),
        ("Ines Treloar signed on Monday.", ("Ines Treloar", "Monday")),
        ("Treloar signed it.", ("Treloar",)),
        ("The pump was serviced. However, nobody signed.", ()),
        ("Upkeep is due.", ("Upkeep",)),  # no common ending: a lone first word may be a name
        ("Inspection is due.", ()),
        ('He said: "The oil is old."', ()),
        ("It was managed by 한 바다 last year.", ("한 바다",)),
        ("限界は四十です。", ()),
        ("Die Pumpe gehört der Werft.", ()),  # all nouns of German have capitals
        ("P3 weighs 40 kg and I know it.", ()),  # an identifier is not a name
        ("The OECD and the U.N. agreed.", ("OECD",)),
    ],
)
def test_names_are_told_by_their_capitals(sentence: str, found: tuple[str, ...]) -> None:
    assert names(sentence) == found


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Signed by Ines Treloar.", "INES TRELOAR signed it."),
        ("It is Treloar's pump.", "The pump of Ines Treloar."),
        ("It is the pump of President Treloar.", "President Ines M. Treloar owns it."),
        ("The Italians came from Italy.", "An Italian of Italy came."),
        ("So said the OPEC.", "The Organization of the Petroleum Exporting Countries said so."),
        ("It is in Łódź near Møn.", "Łódź, not far from Møn."),
        ("It is run by 한 바다 now.", "운영자: 한 바다."),
    ],
)
def test_a_text_has_a_name_in_other_forms_too(sentence: str, text: str) -> None:
    assert missing(sentence, [text]) == ()


@pytest.mark.parametrize(
    ("sentence", "text", "lost"),
    [
        ("Signed by Ada Treloar.", "Ines Treloar signed it.", "Ada Treloar"),
        # Both words are there, but in two other names.
        ("It stands at Heron Lock.", "Heron Reach, which the council opened, is far from Nether Lock.", "Heron Lock"),
        ("So said the OECD.", "The World Bank said so.", "OECD"),
        ("It is run by 김 바다 now.", "운영자: 한 바다.", "김 바다"),
    ],
)
def test_a_name_that_a_text_does_not_have_is_missing(sentence: str, text: str, lost: str) -> None:
    assert missing(sentence, [text]) == (lost,)
