"""Texts of a caller to the vectors that a version is searched with, a few at a time, as bytes that travel.

The encoder is the one of the version that answers, so its vectors are comparable with those of that version. How many
tokens it read, only an encoder with a tokenizer of its own can say.
"""

from collections.abc import Sequence

import numpy as np

from domain.ports import CountsTokens, Embedder
from domain.types import TextSide
from retrieval.embedding import CachedQueries

AT_A_TIME = 16  # searches wait for the same thread: a long list must let them through


def pieces(texts: Sequence[str]) -> list[Sequence[str]]:
    """The texts in lists that are short enough to be encoded between two searches."""
    return [texts[start : start + AT_A_TIME] for start in range(0, len(texts), AT_A_TIME)]


def encoded(embedder: Embedder, texts: Sequence[str], side: TextSide) -> tuple[tuple[bytes, ...], int | None]:
    """A row of little-endian float32 a text, and the tokens that were read; None where nobody counts them."""
    plain = embedder.embedder if isinstance(embedder, CachedQueries) else embedder  # not worth remembering
    vectors = plain.embed_queries(texts) if side is TextSide.QUERY else plain.embed_documents(texts)
    rows = np.ascontiguousarray(vectors, "<f4")  # [n_texts, dimensions]
    tokens = plain.count_tokens(texts) if isinstance(plain, CountsTokens) else None
    return tuple(row.tobytes() for row in rows), tokens
