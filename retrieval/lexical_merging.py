"""Several segments, or some rows of them, as one: the same to the last byte as counting all of the texts again.

Arrays are moved, no text is analysed, and only so many postings at a time are in memory. Which rows to take is decided
by others: lexical_deriving.py for a version that shares texts with the one before, lexical_updates.py for a live index.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval import lexical_files
from retrieval.lexical_segment import Counts, Segment, narrowest
from retrieval.sorted_strings import SortedStrings

AT_A_TIME = 1 << 20  # postings in memory together; they take about 60 bytes each while they are put in order

Ints = NDArray[np.int64]
_NewArray = Callable[[str, int, type[np.integer[Any]]], NDArray[Any]]  # name, length, kind


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Rows that are taken out of a segment, and the rows that they become. One may be taken several times."""

    segment: Segment
    rows: Ints  # [n_taken]
    places: Ints  # [n_taken]


def merged(parts: Sequence[Taken], n_rows: int, at_a_time: int = AT_A_TIME) -> Segment:
    """One segment of `n_rows` rows, in memory. Rows that no part becomes are blank; none may be two parts' place."""
    return _merged(parts, n_rows, at_a_time, lambda _, size, kind: np.empty(size, kind))


def merge_into(folder: Path, parts: Sequence[Taken], n_rows: int, at_a_time: int = AT_A_TIME) -> None:
    """The same, written into `folder` as it is made. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    segment = _merged(
        parts, n_rows, at_a_time, lambda name, size, kind: lexical_files.fresh(folder / f"{name}.npy", size, kind)
    )
    lexical_files.write(segment, folder, already=("rows", "counts"))


def _merged(parts: Sequence[Taken], n_rows: int, at_a_time: int, new_array: _NewArray) -> Segment:
    lengths = np.zeros(n_rows, np.int32)
    for each in parts:
        lengths[each.places] = each.segment.lengths[each.rows]
    copied = [part for each in parts if (part := _Copied.of(each, at_a_time)).most]
    names = sorted(set[str]().union(*(part.names for part in copied)))
    number_of = {name: number for number, name in enumerate(names)}
    sizes = np.zeros(len(names), np.int64)
    numbered = []
    for part in copied:
        numbers = np.fromiter(map(number_of.__getitem__, part.names), np.int64, part.terms.size)
        sizes[numbers] += part.sizes
        numbered.append(numbers)
    starts = np.zeros(len(names) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    rows = new_array("rows", int(starts[-1]), np.int32)
    counts = new_array("counts", int(starts[-1]), narrowest(max((part.most for part in copied), default=0)))
    for first, end in _spans(starts, at_a_time):
        found = [part.postings(numbers, first, end, at_a_time) for part, numbers in zip(copied, numbered, strict=True)]
        terms, places, times = (np.concatenate(each) for each in zip(*found, strict=True))
        order = np.argsort(terms * n_rows + places, kind="stable")  # stable: quick for runs that are in order already
        span = slice(starts[first], starts[end])
        rows[span], counts[span] = places[order], times[order]
    return Segment(SortedStrings.of(names), starts, rows, counts, lengths)


@dataclass(frozen=True, slots=True, eq=False)
class _Copied:
    """What is to be copied out of a segment: where each of its rows goes, and how much that comes to."""

    segment: Segment
    copies: Ints  # [n_rows of the segment] how often each is taken
    firsts: Ints  # [n_rows of the segment] where its places begin
    places: Ints  # [n_taken] by row
    terms: Ints  # the terms of the segment of which a posting is taken, ascending
    names: list[str]  # those terms, as they are written
    sizes: Ints  # [len(terms)] how many postings are taken
    most: int  # the largest count that is taken; 0: there are none

    @classmethod
    def of(cls, taken: Taken, at_a_time: int) -> "_Copied":
        segment = taken.segment
        order = np.argsort(taken.rows, kind="stable")
        copies = np.bincount(taken.rows, minlength=segment.lengths.size)
        firsts = np.cumsum(copies) - copies
        sizes, most = np.zeros(len(segment.terms), np.int64), 0
        for first, end in _spans(segment.starts, at_a_time):
            span = slice(segment.starts[first], segment.starts[end])
            here = copies[segment.rows[span]]
            sizes[first:end] = np.add.reduceat(here, segment.starts[first:end] - segment.starts[first])
            most = max(most, int(np.max(segment.counts[span], where=here > 0, initial=0)))
        terms = np.flatnonzero(sizes)
        names = segment.terms.at(terms.tolist())
        return cls(segment, copies, firsts, taken.places[order], terms, names, sizes[terms], most)

    def postings(self, numbers: Ints, first: int, end: int, at_a_time: int) -> tuple[Ints, Ints, Counts]:
        """Numbers, places and counts of the postings whose term has a number from `first` to `end`.

        `numbers` [len(terms)] are ascending, as the terms are. Between those terms may lie any number of postings that
        are not taken, so the segment is read in pieces.
        """
        among = slice(*np.searchsorted(numbers, [first, end]))
        terms, starts = self.terms[among], self.segment.starts
        if not terms.size:
            return np.empty(0, np.int64), np.empty(0, np.int64), self.segment.counts[:0]
        bounds = starts[terms[0] : terms[-1] + 2]
        pieces = [self._taken(slice(bounds[one], bounds[other])) for one, other in _spans(bounds, at_a_time)]
        places, counts = (np.concatenate(each) for each in zip(*pieces, strict=True))
        return np.repeat(numbers[among], self.sizes[among]), places, counts

    def _taken(self, span: slice) -> tuple[Ints, Counts]:
        """Places and counts of those postings of a span that are taken."""
        rows = self.segment.rows[span]
        here = self.copies[rows]
        # Posting i is copied here[i] times, to the places that begin at firsts[rows[i]].
        begins = np.cumsum(here) - here
        places = self.places[np.repeat(self.firsts[rows] - begins, here) + np.arange(int(here.sum()))]
        return places, np.repeat(self.segment.counts[span], here)


def _spans(starts: Ints, at_a_time: int) -> Iterator[tuple[int, int]]:
    """Runs of terms, first and end, that have at most so many postings together, or are one term with more."""
    first = 0
    while first < starts.size - 1:
        end = int(np.searchsorted(starts, starts[first] + at_a_time, side="right")) - 1
        yield first, (end := max(end, first + 1))
        first = end
