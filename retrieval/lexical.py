"""BM25 over numpy postings, with statistics of exactly what the reader may see.

Document count, document frequencies and average length are those of the visible rows, so adding or removing what a
reader cannot see changes not one bit of a score: no count, order or score tells about hidden text.
Text becomes tokens in analysis.py; ranking and ties are arms.py.
"""

import json
import math
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from domain.errors import StorageError
from retrieval.analysis import analyse, weigh
from retrieval.arms import Ranking, Rows, Scores, Visible, best

_VOCABULARY = "vocabulary.json"
_ARRAYS: dict[str, type[np.signedinteger[Any]]] = {
    "starts": np.int64,
    "rows": np.int32,
    "counts": np.int32,
    "lengths": np.int32,
}


class Bm25Arm:
    """Finds chunks by words. Score: Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with
    Lucene's idf ln(1 + (N - df + .5) / (df + .5)), which is never zero or negative, and without the constant k1 + 1.

    The defaults k1 = 0.9, b = 0.4 are those of Anserini, tuned for passages.
    """

    name = "bm25"

    def __init__(
        self,
        vocabulary: dict[str, int],
        *,
        starts: NDArray[np.int64],  # [n_terms + 1]; postings of term t: starts[t] to starts[t + 1]
        rows: NDArray[np.int32],  # [n_postings] ascending within a term
        counts: NDArray[np.int32],  # [n_postings] how often the term stands in that row
        lengths: NDArray[np.int32],  # [n_rows] tokens
        k1: float = 0.9,
        b: float = 0.4,
    ) -> None:
        self.k1, self.b = k1, b
        self._vocabulary = vocabulary
        self._starts, self._rows, self._counts, self._lengths = starts, rows, counts, lengths
        self._average_lengths: WeakKeyDictionary[Visible, float] = WeakKeyDictionary()

    @classmethod
    def build(cls, texts: Sequence[str], k1: float = 0.9, b: float = 0.4) -> "Bm25Arm":
        """The arm over `texts` in row order; blank ones are rows that nothing finds. Terms are numbered in sorted
        order, so equal texts give equal files."""
        seen: dict[str, int] = {}  # term -> number in order of appearance
        terms, rows, counts = array("q"), array("i"), array("i")
        lengths = np.zeros(len(texts), np.int32)
        for row, text in enumerate(texts):
            tokens = analyse(text)
            lengths[row] = len(tokens)
            for token, count in Counter(tokens).items():
                terms.append(seen.setdefault(token, len(seen)))
                rows.append(row)
                counts.append(count)
        vocabulary = {term: number for number, term in enumerate(sorted(seen))}
        renumbered = np.fromiter((vocabulary[term] for term in seen), np.int64, len(seen))
        numbers = renumbered[np.frombuffer(terms, np.int64)] if terms else np.empty(0, np.int64)
        order = np.argsort(numbers, kind="stable")  # stable: rows stay ascending within a term
        starts = np.zeros(len(seen) + 1, np.int64)
        np.cumsum(np.bincount(numbers, minlength=len(seen)), out=starts[1:])
        return cls(
            vocabulary,
            starts=starts,
            rows=np.array(rows, np.int32)[order],
            counts=np.array(counts, np.int32)[order],
            lengths=lengths,
            k1=k1,
            b=b,
        )

    def search(self, text: str, n: int, visible: Visible) -> Ranking:
        """Visible chunks that share a token with `text`, best first, scores > 0.

        A token that stands twice in the query counts twice (`weigh` has the details). Nothing known, nothing visible:
        an empty ranking.
        """
        scores = self._scores(text, visible)
        rows = np.flatnonzero(scores > 0)  # every posting adds more than 0; four times faster than of the floats
        return best(rows, scores[rows].astype(np.float32), n)

    def score(self, text: str, rows: Rows, visible: Visible) -> Scores:
        """The scores [n_rows] `search` gives to these visible rows, 0 for those that share no token with `text`."""
        return self._scores(text, visible)[rows].astype(np.float32)

    def _scores(self, text: str, visible: Visible) -> NDArray[np.float64]:
        """Scores of all rows, hidden ones 0.

        Summed in float64 and in the order of the query's tokens, one row's sum never touching another's: hidden rows,
        row numbers and the machine's vector width cannot move a bit.
        """
        scores = np.zeros(self._lengths.size)  # [n_rows]
        weights = weigh(text, lambda token: self._postings(token, visible)[0].size > 0)
        for token, weight in weights.items():
            rows, counts = self._postings(token, visible)
            if rows.size:
                length_norm = 1 - self.b + self.b * self._lengths[rows] / self._average_length(visible)
                scores[rows] += weight * self._idf(rows.size, visible) * (counts / (counts + self.k1 * length_norm))
        return scores

    def _postings(self, token: str, visible: Visible) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        term = self._vocabulary.get(token)
        if term is None:
            return self._rows[:0], self._counts[:0]
        span = slice(self._starts[term], self._starts[term + 1])
        rows, counts = self._rows[span], self._counts[span]
        if visible.everything:
            return rows, counts
        seen = visible.mask[rows]
        return rows[seen], counts[seen]

    def _idf(self, df: int, visible: Visible) -> float:
        return math.log1p((visible.rows.size - df + 0.5) / (df + 0.5))

    def _average_length(self, visible: Visible) -> float:
        """Tokens per visible row, over whole numbers and so exact. Only asked for where a visible row has tokens."""
        known = self._average_lengths.get(visible)
        if known is None:
            total = int(self._lengths[visible.rows].sum(dtype=np.int64))
            known = self._average_lengths[visible] = total / visible.rows.size
        return known

    def save(self, folder: Path) -> None:
        """Write the arm into `folder`: plain arrays and JSON, byte-identical for equal texts."""
        folder.mkdir(parents=True, exist_ok=True)
        vocabulary = json.dumps(list(self._vocabulary), ensure_ascii=False, separators=(",\n", ":"))
        (folder / _VOCABULARY).write_text(vocabulary, encoding="utf-8", newline="\n")
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, f"_{name}"), allow_pickle=False)

    @classmethod
    def load(cls, folder: Path, k1: float = 0.9, b: float = 0.4) -> "Bm25Arm":
        """The arm that was saved into `folder`; arrays stay on disk until they are touched.

        Raises StorageError, naming the file, when one is missing, damaged or does not fit the others.
        """
        terms = _read_vocabulary(folder / _VOCABULARY)
        postings = {name: _read_array(folder / f"{name}.npy", kind) for name, kind in _ARRAYS.items()}
        _check_fit(folder, len(terms), postings)
        return cls({term: number for number, term in enumerate(terms)}, **postings, k1=k1, b=b)


def _read_vocabulary(file: Path) -> list[str]:
    try:
        terms = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # ValueError: neither UTF-8 nor JSON
        raise _damaged(file, str(error)) from error
    if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms):
        raise _damaged(file, "it is not a list of terms")
    return terms


def _read_array(file: Path, kind: type[np.signedinteger[Any]]) -> NDArray[Any]:
    try:
        values = np.asarray(np.load(file, mmap_mode="r", allow_pickle=False))  # a plain view: memmap slices are slow
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(file, str(error)) from error
    if values.dtype != kind or values.ndim != 1:
        wanted = f"one dimension of {kind.__name__}"
        raise _damaged(file, f"it holds {values.dtype} in {values.ndim} dimensions instead of {wanted}")
    return values


def _check_fit(folder: Path, n_terms: int, postings: dict[str, NDArray[Any]]) -> None:
    """Refuse files of different builds, or ones damaged inside, before a query reads past an end."""
    starts, rows, counts, lengths = postings.values()
    if starts.size != n_terms + 1 or starts[0] != 0 or np.any(np.diff(starts) < 1):
        raise _damaged(folder / "starts.npy", f"it does not fit a vocabulary of {n_terms} terms")
    if rows.size != starts[-1] or (rows.size and not 0 <= rows.min() <= rows.max() < lengths.size):
        raise _damaged(folder / "rows.npy", f"it does not fit {starts[-1]} postings in {lengths.size} rows")
    if counts.size != rows.size or (counts.size and counts.min() < 1):
        raise _damaged(folder / "counts.npy", f"it does not fit {rows.size} postings")
    if not np.array_equal(np.bincount(rows, weights=counts, minlength=lengths.size), lengths):
        raise _damaged(folder / "lengths.npy", "lengths are not the sums of the counts")


def _damaged(file: Path, why: str) -> StorageError:
    return StorageError(
        f"Lexical index file {file} cannot be read ({why}): build the version again or restore the file."
    )
