"""ExtractiveGenerator: what it quotes, how it cites, and when it says that the sources do not answer."""

import pytest

from domain.prompt import SYSTEM, PromptPlan
from domain.types import Draft, Evidence, StopReason
from generation.extractive import ExtractiveGenerator
from tests.generation.evidence import assistant, evidence, user

P3 = "The pump P3 needs ISO 46 oil. It was fitted on 3 May 2024 by Ada Holm. The limit is 40 bar."
P4 = "The pump P4 needs ISO 68 oil. It was fitted in 2021."


def ask(question: str, *sources: Evidence) -> tuple[str, StopReason]:
    pieces, stop = ExtractiveGenerator().answer(question, sources)
    return "".join(pieces), stop


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What oil does pump P3 need?", "The pump P3 needs ISO 46 oil [S1]."),
        ("What oil does pump P4 need?", "The pump P4 needs ISO 68 oil [S2]."),
        ("When was pump P4 fitted?", "It was fitted in 2021 [S2]."),
        ("Who fitted pump P3?", "It was fitted on 3 May 2024 by Ada Holm [S1]."),
        (
            "Do pumps P3 and P4 need the same oil?",
            "The pump P3 needs ISO 46 oil [S1]. The pump P4 needs ISO 68 oil [S2].",
        ),
    ],
)
def test_the_sentence_that_answers_is_quoted_with_one_marker(question: str, answer: str) -> None:
    assert ask(question, *evidence(P3, P4)) == (answer, StopReason.END)


def test_a_hop_is_followed_from_one_source_to_the_next() -> None:
    sources = evidence(
        "Zeta is run by Bo Ek.", "Pump P3 was made by Northwind Robotics.", "Northwind Robotics is run by Ada Holm."
    )
    assert ask("Who runs the firm that made pump P3?", *sources) == (
        "Pump P3 was made by Northwind Robotics [S2]. Northwind Robotics is run by Ada Holm [S3].",
        StopReason.END,
    )


@pytest.mark.parametrize(
    ("question", "unsaid"),
    [
        ("What oil does pump P9 need?", "P9"),  # another subject
        ("What colour is pump P3?", "colour"),  # the subject, but nothing of what is asked
        ("Who is the mayor of Gdansk?", "Gdansk"),
        ("What oil did pump P4 need in 1999?", "1999"),  # another time
        ("火星在哪里？", "火星在"),  # whole runs, not pairs of characters
        ("x" * 3000, "x" * 60 + "\u2026"),  # cut short
    ],
)
def test_what_the_sources_do_not_cover_is_said_in_one_sentence_that_names_it(question: str, unsaid: str) -> None:
    text, stop = ask(question, *evidence(P3, "In 2021 the pump P4 needed ISO 68 oil."))
    assert (stop, text) == (StopReason.NOT_COVERED, f"The sources do not answer this: they say nothing about {unsaid}.")


def test_of_two_subjects_the_one_that_is_covered_is_answered_and_the_other_named() -> None:
    assert ask("Do pumps P3 and P9 need the same oil?", *evidence(P3, P4)) == (
        "The pump P3 needs ISO 46 oil [S1]. The sources do not say this of P9.",
        StopReason.END,
    )


def test_of_two_subjects_a_sentence_that_does_not_name_its_own_gets_the_name_in_front() -> None:
    first = evidence("The company was founded in 1912.", title="Saltmarsh Energy")[0]
    second = evidence("", "The company was founded in 2006.", title="Kelpline Software")[1]
    text, stop = ask("Which was founded earlier, Saltmarsh Energy or Kelpline Software?", first, second)
    assert stop is StopReason.END
    assert text == (
        "Saltmarsh Energy: The company was founded in 1912 [S1]. "
        "Kelpline Software: The company was founded in 2006 [S2]."
    )


def test_a_sentence_about_another_year_does_not_answer() -> None:
    sources = evidence("Northwind had 20 staff in 2022.", "Northwind had 30 staff in 2023.")
    assert ask("How many staff did Northwind have in 2023?", *sources)[0] == "Northwind had 30 staff in 2023 [S2]."
    assert ask("How many staff did Northwind have in 2019?", *sources)[1] is StopReason.NOT_COVERED


def test_a_sentence_that_only_tells_two_things_apart_does_not_answer() -> None:
    sources = evidence("Do not confuse P3 with P4: their limits differ.", "P3 has a limit of 40 bar.")
    assert ask("What limit does P3 have?", *sources)[0] == "P3 has a limit of 40 bar [S2]."


def test_no_evidence_and_no_question_words_are_not_covered() -> None:
    assert ask("What oil does pump P3 need?")[1] is StopReason.NOT_COVERED
    assert ask("???", *evidence(P3))[1] is StopReason.NOT_COVERED
    assert ask("what is it?", *evidence(" ", "... ---"))[1] is StopReason.NOT_COVERED


def test_title_and_heading_may_name_the_subject() -> None:
    sources = evidence("It needs ISO 46 oil.", title="Pump P3", heading="Care > Oil")
    assert ask("What oil does pump P3 need?", *sources) == ("It needs ISO 46 oil [S1].", StopReason.END)


def test_a_related_word_answers() -> None:
    assert ask("How heavy is the QL-21?", *evidence("The QL-21 comes to 505 kilograms."))[1] is StopReason.END


def test_now_takes_the_newer_of_two_sources() -> None:
    old, new = evidence("The price of P3 is 40 crowns.", published="2022-01-01") + evidence(
        "The price of P3 is 50 crowns.", published="2024-01-01"
    )
    numbered = (old, Evidence("S2", new.chunk, 1, 10))
    assert ask("What is the current price of P3?", *numbered)[0] == "The price of P3 is 50 crowns [S2]."
    assert ask("What was the original price of P3?", *numbered)[0] == "The price of P3 is 40 crowns [S1]."


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("P3 needs oil [S7] daily.", "P3 needs oil daily [S1]."),
        ("P3 needs oil [S2](http://127.0.0.1:9/x).", "P3 needs oil [S1]."),
        ("P3 needs oil 【s2】［S1, S3］[S1-S3].", "P3 needs oil [S1]."),
        ("P3 needs `oil.", "P3 needs oil [S1]."),  # an open code span would swallow the marker
        ("- P3 needs oil", "P3 needs oil [S1]."),
        ("“P3 needs oil.”", "“P3 needs oil.” [S1]."),
        ("P3 needs oil !", "P3 needs oil [S1]!"),
    ],
)
def test_a_source_can_neither_forge_nor_hide_a_marker(source: str, claim: str) -> None:
    assert ask("What does P3 need? Oil?", *evidence(source))[0] == claim


def test_chinese_is_quoted_with_its_own_full_stop() -> None:
    text, _ = ask("主阀门什么时候关闭？", *evidence("更换冷却液之前请先关闭主阀门。每周五检查皮带的松紧。"))
    assert text == "更换冷却液之前请先关闭主阀门[S1]。"


async def test_a_follow_up_is_read_with_its_history() -> None:
    history = (user("What is the limit of pump P3?"), assistant("40 bar [S1]."))
    plan = PromptPlan(SYSTEM, evidence(P4, P3), history, "and its oil?")
    *_, draft = [piece async for piece in ExtractiveGenerator().generate(plan)]
    assert isinstance(draft, Draft)
    assert draft.text == "The pump P3 needs ISO 46 oil [S2]."


def test_never_more_sentences_than_allowed_and_every_one_is_from_its_source() -> None:
    sources = evidence(*(f"Pump P{i} needs oil of grade {i}0." for i in range(1, 8)))
    question = "What oil do P1, P2, P3, P4, P5 and P6 need?"
    for most in (1, 2, 3):
        pieces, _ = ExtractiveGenerator(max_sentences=most).answer(question, sources)
        quoted = [piece for piece in pieces if "[S" in piece]
        assert 0 < len(quoted) <= most
        for i, piece in enumerate(quoted, 1):
            assert piece.strip() == f"Pump P{i} needs oil of grade {i}0 [S{i}]."


@pytest.mark.parametrize("source", ["x" * 50_000, "P3 " * 10_000, "P3 needs oil. " * 2_000, "\u202eP3 oil\u202c \x00"])
def test_odd_and_huge_sources_are_survived(source: str) -> None:
    text, _ = ask("What oil does P3 need?", *evidence(source))
    assert len(text) < 3_000


@pytest.mark.parametrize("arguments", [{"max_sentences": 0}, {"min_coverage": 2}])
def test_senseless_numbers_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="max_sentences >= 1"):
        ExtractiveGenerator(**arguments)


def nearest(question: str, *sources: Evidence) -> tuple[str, StopReason]:
    pieces, stop = ExtractiveGenerator(nearest=True).answer(question, sources)
    return "".join(pieces), stop


def test_the_nearest_sentence_is_quoted_where_somebody_else_decides_what_is_covered() -> None:
    source = evidence("Boats pass at noon. The sluice at Norhaven was poured in 1961. Gulls nest there.")
    question = "Which cement holds Norhaven together?"
    assert ask(question, *source)[1] is StopReason.NOT_COVERED
    assert nearest(question, *source) == ("The sluice at Norhaven was poured in 1961 [S1].", StopReason.END)


def test_nothing_is_quoted_of_a_thing_that_no_source_names() -> None:
    assert nearest("What oil does pump Q9 need?", *evidence(P3, P4))[1] is StopReason.NOT_COVERED


def test_what_answers_by_the_rules_reads_the_same_with_and_without_nearest() -> None:
    for question in ("What oil does pump P3 need?", "When was pump P4 fitted?", "Who fitted pump P3?"):
        assert nearest(question, *evidence(P3, P4)) == ask(question, *evidence(P3, P4))


def test_of_a_longer_chain_the_first_step_is_quoted() -> None:
    source = evidence("Alarm E7 lasted nine minutes. Alarm E7 was raised at Skarvik Lock. Nobody was hurt by E7.")
    said, stop = nearest("How deep is the water at the site hit by E7?", *source)
    assert (said, stop) == ("Alarm E7 was raised at Skarvik Lock [S1].", StopReason.END)
