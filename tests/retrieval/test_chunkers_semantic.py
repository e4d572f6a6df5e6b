"""Cutting where the subject changes: by the vectors of sentences, within the size, and never under a heading."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from domain.errors import ConfigError
from domain.packing import estimate_tokens
from domain.types import Document
from retrieval.chunkers_semantic import semantic
from retrieval.embedding import HashingEmbedder
from retrieval.pieces import Shape

PUMP = "The pump moves cold water uphill."  # 33 characters and a blank: 9 tokens with it
LOAN = "The bank lends money to farmers."


class Subjects:
    """One axis for pumps, one for banks, one for the rest; counts what it was asked."""

    tag, runtime, dimensions = "subjects-1", "", 3

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        return np.eye(3, dtype=np.float32)[[0 if "pump" in t else 1 if "bank" in t else 2 for t in texts]]

    def embed_queries(self, texts: Sequence[str]) -> Any:
        return self.embed_documents(texts)


def cut(text: str, size: int = 200, overlap: int = 0, encoder: Any = None) -> list[str]:
    document = Document("d", "", text, "", "", "", frozenset(), "", "")
    return [piece.text for piece in semantic(document, Shape(size, overlap, encoder or Subjects()))]


def test_a_text_is_cut_where_its_subject_changes_although_it_would_fit() -> None:
    pumps, loans = " ".join([PUMP] * 8), " ".join([LOAN] * 8)  # 68 and 66 tokens, above a quarter of 200 each
    assert cut(f"{pumps} {loans}") == [pumps, loans]


def test_a_text_of_one_subject_stays_together_while_it_fits() -> None:
    text = " ".join([PUMP] * 16)
    assert cut(text) == [text]


def test_a_text_above_the_size_is_cut_at_its_widest_gap_and_the_earlier_of_equals() -> None:
    pumps, loans = " ".join([PUMP] * 5), " ".join([LOAN] * 3)  # 43 and 25 tokens
    assert cut(f"{pumps} {loans}", size=60) == [pumps, loans]
    parts = cut(" ".join([PUMP] * 8), size=60)  # 68 tokens, every gap alike: the first that leaves a quarter of 60
    assert [part.count("pump") for part in parts] == [2, 6]


def test_what_is_small_costs_no_vectors() -> None:
    encoder = Subjects()
    assert cut(f"{PUMP} {LOAN}", encoder=encoder) == [f"{PUMP} {LOAN}"]  # 17 tokens: no two parts of 50 are in it
    assert encoder.texts == []


def test_every_sentence_is_embedded_once() -> None:
    encoder = Subjects()
    cut(" ".join(f"Pump {i} moves water." for i in range(600)), encoder=encoder)
    assert encoder.texts == [f"Pump {i} moves water." for i in range(600)]


def test_a_heading_stays_with_the_text_below_it() -> None:
    body = " ".join([LOAN] * 7)
    text = f"{' '.join([PUMP] * 7)}\n\n# Other matters\n\n{body}"
    assert cut(text) == [" ".join([PUMP] * 7), f"# Other matters\n\n{body}"]


def test_overlap_repeats_whole_sentences_and_no_more_than_fit() -> None:
    pumps, loans = " ".join([PUMP] * 8), " ".join([LOAN] * 8)
    assert cut(f"{pumps} {loans}", overlap=20) == [pumps, f"{PUMP} {PUMP} {loans}"]
    assert cut(f"{pumps} {loans}", overlap=8) == [pumps, loans]


def test_one_sentence_without_end_is_cut_to_size() -> None:
    parts = cut("water " * 2000, size=40, encoder=HashingEmbedder(16))
    assert max(map(estimate_tokens, parts)) <= 40
    assert re.sub(r"\s", "", "".join(parts)) == "water" * 2000


def test_without_an_encoder_nothing_is_cut() -> None:
    with pytest.raises(ConfigError, match=r"'semantic'.*no encoder"):
        semantic(Document("d", "", PUMP, "", "", "", frozenset(), "", ""), Shape(40))
