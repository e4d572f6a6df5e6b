"""Two answers side by side: no word lost, what differs marked, and nothing a reader may not see."""

import random

import pytest

from domain.naming import Naming
from domain.types import Scope
from eval.apart import MOST_WORDS, apart, excerpt, same_answer, words_apart
from eval.observed import Observed
from tests.eval.comparisons import BROKEN, NEW, OLD, question
from tests.eval.replies import answer, passage, quoting

NOBODY = Naming(())
PUBLIC = Scope("harbour", frozenset({"public"}))


def own(pieces: object) -> list[str]:
    return [piece.text for piece in pieces if piece.own]  # type: ignore[attr-defined]  # pieces


def test_only_the_words_that_differ_are_marked() -> None:
    before, after = words_apart("The gate closes at six metres [S1].", "The sea gate closes at nine metres [S12].")
    assert own(before) == ["six", "[S1]"]
    assert own(after) == [" sea", "nine", "[S12]"]


def test_neighbouring_words_that_differ_are_one_mark() -> None:
    before, after = words_apart("It closes at six metres.", "It closes by hand twice metres.")
    assert own(before) == ["at six"]
    assert own(after) == ["by hand twice"]


def test_every_ideograph_is_a_word() -> None:
    before, after = words_apart("潮汐在九点", "潮汐在十点")
    assert (own(before), own(after)) == (["九"], ["十"])


def test_the_pieces_of_any_two_texts_are_these_texts() -> None:
    rng = random.Random(5)
    for _ in range(200):
        texts = [
            "".join(rng.choices(["gate ", "[S1]", "\n", "潮", "12.5", "é", "-", "\ud83d"], k=12)) for _ in range(2)
        ]
        assert ["".join(piece.text for piece in side) for side in words_apart(*texts)] == texts


def test_a_word_that_is_new_in_a_long_text_is_marked_alone() -> None:
    words = [f"w{number % 397}" for number in range(2_000)]
    before, after = words_apart(" ".join(words), " ".join([*words[:900], "new", *words[900:]]))
    assert (own(before), own(after)) == ([], ["new "])


def test_long_texts_that_repeat_themselves_are_still_these_texts() -> None:
    texts = ("a b " * 900, "a a b " * 600)
    assert tuple("".join(piece.text for piece in side) for side in words_apart(*texts)) == texts


def test_texts_too_long_to_match_stay_whole_and_unmarked() -> None:
    long = "a b " * MOST_WORDS
    before, after = words_apart(long, "a")
    assert ([p.text for p in before], own(before), own(after)) == ([long], [], [])


def test_both_answers_stand_there_with_status_and_citations() -> None:
    found = apart(OLD, NEW, None, NOBODY)
    assert found.before.text == "The gate closes at six metres [S1]."
    assert [(c.marker, c.title, c.doc_id) for c in found.after.citations] == [("S1", "Tides", "d2")]
    assert (found.before.status, found.before.grounding, found.before.failure) == ("complete", "grounded", "")
    assert found.gold == "9 kilograms"


def test_a_failure_is_told_and_is_no_empty_answer() -> None:
    found = apart(BROKEN, NEW, None, NOBODY)
    assert found.before.failure == "timeout: Nobody answered in 5 s."
    assert (found.before.pieces, found.before.status) == ((), "")
    assert apart(OLD, NEW, None, NOBODY).before.failure == ""


@pytest.mark.parametrize("reader", [Scope("quarry", frozenset({"public"})), Scope("harbour", frozenset())])
def test_text_of_a_question_is_not_shown_to_who_may_read_less_than_its_asker(reader: Scope) -> None:
    found = apart(BROKEN, NEW, reader, NOBODY)
    assert not found.visible
    assert found.before.failure == "timeout", "why it failed may quote the question"
    assert (found.query, found.gold, found.after.text, found.after.citations) == ("", "", "", ())
    assert found.question == "q3"
    assert "metres" not in repr(found)


def test_who_may_read_as_much_as_its_asker_sees_the_text() -> None:
    assert apart(OLD, NEW, PUBLIC, NOBODY).visible


def test_forbidden_terms_are_nowhere() -> None:
    term, naming = "Zanzibrand", Naming(["zanzibrand"])
    asked = question(f"q-{term}", query=f"Who is {term}?", answer=term)
    said = Observed(asked, quoting(passage(f"d-{term}", f"{term} closes the gate.", title=f"About {term}")))
    for reader in (None, PUBLIC, Scope("quarry", frozenset())):
        assert "zanzibrand" not in repr(apart(said, said, reader, naming)).lower()


def test_an_answer_that_ended_otherwise_is_not_the_same_answer() -> None:
    assert same_answer(OLD, OLD)
    assert not same_answer(OLD, NEW)
    whole, cut = (Observed(question("q3"), answer(text="So.", status=how)) for how in ("complete", "truncated"))
    assert not same_answer(whole, cut)
    assert not same_answer(BROKEN, OLD)


def test_an_excerpt_is_where_the_passage_says_what_the_answer_says() -> None:
    passage_text = "Copper was late. " * 40 + "The gate closes at six metres. " + "Nobody saw it. " * 40
    told = excerpt(passage_text, "It closes at six metres [S1].")
    assert "closes at six metres" in told
    assert told.startswith("… ")
    assert told.endswith(" …")
    assert len(told) < 300


def test_a_short_passage_is_told_whole() -> None:
    assert excerpt("The gate\n closes.", "Nothing of that.") == "The gate closes."
    assert excerpt("", "Nothing.") == ""
