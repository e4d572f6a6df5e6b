"""Cutting documents: nothing lost, nothing above its size, ids that stay."""

import random
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from domain.errors import ConfigError
from domain.packing import estimate_tokens
from domain.types import Chunk, Document
from retrieval.chunking import BY_PARTS, CHUNKERS, check, chunks_of, indexed_text
from retrieval.embedding import HashingEmbedder
from retrieval.families import passages_of
from retrieval.pieces import Shape

SIZE = 40
CUTTING = sorted(set(CHUNKERS) - {"whole"})
UNDER_HEADINGS = ("heading", "contextual", "hierarchical")  # headings without text of their own move into the path
ENCODER = HashingEmbedder(32)


def document(text: str, title: str = "Pumps") -> Document:
    return Document("pumps.md", title, text, "", "", "", frozenset({"staff"}), "harbour", "h")


def passages(document: Document, chunker: str, size: int = SIZE, overlap: int = 0) -> list[Chunk]:
    """What can be cited of a document, whatever is searched."""
    found = chunks_of(document, chunker, size, overlap, ENCODER)
    return list(passages_of(found)) if chunker in BY_PARTS else found


def random_text(rng: random.Random) -> str:
    """Words of several scripts between all kinds of breaks, Markdown marks among them."""
    words = [
        "pump",
        "Dr.",
        "ERR_CONN_RESET",
        "冷却液",
        "主阀门。",
        "वाल्व",
        "น้ำหล่อเย็น",
        "e\u0301te\u0301",
        "x" * 90,
        "🙂",
        "it's",
        "שלום",
        "a\u200d\u0308b",
        "👩\u200d👩\u200d👧",
        "|",
        "x" * 2000,
    ]
    breaks = [
        " ",
        " ",
        " ",
        ". ",
        "! ",
        "\n",
        "\n\n",
        "\n\n# ",
        "\n\n## ",
        "\n```\n",
        "\n> ",
        "\n- ",
        "\t",
        "\n---\n",
        "。",
        "\r\n",
        "\r\n\r\n",
        "\u2028",
        "\x85",
        "\n~~~\n# no heading\n",
        "\n    code  ",
        "\n===\n",
        " " * 300,
    ]
    return "".join(rng.choice(words) + rng.choice(breaks) for _ in range(rng.randrange(1, 120)))


@pytest.mark.parametrize("chunker", sorted(CHUNKERS))
@pytest.mark.parametrize("overlap", [0, 15])
def test_every_word_of_a_document_is_in_some_chunk(chunker: str, overlap: int) -> None:
    for seed in range(60):
        text = random_text(random.Random(seed))
        chunks = passages(document(text), chunker, SIZE, overlap)
        kept = re.sub(r"\s", "", "".join(chunk.heading + chunk.text for chunk in chunks))
        letters = {character for character in text if not character.isspace() and character not in "#-="}
        assert letters <= set(kept), seed
        # Without overlap the chunks are the text, in its order, up to blanks and headings that moved into the path.
        if overlap == 0 and chunker not in UNDER_HEADINGS:
            assert "".join(re.sub(r"\s", "", chunk.text) for chunk in chunks) == re.sub(r"\s", "", text)


@pytest.mark.parametrize("overlap", [0, 15])
@pytest.mark.parametrize("chunker", UNDER_HEADINGS)
def test_every_numbered_word_survives_where_headings_move_into_the_path(chunker: str, overlap: int) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        words = [f"w{i}" for i in range(rng.randrange(1, 200))]
        text = "".join(
            rng.choice(["", "\n\n# ", "\n\n## ", "\n\n### ", "\n\n", "\n", "\n```\n"]) + w + " " for w in words
        )
        chunks = passages(document(text), chunker, SIZE, overlap)
        assert set(words) <= set(re.findall(r"w\d+", "\n".join(f"{c.heading}\n{c.text}" for c in chunks))), seed


@pytest.mark.parametrize("chunker", sorted(CHUNKERS))
def test_the_same_document_is_always_cut_alike(chunker: str) -> None:
    for seed in range(20):
        text = random_text(random.Random(seed))
        once, again = (chunks_of(document(text), chunker, SIZE, 10, HashingEmbedder(32)) for _ in range(2))
        assert once == again, seed


@pytest.mark.parametrize("chunker", CUTTING)
def test_every_passage_carries_the_headings_that_it_stands_under(chunker: str) -> None:
    body = " ".join(f"The pump number {i} moves water from the lake to the tank." for i in range(12))
    text = f"# Pumps\n\n## Use\n\n{body}\n\n# Valves\n\n{body}\n"
    paths = {passage.heading for passage in passages(document(text), chunker)}
    assert {"Pumps > Use", "Valves"} <= paths
    assert paths <= {"Pumps > Use", "Valves", ""}  # one that spans both stands under none


@pytest.mark.parametrize("chunker", CUTTING)
def test_no_chunk_exceeds_its_size_by_more_than_a_tenth(chunker: str) -> None:
    for seed in range(60):
        chunks = passages(document(random_text(random.Random(seed))), chunker, SIZE, 10)
        assert max(estimate_tokens(chunk.text) for chunk in chunks) <= 1.1 * SIZE + 1, seed


@pytest.mark.parametrize("chunker", sorted(CHUNKERS))
def test_chunks_are_numbered_from_zero_with_unique_ids(chunker: str) -> None:
    chunks = passages(document("One pump. " * 100), chunker, SIZE, 10)
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert re.fullmatch(r"pumps\.md#0-[0-9a-f]{10}", chunks[0].id)


@pytest.mark.parametrize("chunker", sorted(CHUNKERS))
@pytest.mark.parametrize("overlap", [0, 15])
def test_a_piece_stands_in_its_document_where_it_says(chunker: str, overlap: int) -> None:
    for seed in range(60):
        text = "\ufeff \n" + random_text(random.Random(seed))
        pieces = CHUNKERS[chunker](document(text), Shape(SIZE, overlap, ENCODER))
        assert all(text.startswith(piece.text, piece.start) for piece in pieces), seed
        # Where overlap repeats all but the blanks that a piece began with, the next one begins at the same place.
        assert all(before.start < after.start + (overlap > 0) for before, after in pairwise(pieces)), seed


@pytest.mark.parametrize("chunker", sorted(CHUNKERS))
@pytest.mark.parametrize("text", ["", " \n\t ", "\n\n\n"])
def test_blank_text_has_no_chunks(chunker: str, text: str) -> None:
    assert chunks_of(document(text), chunker, SIZE, 0, ENCODER) == []


def test_a_chunk_carries_the_access_and_the_source_of_its_document() -> None:
    (chunk,) = chunks_of(replace(document("It runs."), uri="u", source="wiki", published="2026-01-31"))
    assert (chunk.tenant, chunk.groups) == ("harbour", frozenset({"staff"}))
    assert (chunk.source.doc_id, chunk.source.title, chunk.source.uri) == ("pumps.md", "Pumps", "u")
    assert (chunk.source.source, chunk.source.published) == ("wiki", "2026-01-31")


def test_an_edit_at_the_end_keeps_the_ids_before_it() -> None:
    text = "\n\n".join(f"Paragraph {i} speaks of pump number {i} and of its valve, at length." for i in range(20))
    before = [chunk.id for chunk in chunks_of(document(text), "heading", SIZE)]
    after = [chunk.id for chunk in chunks_of(document(text + " And more."), "heading", SIZE)]
    assert before[:-2] == after[: len(before) - 2]


def test_sections_are_not_mixed_and_know_the_headings_above_them() -> None:
    body = "The pump moves water from the lake to the tank every day without fail."  # 70 characters, 18 tokens
    text = f"# Pumps\n\n## Use\n\n{body}\n\n## Care\n\n### Oil\n\n{body}\n"
    chunks = chunks_of(document(text), "heading", SIZE)
    assert [(chunk.heading, chunk.text) for chunk in chunks] == [("Pumps > Use", body), ("Pumps > Care > Oil", body)]


def test_tiny_sections_share_a_chunk_under_the_heading_they_share() -> None:
    text = "# Pumps\n\n## P1\n\nIt runs.\n\n## P2\n\nIt stands.\n"  # 18 and 20 characters: 5 tokens each, below 40 / 5
    (chunk,) = chunks_of(document(text), "heading", SIZE)
    assert (chunk.heading, chunk.text) == ("Pumps", "## P1\n\nIt runs.\n\n## P2\n\nIt stands.")


def test_a_heading_that_a_shared_chunk_does_not_name_stays_in_its_text() -> None:
    (chunk,) = chunks_of(document("# A\n\n## B\n\nTiny.\n\n# C\n\nTiny too.\n"), "heading", SIZE)
    assert (chunk.heading, chunk.text) == ("", "# A\n\n## B\n\nTiny.\n\n# C\n\nTiny too.")


def test_a_number_sign_in_code_is_no_heading() -> None:
    text = "# Setup\n\n```\n# not a heading\nrun\n```\n"
    (chunk,) = chunks_of(document(text), "heading", SIZE)
    assert chunk.heading == "Setup"
    assert "# not a heading" in chunk.text


def test_underlined_headings_count_too() -> None:
    (chunk,) = chunks_of(document("Setup\n=====\n\nRun it.\n"), "heading", SIZE)
    assert (chunk.heading, chunk.text) == ("Setup", "Run it.")


def test_headings_without_any_text_are_still_kept() -> None:
    (chunk,) = chunks_of(document("# Only a heading"), "heading", SIZE)
    assert "Only a heading" in chunk.text


def test_chinese_and_japanese_are_cut_after_their_full_stops() -> None:
    text = "更换冷却液之前请先关闭主阀门。" * 6  # 15 characters, 10 tokens each: four fit in 40
    for chunker in ("sentence", "paragraph", *UNDER_HEADINGS):
        chunks = passages(document(text), chunker)
        assert [chunk.text.count("。") for chunk in chunks] == [4, 2]
        assert all(chunk.text.endswith("。") for chunk in chunks)


def test_an_abbreviation_ends_no_sentence() -> None:
    text = "Dr. Holm repaired the pump at noon. " * 4  # 36 characters, 9 tokens each
    chunks = chunks_of(document(text), "sentence", 20)
    assert [chunk.text.count("Dr.") for chunk in chunks] == [2, 2]
    assert all(chunk.text.endswith("noon.") for chunk in chunks)


@pytest.mark.parametrize("letter", ["e\u0301", "ก\u0e31", "क\u093f"])
def test_a_letter_is_not_parted_from_the_marks_upon_it(letter: str) -> None:
    chunks = chunks_of(document(letter * 400), "paragraph", SIZE)
    assert len(chunks) > 1
    assert not any(chunk.text.startswith(letter[1]) for chunk in chunks)


def test_an_overlap_repeats_whole_sentences_and_no_more_than_asked() -> None:
    sentences = [f"Pump number {i:03} stands in the hall." for i in range(12)]  # 35 characters and a blank: 9 tokens
    chunks = chunks_of(document(" ".join(sentences)), "sentence", 36, 9)
    for before, after in pairwise(chunks):
        assert before.text.endswith(after.text[:35])


def test_whole_is_one_chunk_however_long() -> None:
    assert len(chunks_of(document("One pump. " * 1000), "whole", SIZE)) == 1


@pytest.mark.parametrize(
    ("chunker", "size", "overlap", "named"),
    [
        ("heading", 100, 100, "overlap of 100"),
        ("heading", 100, 101, "overlap of 101"),
        ("heading", 100, -1, "overlap of -1"),
        ("heading", 0, 0, "size of 0"),
        ("clever", 100, 0, "'clever' is not one of fixed"),
    ],
)
def test_impossible_settings_are_refused_by_name(chunker: str, size: int, overlap: int, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        check(chunker, size, overlap)


def test_what_is_indexed_says_title_headings_and_text_each_once() -> None:
    body = "The pump moves water from the lake to the tank every day without fail."
    (chunk,) = chunks_of(document(f"# Pumps\n\n## Use\n\n{body}"), "heading", SIZE)
    assert indexed_text(chunk) == f"Pumps\nUse\n{body}"
