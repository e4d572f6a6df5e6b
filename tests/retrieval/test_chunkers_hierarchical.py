"""Parts of passages: small, few, and together exactly the passage."""

import random
import re

import pytest

from domain.types import Document
from retrieval.chunkers_hierarchical import MOST_PARTS, parts_of
from retrieval.chunking import chunks_of
from retrieval.families import passages_of
from tests.retrieval.test_chunking import random_text

SENTENCE = "The pump in hall {} moves water from the lake to the tank."


def document(text: str) -> Document:
    return Document("pumps.md", "Pumps", text, "", "", "", frozenset(), "", "")


@pytest.mark.parametrize("size", [8, 40, 200])
def test_parts_join_up_to_their_text_and_none_is_blank(size: int) -> None:
    for seed in range(60):
        text = random_text(random.Random(seed)).strip()
        parts = parts_of(text, size)
        assert "".join(parts) == text, seed
        assert all(part.strip() for part in parts), seed
        assert len(parts) <= MOST_PARTS, seed


def test_a_part_aims_for_a_quarter_of_the_size_in_whole_sentences() -> None:
    text = " ".join(SENTENCE.format(i) for i in range(8))  # 57 characters and a blank, 14.5 tokens each
    parts = parts_of(text, 120)
    assert [part.count("pump") for part in parts] == [2, 2, 2, 2]
    assert all(part.rstrip().endswith("tank.") for part in parts)


def test_what_is_short_is_a_part_of_itself() -> None:
    assert parts_of("It runs.", 200) == ("It runs.",)


def test_passages_of_parts_are_those_of_the_heading_chunker() -> None:
    text = "# Use\n\n" + "\n\n".join(SENTENCE.format(i) for i in range(30)) + "\n\n# Care\n\nOil it once a year."
    plain = chunks_of(document(text), "heading", 60)
    parts = chunks_of(document(text), "hierarchical", 60)
    assert list(passages_of(parts)) == plain
    assert len(parts) > 2 * len(plain)


def test_a_part_is_named_by_its_passage_and_a_number_and_carries_its_headings() -> None:
    parts = chunks_of(document("# Use\n\n" + " ".join(SENTENCE.format(i) for i in range(6))), "hierarchical", 100)
    assert all(re.fullmatch(r"pumps\.md#0-[0-9a-f]{10}![0-7]", part.id) for part in parts)
    assert {part.heading for part in parts} == {"Use"}
    assert [part.id for part in parts] == sorted(part.id for part in parts)
