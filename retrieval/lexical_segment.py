"""A segment: the postings of some rows, never changed once made. Arrays may be in memory or mapped from disk.

It counts and knows nothing of readers or scores: those are lexical.py. Files are lexical_files.py; several segments
become one in lexical_merging.py.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.analysis import analyse
from retrieval.sorted_strings import SortedStrings

Counts = NDArray[np.integer[Any]]  # of the narrowest kind that holds them all

AT_A_TIME = 1 << 20  # tokens counted together: few enough to sort in 20 MB, enough that sorting is all that takes time


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Which terms stand in which rows, and how often."""

    terms: SortedStrings
    starts: NDArray[np.int64]  # [n_terms + 1]; postings of term t: starts[t] to starts[t + 1], never none
    rows: NDArray[np.int32]  # [n_postings] ascending within a term
    counts: Counts  # [n_postings] how often the term stands in that row, at least once
    lengths: NDArray[np.int32]  # [n_rows] tokens

    @classmethod
    def of(cls, texts: Iterable[str], at_a_time: int = AT_A_TIME) -> "Segment":
        """The segment over `texts` in row order; blank ones are rows without postings. The texts are not kept.

        Terms are numbered in sorted order, so equal texts give equal arrays.
        """
        number_of: defaultdict[str, int] = defaultdict(count().__next__)  # in order of appearance
        lengths, tokens, pieces = array("i"), array("i"), [_counted(0, (), ())]
        done = 0
        for text in texts:
            found = analyse(text)
            lengths.append(len(found))
            tokens.extend(map(number_of.__getitem__, found))
            if len(tokens) >= at_a_time:
                pieces.append(_counted(done, lengths[done:], tokens))
                done, tokens = len(lengths), array("i")
        pieces.append(_counted(done, lengths[done:], tokens))
        names = sorted(number_of)
        renumbered = np.empty(len(names), np.int64)
        renumbered[np.fromiter(map(number_of.__getitem__, names), np.int64, len(names))] = np.arange(len(names))
        terms, rows, counts = (np.concatenate(each) for each in zip(*pieces, strict=True))
        order = np.argsort(renumbered[terms], kind="stable")  # stable: rows stay ascending within a term
        starts = np.zeros(len(names) + 1, np.int64)
        np.cumsum(np.bincount(renumbered[terms], minlength=len(names)), out=starts[1:])
        counts = counts.astype(narrowest(int(counts.max(initial=0))))
        return cls(SortedStrings.of(names), starts, rows[order], counts[order], np.array(lengths, np.int32))

    def find(self, token: str) -> tuple[NDArray[np.int32], Counts]:
        """The rows [n] that hold `token`, ascending, and how often each does."""
        place = self.terms.place(token)
        if place is None:
            return self.rows[:0], self.counts[:0]
        span = slice(self.starts[place], self.starts[place + 1])
        return self.rows[span], self.counts[span]


def narrowest(most: int) -> type[np.integer[Any]]:
    """The narrowest kind of number that holds counts up to `most`: hardly any text says a word 256 times."""
    kinds: tuple[type[np.integer[Any]], ...] = (np.uint8, np.uint16)
    return next((kind for kind in kinds if most <= np.iinfo(kind).max), np.int32)


def _counted(
    first_row: int, lengths: Sequence[int], tokens: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Terms, rows and counts of the postings of some rows, by row; `tokens` are the terms of one row after another."""
    terms, per_row = np.array(tokens, np.int64), np.array(lengths, np.int64)
    width = int(terms.max(initial=0)) + 1
    keys, counts = np.unique(np.repeat(np.arange(per_row.size), per_row) * width + terms, return_counts=True)
    rows, numbers = np.divmod(keys, width)
    return numbers.astype(np.int32), (rows + first_row).astype(np.int32), counts.astype(np.int32)
