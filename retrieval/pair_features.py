"""Eight features that only a pair of question and passage can have, computed for a whole list of hits at once.

Word weights come from the list itself: a question word that every candidate holds separates none of them. So no corpus
statistics are needed and none can tell about hidden text. reranking.py turns the features into an order.
"""

import re
import threading
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from domain.types import Chunk, Hit
from retrieval.analysis import FIRST_SPACELESS, analyse

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]  # [n_words, dimensions], unit rows, or a row of zeros for an unknown word
WordVectors = Callable[[Sequence[str]], Vectors]

FEATURES = ("coverage", "proximity", "phrase", "title", "maxsim", "doc_cosine", "exact_id", "length")

K1, B = 0.9, 0.4  # as in BM25: repeats saturate, long passages pay a little
GRAM_BUCKETS = 256
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[a-z0-9]+(?:[-_./:@#+\\][a-z0-9]+)*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """What is remembered of a passage between questions."""

    places: dict[str, list[int]]  # token -> its positions, ascending
    length: int  # tokens
    head: frozenset[str]  # tokens of title and heading
    words: NDArray[np.int64]  # rows of the distinct words in the vocabulary
    text: str  # folded, for literal matches

    def holds(self, token: str) -> bool:
        """True when the token stands in the text or above it."""
        return token in self.places or token in self.head


class PairFeatures:
    """Computes the features of a list, and remembers the passages it has read.

    `word_vectors` gives unit rows for words; without it, words are alike as far as their character trigrams are. The
    `remembered` most recent passages are kept; the vocabulary holds `max_words` vectors (50 MB at 384 dimensions) and
    begins anew, with the passages, when it is full. Safe to call from several threads, which then take turns.
    """

    def __init__(
        self, word_vectors: WordVectors | None = None, remembered: int = 20_000, max_words: int = 32_768
    ) -> None:
        self._word_vectors = word_vectors or trigram_vectors
        self._remembered, self._max_words = remembered, max_words
        self._lock = threading.Lock()
        self._forget()

    def __call__(self, query: str, hits: Sequence[Hit]) -> Floats:
        """float64 [len(hits), 8], columns as in FEATURES, all finite. No question words: zeros where they matter.

        A question mostly in a script without spaces gets no cosines either: the weights were learned on English, and an
        English encoder's cosines say nothing there; what the first stage made of them stays in its score.
        """
        with self._lock:
            if len(self._words) > self._max_words:
                self._forget()
            readings = [self._read(hit.chunk) for hit in hits]
            asked = self._words_of(folded(query))
            similar, holders = self._similarities(asked, readings)
        tokens = analyse(query)
        weights = {t: rarity(sum(r.holds(t) for r in readings), len(hits)) for t in dict.fromkeys(tokens)}
        names = names_in(query)
        mean_length = float(np.mean([r.length for r in readings])) or 1.0 if readings else 1.0
        cosines = cosines_of(hits) if asked.size >= sum(map(is_pair, weights)) else [0.0] * len(hits)
        alike = maxsim(similar, [rarity(int(count), len(hits)) for count in holders], weights, readings)
        rows = [
            (
                coverage(weights, reading, mean_length),
                proximity(weights, reading),
                phrase(tokens, reading),
                share(weights, reading.head),
                sim,
                cosine,
                exact_names(names, reading.text),
                float(np.log1p(reading.length)),
            )
            for reading, sim, cosine in zip(readings, alike, cosines, strict=True)
        ]
        return np.array(rows, np.float64).reshape(len(hits), len(FEATURES))

    def _forget(self) -> None:
        self._readings: OrderedDict[tuple[str, str, str], Reading] = OrderedDict()
        self._words: dict[str, int] = {}
        self._vectors: Vectors = np.empty((0, 0), np.float32)

    def _read(self, chunk: Chunk) -> Reading:
        key = (chunk.id, chunk.source.title, chunk.heading)  # the id pins the text only
        if known := self._readings.get(key):
            self._readings.move_to_end(key)
            return known
        head = f"{chunk.source.title}\n{chunk.heading}"
        tokens = analyse(chunk.text)
        places: dict[str, list[int]] = {}
        for place, token in enumerate(tokens):
            places.setdefault(token, []).append(place)
        text = folded(f"{head}\n{chunk.text}")
        reading = Reading(places, len(tokens), frozenset(analyse(head)), self._words_of(text), text)
        self._readings[key] = reading
        if len(self._readings) > self._remembered:
            self._readings.popitem(last=False)
        return reading

    def _words_of(self, text: str) -> NDArray[np.int64]:
        """Vocabulary rows of the distinct content words of folded text, in order of appearance."""
        distinct = [piece for piece in dict.fromkeys(_WORD.findall(text)) if is_word(piece)]
        fresh = [word for word in distinct if word not in self._words]
        if fresh:
            start, end = len(self._words), len(self._words) + len(fresh)
            vectors = self._word_vectors(fresh)
            if end > len(self._vectors):
                grown = np.zeros((max(1024, 2 * end), vectors.shape[1]), np.float32)
                grown[:start] = self._vectors[:start] if start else 0
                self._vectors = grown
            self._vectors[start:end] = vectors
            self._words.update(zip(fresh, range(start, end), strict=True))
        return np.array([self._words[word] for word in distinct], np.int64)

    def _similarities(self, asked: NDArray[np.int64], readings: Sequence[Reading]) -> tuple[Floats, NDArray[np.int64]]:
        """[n_hits, n_asked]: how alike the most similar word of a passage is; [n_asked]: passages with that very word.

        The same word counts 1 even when no vector is known for it.
        """
        best = np.zeros((len(readings), asked.size))
        holders = np.zeros(asked.size, np.int64)
        spans = [reading.words for reading in readings]
        if not asked.size or not spans or not sum(map(len, spans)):
            return best, holders
        distinct, places = np.unique(np.concatenate(spans), return_inverse=True)
        alike = self._vectors[distinct] @ self._vectors[asked].T  # [n_distinct, n_asked]
        same = distinct[:, None] == asked
        alike[same] = 1.0
        start = 0
        for row, span in enumerate(spans):
            if len(span):
                found = places[start : start + len(span)]
                best[row] = alike[found].max(0)
                holders += same[found].any(0)
            start += len(span)
        return best, holders


# ---------------------------------------------------------------------------------------------- one pair


def coverage(weights: dict[str, float], reading: Reading, mean_length: float) -> float:
    """Share 0..1 of the question's weight that the passage covers; repeats saturate, length is paid for."""
    total = sum(weights.values())
    norm = K1 * (1 - B + B * reading.length / mean_length)
    gained = sum(
        weight * len(reading.places[token]) / (len(reading.places[token]) + norm)
        for token, weight in weights.items()
        if token in reading.places
    )
    return gained / total if total else 0.0


def proximity(weights: dict[str, float], reading: Reading) -> float:
    """Matched words per length of the smallest window that holds them all, times their share of the weight; 0..1.

    Fewer than two matched words have no window: 0.
    """
    matched = [token for token in weights if token in reading.places]
    if len(matched) < 2:
        return 0.0
    spots = sorted((place, token) for token in matched for place in reading.places[token])
    inside: Counter[str] = Counter()
    smallest, left = reading.length, 0
    for place, token in spots:
        inside[token] += 1
        while inside[spots[left][1]] > 1:  # drop what comes again further right
            inside[spots[left][1]] -= 1
            left += 1
        if len(inside) == len(matched):
            smallest = min(smallest, place - spots[left][0] + 1)
    return min(1.0, len(matched) / smallest) * share(weights, reading.places)


def phrase(tokens: Sequence[str], reading: Reading) -> float:
    """Longest run of question tokens standing verbatim in the passage, from 0 (single words) to 1 (all of them)."""
    longest = 1
    spots = [set(reading.places.get(token, ())) for token in tokens]
    runs: dict[int, int] = {}  # place -> length of the run that ends there
    for found in spots:
        runs = {place: runs.get(place - 1, 0) + 1 for place in found}
        longest = max(longest, max(runs.values(), default=0))
    return (longest - 1) / (len(tokens) - 1) if len(tokens) > 1 else 0.0


def share(weights: dict[str, float], held: dict[str, list[int]] | frozenset[str]) -> float:
    """Share 0..1 of the question's weight whose words are held."""
    total = sum(weights.values())
    return sum(weight for token, weight in weights.items() if token in held) / total if total else 0.0


def maxsim(
    similar: Floats, rarities: Sequence[float], weights: dict[str, float], readings: Sequence[Reading]
) -> Floats:
    """[n_hits]: how alike the best matching words of each passage are, averaged over the question by rarity; 0..1.

    `similar` is [n_hits, n_words] for words with vectors. Pairs of a script without spaces have none: a passage holds
    them or not. Source: the MaxSim operator of Khattab and Zaharia, ColBERT, SIGIR 2020, on static vectors.
    """
    pairs = {token: weight for token, weight in weights.items() if is_pair(token)}
    total = sum(rarities) + sum(pairs.values())
    held = np.array([sum(weight for token, weight in pairs.items() if r.holds(token)) for r in readings])
    return (similar @ np.array(rarities) + held) / total if total else np.zeros(len(readings))


def cosines_of(hits: Sequence[Hit]) -> list[float]:
    """The first stage's cosines. An arm that did not return a chunk thought no more of it than of its last."""
    known = [hit.cosine for hit in hits if hit.cosine is not None]
    lowest = min(known, default=0.0)
    return [lowest if hit.cosine is None else hit.cosine for hit in hits]


def exact_names(names: frozenset[str], text: str) -> float:
    """Share 0..1 of the question's identifiers that stand literally in folded text; 0 when it names none."""
    found = sum(bool(re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", text)) for name in names)
    return found / len(names) if names else 0.0


def rarity(holders: int, total: int) -> float:
    """Lucene's idf over the list: high for a word few candidates hold, never zero or negative."""
    return float(np.log1p((total - holders + 0.5) / (holders + 0.5)))


# ---------------------------------------------------------------------------------------------- words


def folded(text: str) -> str:
    """NFKC, case folded."""
    return unicodedata.normalize("NFKC", text).casefold()


def is_pair(token: str) -> bool:
    """True for a token of a script without spaces."""
    return max(token) >= FIRST_SPACELESS


@lru_cache(maxsize=1 << 16)
def is_word(piece: str) -> bool:
    """True for a run of word characters that can have a vector: no stop word, no script without spaces."""
    return max(piece) < FIRST_SPACELESS and bool(analyse(piece))


def names_in(query: str) -> frozenset[str]:
    """Identifiers in a question, folded: pieces with a digit, an inner sign or capitals only: `E42`, `a.b`, `NATO`."""
    pieces = [piece for piece in _NAME.findall(query) if len(piece) > 1]
    if query.isupper():
        pieces = [piece for piece in pieces if any(map(str.isdigit, piece))]  # shouting names nothing
    return frozenset(
        folded(piece)
        for piece in pieces
        if piece.isupper() or any(map(str.isdigit, piece)) or re.search(r"[_./:@#+\\]", piece)
    )


def trigram_vectors(words: Sequence[str]) -> Vectors:
    """float32 [n, 256], unit rows: hashed character trigrams of each word, the stand-in where no model is at hand."""
    from retrieval.embedding import features

    rows = np.zeros((len(words), GRAM_BUCKETS), np.float32)
    for row, word in zip(rows, words, strict=True):
        buckets, weights = features(word, GRAM_BUCKETS)
        np.add.at(row, buckets[1:], weights[1:])
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(norms > 0, norms, 1)
    return rows
