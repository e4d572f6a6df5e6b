"""Embedders that need no model: signed feature hashing, and a cache in front of any embedder.

The hashing embedder finds shared words and shared spellings, not meaning. It makes tests, demonstrations and the first
minutes of an installation independent of weights; neural.py has the real encoders.
"""

import hashlib
import re
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from domain.ports import Embedder
from retrieval.dense import Vectors

WORD = re.compile(r"\w+")
GRAM = 3  # characters; words get a border mark on each side first


class HashingEmbedder:
    """Texts as signed counts of hashed words and character trigrams, unit rows.

    Two texts without a common trigram are near orthogonal. A text without any word character gets the unit vector of
    the empty word, so that every row has length one and blanks resemble only each other.
    Source: Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009.
    """

    runtime = ""  # sums of a few numbers, the same everywhere

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.tag = f"hashing-{dimensions}-1"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [len(texts), dimensions], unit rows; an empty list gives shape [0, dimensions]."""
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = Counter(WORD.findall(unicodedata.normalize("NFKC", text).casefold())) or Counter([""])
            for word, count in words.items():
                buckets, weights = features(word, self.dimensions)
                np.add.at(row, buckets, weights * (1 + np.log(count, dtype=np.float32)))
        # Opposite signs in the same buckets can cancel out; such a row would have no direction to scale.
        rows[~rows.any(axis=1), 0] = 1
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """As `embed_documents`: both sides hash alike."""
        return self.embed_documents(texts)


@lru_cache(maxsize=1 << 16)
def features(word: str, dimensions: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The buckets of a word and their signed weights: the word itself weighs as much as all its trigrams together.

    Longer words weigh more: without corpus statistics, length is the cheapest sign of a rare word.
    """
    marked = f"<{word}>"
    grams = [marked[i : i + GRAM] for i in range(max(len(marked) - GRAM + 1, 0))]
    digests = [
        int.from_bytes(hashlib.blake2b(part.encode(errors="replace"), digest_size=8).digest(), "little")
        for part in (f"word {word}", *grams)
    ]
    buckets = np.array([digest % dimensions for digest in digests], np.int64)
    signs = np.array([1.0 if digest >> 63 else -1.0 for digest in digests], np.float32)
    signs[1:] /= np.sqrt(max(len(grams), 1), dtype=np.float32)
    return buckets, signs * np.float32(min(len(word), 8) or 1)


class CachedQueries:
    """An embedder that remembers the vectors of the `size` most recent queries. Documents pass through.

    Safe to call from several threads; two that miss the same query at once both compute it, to the same vector.
    """

    def __init__(self, embedder: Embedder, size: int = 4096) -> None:
        self.embedder, self.size = embedder, size
        self.tag, self.runtime, self.dimensions = embedder.tag, embedder.runtime, embedder.dimensions
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = Lock()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """As the embedder behind."""
        vectors: Vectors = self.embedder.embed_documents(texts)
        return vectors

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """As the embedder behind, which sees only what is not remembered, each text once."""
        known: dict[str, Vectors] = {}
        with self._lock:
            for text in texts:
                if text in self._vectors:
                    self._vectors.move_to_end(text)
                    known[text] = self._vectors[text]
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            rows = self.embedder.embed_queries(missing)
            fresh = {text: row.copy() for text, row in zip(missing, rows, strict=True)}  # a view would keep the batch
            known |= fresh
            with self._lock:
                self._vectors.update(fresh)
                while len(self._vectors) > self.size:
                    self._vectors.popitem(last=False)
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return np.stack([known[text] for text in texts])
