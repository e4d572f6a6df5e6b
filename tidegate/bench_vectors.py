"""Made-up vectors for benchmarks of searching: no model is loaded, and an index of neighbours has something to find."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

DIMENSIONS, WORDS = 384, 1 << 14  # of MiniLM; distinct vectors of words


class WordSums:
    """Made-up vectors: every word has a random direction, a text is the sum of its words', unit length.

    Texts with words in common are near each other, so an index of neighbours has something to find.
    """

    tag = "bench-word-sums-1"
    runtime = ""
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self._words = np.random.default_rng(7).standard_normal((WORDS, DIMENSIONS), np.float32)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32 [len(texts), 384], unit rows."""
        rows = np.empty((len(texts), DIMENSIONS), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._words[[crc32(word.encode()) % WORDS for word in text.split() or [""]]].sum(axis=0)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `embed_documents`."""
        return self.embed_documents(texts)
