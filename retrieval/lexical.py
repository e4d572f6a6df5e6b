"""BM25 over the postings of one segment, with statistics of exactly what the reader may see.

Document count, document frequencies and average length are those of the visible rows, so adding or removing what a
reader cannot see changes not one bit of a score: no count, order or score tells about hidden text.
Postings are lexical_segment.py; an index that changes is lexical_updates.py; ranking and ties are arms.py.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from domain.errors import StorageError
from retrieval import lexical_files
from retrieval.analysis import weigh
from retrieval.arms import Ranking, Rows, Scores, Visible, WordStatistics, best_above_zero
from retrieval.lexical_segment import Segment
from retrieval.recent import Arrays, RecentArrays

K1, B = 0.9, 0.4  # Anserini's, tuned for passages
ROOM = 64 << 20  # bytes an arm may keep of what it made of its postings: all of them up to about 5 million

_EVERYTHING = 0  # the number of all readers from whom nothing is hidden; others count from 1


class Bm25Arm:
    """Finds chunks by words. Score: Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with
    Lucene's idf ln(1 + (N - df + .5) / (df + .5)), which is never zero or negative, and without the constant k1 + 1.

    A segment over part of a library scores as one over all of it does, to the last bit, when it is given the sum of
    the parts' `statistics`.
    """

    name = "bm25"

    def __init__(self, segment: Segment, k1: float = K1, b: float = B, room: int = ROOM) -> None:
        self.segment = segment
        self.k1, self.b = k1, b
        self._totals: WeakKeyDictionary[Visible, tuple[int, int]] = WeakKeyDictionary()  # number of a reader, tokens
        self._numbers = count(_EVERYTHING + 1)
        self._recent = RecentArrays(room)

    @classmethod
    def build(cls, texts: Iterable[str], k1: float = K1, b: float = B) -> "Bm25Arm":
        """The arm over `texts` in row order; blank ones are rows that nothing finds."""
        return cls(Segment.of(texts), k1, b)

    @classmethod
    def load(cls, folder: Path, k1: float = K1, b: float = B) -> "Bm25Arm":
        """The arm that was saved into `folder`; it stays on disk until it is touched.

        Raises StorageError, naming the file, when one is missing, damaged or does not fit the others.
        """
        return cls(lexical_files.read(folder), k1, b)

    def save(self, folder: Path) -> None:
        """Write the arm into `folder`, byte-identical for equal texts."""
        lexical_files.write(self.segment, folder)

    # ------------------------------------------------------------------------------------------ asking

    def statistics(self, text: str, visible: Visible) -> WordStatistics:
        """What the visible rows know about the tokens of `text`: whole numbers, so those of several arms add up."""
        holding = {token: int(self._postings(token, visible)[0].size) for token in weigh(text, lambda _: False)}
        return WordStatistics(visible.rows.size, self._reader(visible)[1], holding)

    def search(self, text: str, n: int, visible: Visible, statistics: WordStatistics | None = None) -> Ranking:
        """Visible chunks that share a token with `text`, best first, scores > 0.

        A token that stands twice in the query counts twice (`weigh` has the details). Nothing known, nothing visible:
        an empty ranking. `statistics` are those of the reader's whole library for the same `text`; without any, this
        arm is all of it.

        Summed in float64 and in the order of the query's tokens, one row's sum never touching another's: hidden rows,
        row numbers and the machine's vector width cannot move a bit.
        """
        known = statistics or self.statistics(text, visible)
        scores = np.zeros(self.segment.lengths.size)  # [n_rows], hidden ones 0
        rarest = None
        for token, factor in _factors(text, known):
            rows, shares = self._shares(token, visible, known)
            np.add.at(scores, rows, factor * shares)  # no row twice; three times faster than scores[rows] += ...
            if rows.size >= n and (rarest is None or rows.size < rarest.size):
                rarest = rows
        return best_above_zero(scores, n, promising=rarest)

    def score(self, text: str, rows: Rows, visible: Visible, statistics: WordStatistics | None = None) -> Scores:
        """The scores [n_rows] `search` gives to these visible rows, 0 for those that share no token with `text`."""
        known = statistics or self.statistics(text, visible)
        wanted = rows.astype(np.int32)  # the kind of the postings, or looking them up would copy all of those
        scores = np.zeros(wanted.size)
        for token, factor in _factors(text, known):
            holding, shares = self._shares(token, visible, known)
            if holding.size:
                places = np.minimum(np.searchsorted(holding, wanted), holding.size - 1)
                found = holding[places] == wanted
                scores[found] += factor * shares[places[found]]
        return scores.astype(np.float32)

    # ------------------------------------------------------------------------------------------ postings of a reader

    def _shares(self, token: str, visible: Visible, known: WordStatistics) -> Arrays:
        """The visible rows that hold `token`, and what it adds to each but for its idf: between 0 and 1."""
        average = known.tokens / known.chunks if known.chunks else 0.0

        def made() -> Arrays:
            rows, counts = self._postings(token, visible)
            lengths = self.segment.lengths[rows]
            by_length = self.k1 * (1 - self.b + self.b * np.arange(lengths.max(initial=0) + 1) / average)
            return rows, counts / (counts + by_length[lengths])

        return self._recent.get((self._reader(visible)[0], average, token), made)

    def _postings(self, token: str, visible: Visible) -> Arrays:
        """The visible rows [n] that hold `token`, ascending, and how often each does."""

        def made() -> Arrays:
            rows, counts = self.segment.find(token)
            self._check(rows)
            if visible.everything:
                return rows, counts
            seen = visible.mask[rows]
            return rows[seen], counts[seen]

        return self._recent.get((self._reader(visible)[0], token), made, views=visible.everything)

    def _reader(self, visible: Visible) -> tuple[int, int]:
        """The number of a reader, and the tokens of the visible rows together."""
        known = self._totals.get(visible)
        if known is None:
            number = _EVERYTHING if visible.everything else next(self._numbers)
            total = int(self.segment.lengths[visible.rows].sum(dtype=np.int64))
            known = self._totals[visible] = number, total
        return known

    def _check(self, rows: NDArray[np.int32]) -> None:
        """A damaged file must not read as text of another row, or end in an error that names nothing."""
        if rows.size and not 0 <= rows.min() <= rows.max() < self.segment.lengths.size:
            raise StorageError(
                f"A lexical index names rows {rows.min()} to {rows.max()} but holds {self.segment.lengths.size}: it is "
                "damaged, restore the folder of its version, or remove it and build again."
            )


def _factors(text: str, known: WordStatistics) -> Iterator[tuple[str, float]]:
    """The tokens of a query that the library holds, in reading order, and what each counts: weight times idf."""
    for token, weight in weigh(text, lambda token: known.holding.get(token, 0) > 0).items():
        df = known.holding.get(token, 0)
        if df:
            yield token, weight * math.log1p((known.chunks - df + 0.5) / (df + 0.5))
