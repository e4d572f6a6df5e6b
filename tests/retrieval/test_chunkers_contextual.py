"""Context lines: what is in them, that they are found by, and that they are in nothing that is quoted."""

import pytest

from domain.packing import cost
from domain.types import Chunk, Document
from retrieval.chunkers_contextual import SENTENCE_TOKENS, summed_up
from retrieval.chunking import chunks_of, indexed_text

BODY = "The pump in hall {} moves water from the lake to the tank every day without fail."


def cut(text: str, title: str = "Pumps", size: int = 40) -> list[Chunk]:
    return chunks_of(Document("pumps.md", title, text, "", "", "", frozenset(), "", ""), "contextual", size)


def test_passages_ids_and_headings_are_those_of_the_heading_chunker() -> None:
    text = "# Use\n\n" + "\n\n".join(BODY.format(i) for i in range(9)) + "\n\n# Care\n\nOil it."
    plain = chunks_of(Document("pumps.md", "Pumps", text, "", "", "", frozenset(), "", ""), "heading", 40)
    assert [(c.id, c.text, c.heading) for c in cut(text)] == [(c.id, c.text, c.heading) for c in plain]


def test_a_passage_within_a_section_is_told_by_title_headings_and_the_sentence_before_it() -> None:
    first, second = cut("# Use\n\n" + "\n\n".join(BODY.format(i) for i in range(1, 4)), size=44)  # 21 tokens each
    assert first.text.endswith(BODY.format(2))
    assert second.context == f"Pumps > Use > {BODY.format(2)}"
    assert indexed_text(second) == f"Pumps > Use > {BODY.format(2)}\n{BODY.format(3)}"


def test_the_first_passage_of_a_section_is_told_by_the_sentence_that_sums_the_document_up() -> None:
    care = "Oil the bearing of it in spring, and again before the first frost of the year."
    text = f"# Use\n\n{BODY.format(1)} {BODY.format(2)}\n\n# Care\n\n{care}"
    _, last = cut(text, size=44)
    assert (last.text, last.context) == (care, f"Pumps > Care > {BODY.format(1)}")


def test_a_sentence_that_stands_in_the_passage_is_not_said_again() -> None:
    (only,) = cut(BODY.format(1))
    assert only.context == "Pumps"


def test_a_heading_that_is_the_title_is_said_once() -> None:
    (only,) = cut(f"# Pumps\n\n## Use\n\n{BODY.format(1)}")
    assert only.context == "Pumps > Use"


def test_a_long_sentence_before_is_shortened_to_its_end() -> None:
    words = " ".join(f"w{i:03}" for i in range(80))  # 5 characters with the blank, 100 tokens
    *_, last = cut(f"{words}\n\n{BODY.format(1)} {BODY.format(2)}", size=110)
    said = last.context.removeprefix("Pumps > ")
    assert said.endswith("w079")
    assert SENTENCE_TOKENS - 2 <= cost(said) <= SENTENCE_TOKENS


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("", ""),
        ("Short.", ""),
        ("# The pump moves water from lake to tank\n\n- The pump moves water from lake to tank.", ""),
        # 'pump' and 'water' occur in three sentences, and the second has both
        (
            "Nobody knows when the old hall was built. The pump moves water to the tank. A pump needs oil every year. "
            "Cold water comes from the lake.",
            "The pump moves water to the tank.",
        ),
    ],
)
def test_the_summary_is_the_sentence_that_shares_most_with_its_document(text: str, summary: str) -> None:
    assert summed_up(text) == summary


def test_without_title_headings_or_a_sentence_there_is_no_context() -> None:
    (only,) = cut("It runs.", title="")
    assert (only.context, indexed_text(only)) == ("", "It runs.")
