"""What a passage supports, and that no planted change slips through: on sentences of the sample library."""

import calendar
import re
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from domain.names import names
from domain.specifics import Identifier, stated, states
from domain.support import pieces, supports, unstated
from eval.factgraph import Library, generate

PASSAGE = """# The VX-33 gate actuator

The actuator weighs 332 kilograms and was first shipped on 28 November 2020.
It replaces the DS-7, which weighed 410 kilograms.

- Power: 383 kilowatts
- Oil: 12 litres, changed every
  4 months
"""


@pytest.mark.parametrize(
    "claim",
    [
        "The actuator weighs 332 kilograms and was first shipped on 28 November 2020.",
        "The actuator weighs 332 kg.",
        "The VX-33 actuator weighs 332 kg.",  # the heading names it
        "It was first shipped in November 2020.",
        "Its power is 383 kilowatts.",
        "The oil is changed every four months.",  # across a wrapped line
        "The actuator, of 332 kilograms, replaces one that weighed 410 kilograms.",  # from two sentences
    ],
)
def test_what_a_passage_says_it_supports(claim: str) -> None:
    assert supports([PASSAGE], claim)


@pytest.mark.parametrize(
    "claim",
    [
        "The actuator weighs 323 kilograms and was first shipped on 28 November 2020.",
        "The actuator weighs 332 tonnes.",
        "The actuator was first shipped on 28 December 2020.",
        "The VX-35 actuator weighs 332 kg.",
        "The actuator weighs 410 kilograms and was first shipped on 28 November 2020.",  # the other one's weight
        "Its power is 12 kilowatts.",  # the oil's number
        "Harbour dues are paid at the lock.",
        "",
        "Yes.",
    ],
)
def test_what_it_does_not_say_it_does_not_support(claim: str) -> None:
    assert not supports([PASSAGE], claim)


def test_without_a_passage_nothing_is_supported() -> None:
    assert not supports([], "The actuator weighs 332 kilograms.")
    assert not supports([""], "The actuator weighs 332 kilograms.")


def test_a_bare_value_is_looked_for_in_the_whole_passage() -> None:
    assert supports([PASSAGE], "383.")
    assert not supports([PASSAGE], "384.")


# ---------------------------------------------------------------------------------------------- planted changes


@pytest.fixture(scope="module")
def library() -> Library:
    return generate(seed=3, documents=100, questions=10)


def quoted(library: Library) -> Iterator[tuple[str, str]]:
    """Every sentence that tells a fact, with its whole document as the passage."""
    texts = {document.doc_id: f"{document.title}\n\n{document.text}" for document in library.documents}
    for anchor in library.told.values():
        yield texts[anchor.doc_id], anchor.text


def changed(before: str, after: str) -> bool:
    """The change states something that the sentence did not: 07 and 7, or two numbers in turn, are no change."""
    return not all(states(stated(before), specific) for specific in stated(after).specifics)


def test_every_sentence_of_the_library_is_supported_by_its_document(library: Library) -> None:
    unsupported = [sentence for passage, sentence in quoted(library) if not supports([passage], sentence)]
    assert unsupported == []


def test_a_changed_digit_is_always_seen(library: Library) -> None:
    random, missed, planted = Random(1), list[str](), 0
    for passage, sentence in quoted(library):
        for place in [place for place, char in enumerate(sentence) if char.isdecimal()]:
            digit = random.choice([d for d in "0123456789" if d != sentence[place]])
            wrong = sentence[:place] + digit + sentence[place + 1 :]
            if changed(sentence, wrong):
                planted += 1
                missed += [wrong] if supports([passage], wrong) else []
    assert planted > 1000
    assert missed == []


def test_a_changed_month_is_always_seen(library: Library) -> None:
    months = list(calendar.month_name)[1:]
    planted = 0
    for passage, sentence in quoted(library):
        for before, after in zip(months, months[1:] + months[:1], strict=True):
            if before in sentence:
                planted += 1
                assert not supports([passage], sentence.replace(before, after)), sentence
    assert planted > 30


def test_an_identifier_put_in_place_of_another_is_always_seen(library: Library) -> None:
    """Letters changed, and whole identifiers of the same document exchanged."""
    planted = 0
    for passage, sentence in quoted(library):
        words = sentence.split(" ")
        others = sorted({word for word in passage.split() if word.isascii() and is_identifier(word)} - set(words))
        for place, word in enumerate(words):
            if not word.isascii() or not is_identifier(word):
                continue
            for wrong in [*others[:3], "Q" + word[1:] if word[0] != "Q" else "Z" + word[1:]]:
                planted += 1
                claim = " ".join([*words[:place], wrong, *words[place + 1 :]])
                assert not supports([passage], claim) or not changed(sentence, claim), claim
    assert planted > 100


def is_identifier(word: str) -> bool:
    found = stated(word).specifics
    return len(found) == 1 and isinstance(found[0], Identifier)


# ---------------------------------------------------------------------------------------------- at serve time


def swapped(library: Library) -> Iterator[tuple[str, str, str]]:
    """Every told sentence with a digit, a date or a name exchanged: the kind, its document, the sentence."""
    random, people = Random(2), sorted({fact.value for fact in library.told if fact.relation in ("chief", "manager")})
    firms = sorted({w.group() for d in library.documents for w in re.finditer(r"[A-Z][a-z]+ (?:Group|Trust)", d.text)})
    months = list(calendar.month_name)[1:]
    for passage, sentence in quoted(library):
        for place in [place for place, char in enumerate(sentence) if char.isdecimal()]:
            digit = random.choice([d for d in "0123456789" if d != sentence[place]])
            yield "digit", passage, sentence[:place] + digit + sentence[place + 1 :]
        for before, after in zip(months, months[1:] + months[:1], strict=True):
            if before in sentence:
                yield "date", passage, sentence.replace(before, after)
        for name in [*people, *firms]:
            strangers = [other for other in [*people, *firms] if other not in passage]
            if name in sentence and strangers:
                yield "name", passage, sentence.replace(name, random.choice(strangers))


@pytest.mark.slow
def test_99_percent_of_swaps_are_caught_and_1_percent_of_what_is_true_is_flagged_at_most(
    library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    truths = {sentence: passage for passage, sentence in quoted(library)}
    alarms = [sentence for sentence, passage in truths.items() if unstated([passage], sentence)]
    planted, caught = Counter[str](), Counter[str]()
    for kind, passage, claim in swapped(library):
        if kind == "name" or not all(states(stated(passage), specific) for specific in stated(claim).specifics):
            planted[kind] += 1
            caught[kind] += bool(unstated([passage], claim))
    with capsys.disabled():
        print(
            f"\nflagged {len(alarms)} of {len(truths)} true sentences; caught "
            + ", ".join(f"{caught[kind]} of {planted[kind]} {kind} swaps" for kind in planted)
        )
    assert len(alarms) <= 0.01 * len(truths)
    assert min(planted.values()) > 30
    assert all(caught[kind] >= 0.99 * planted[kind] for kind in planted)


def test_most_names_exchanged_for_others_of_their_document_are_caught(
    library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    random, planted, caught = Random(5), 0, 0
    for passage, sentence in quoted(library):
        everybody = sorted({name for piece in pieces(passage) for name in names(piece)})
        for name in names(sentence):
            length = len(name.split())
            others = [o for o in everybody if o not in sentence and name not in o and len(o.split()) == length]
            if others:
                planted += 1
                caught += bool(unstated([passage], sentence.replace(name, random.choice(others))))
    with capsys.disabled():
        print(f"\ncaught {caught} of {planted} names exchanged within one document")
    assert planted > 300
    assert caught >= 0.85 * planted


YARD = """# Repairs

Ines Treloar of Nordhavn Salvage mended the gate in March. She painted it green.
The pump was mended by Ada Roe, and Bruno Kettering signed for it.
"""


@pytest.mark.parametrize(
    ("claim", "wrong"),
    [
        ("Ada Roe of Nordhavn Salvage mended the gate in March.", ("Ada Roe",)),
        ("The pump was mended by Ines Treloar, and Bruno Kettering signed for it.", ("Ines Treloar",)),
        ("Ines Treloar mended the gate in March.", ()),
        ("Ines Treloar painted it green.", ()),  # who is meant by a pronoun
        ("Ada Roe painted it green.", ()),  # and a wrong one cannot be told from that
        ("It was Ada Roe who repaired the pump.", ()),
        ("Bruno Kettering repaired the pump.", ()),  # in other words: a rule cannot read
    ],
)
def test_a_name_in_the_place_of_another_is_named_where_a_sentence_is_copied(claim: str, wrong: tuple[str, ...]) -> None:
    assert unstated([YARD], claim) == wrong


def test_what_is_not_stated_is_named_as_the_claim_spells_it() -> None:
    claim = "On 3 March 2020 Ada Roe weighed the VX-33: three hundred kg."
    assert unstated([PASSAGE], claim) == ("3 March 2020", "three hundred kg", "Ada Roe")


@pytest.mark.parametrize(
    "claim",
    [
        "Das Gewicht beträgt 332 kg.",
        "重量は332キログラムです。",
        "332 kilos, 383 kW, 28.11.2020",
        "Since Nov. 28, 2020",
    ],
)
def test_an_answer_in_another_language_or_notation_is_held_to_its_specifics_alone(claim: str) -> None:
    assert unstated([PASSAGE], claim) == ()
