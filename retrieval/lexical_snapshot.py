"""A lexical index of several segments at one moment: searched as one, ties by id, deleted rows seen by nobody.

Segments never change; deleting hides rows, as access does, so counts and scores are those of an index without them, to
the last bit. Rows number the segments one after another and mean nothing in another snapshot: ids do.
Made by lexical_updates.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from operator import add
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from retrieval.arms import Ranking, Rows, Scores, Visible, WordStatistics, best
from retrieval.lexical import Bm25Arm
from retrieval.sorted_strings import SortedStrings


@dataclass(frozen=True, eq=False)
class Held:
    """A segment with the ids of its rows, ascending, and the rows that are not deleted."""

    name: str
    arm: Bm25Arm
    ids: SortedStrings
    alive: Visible

    def without(self, rows: NDArray[np.int64]) -> "Held":
        """The same with `rows` deleted; itself when there are none, with all that it knows of its readers."""
        if not rows.size:
            return self
        mask = self.alive.mask.copy()
        mask[rows] = False
        return Held(self.name, self.arm, self.ids, Visible(mask))


class Snapshot:
    """A lexical arm whose readers come from `visible` or `everyone`."""

    name = "bm25"

    def __init__(self, held: Sequence[Held]) -> None:
        self.held = tuple(held)
        self._firsts = np.cumsum([0, *(len(each.ids) for each in held)])  # [n_segments + 1]
        self._readers: WeakKeyDictionary[Visible, tuple[Visible, ...]] = WeakKeyDictionary()

    # ------------------------------------------------------------------------------------------ rows and ids

    @cached_property
    def everyone(self) -> Visible:
        """The reader who sees every row that is not deleted."""
        visible = Visible(np.concatenate([np.empty(0, np.bool_), *(each.alive.mask for each in self.held)]))
        self._readers[visible] = tuple(each.alive for each in self.held)
        return visible

    def visible(self, mask: NDArray[np.bool_]) -> Visible:
        """The reader who may see the rows of `mask` [n_rows], as far as they are not deleted."""
        visible = Visible(mask & self.everyone.mask)
        self._readers[visible] = tuple(Visible(visible.mask[first:end]) for first, end in self._spans)
        return visible

    def row(self, doc_id: str) -> int | None:
        """The row of an id, None when there is none or it is deleted."""
        for first, each in zip(self._firsts.tolist(), self.held, strict=False):
            place = each.ids.place(doc_id)
            if place is not None and each.alive.mask[place]:
                return int(first + place)
        return None

    def ids(self, rows: Rows) -> list[str]:
        """The ids of `rows`, in their order."""
        segments = np.searchsorted(self._firsts, rows, side="right") - 1
        places = (rows - self._firsts[segments]).tolist()
        return [self.held[i].ids.at([place])[0] for i, place in zip(segments.tolist(), places, strict=True)]

    # ------------------------------------------------------------------------------------------ the arm

    def statistics(self, text: str, visible: Visible) -> WordStatistics:
        """What the visible rows know about the tokens of `text`."""
        each = (held.arm.statistics(text, seen) for held, seen in self._seen(visible))
        return reduce(add, each, WordStatistics(0, 0, {}))

    def search(self, text: str, n: int, visible: Visible, statistics: WordStatistics | None = None) -> Ranking:
        """Visible rows that share a token with `text`, best first, ties by id; scores > 0."""
        known = statistics or self.statistics(text, visible)
        found = [held.arm.search(text, n, seen, known) for held, seen in self._seen(visible)]
        if not found:
            return best(np.empty(0, np.int64), np.empty(0, np.float32), 0)
        rows = np.concatenate([first + each.rows for first, each in zip(self._firsts.tolist(), found, strict=False)])
        scores = np.concatenate([each.scores for each in found])
        if len(found) > 1:  # rows of one segment are in the order of ids
            bar = best(rows, scores, n).scores[-1:]
            among = np.flatnonzero(scores >= bar) if bar.size else np.empty(0, np.int64)
            ids = self.ids(rows[among])
            order = sorted(range(among.size), key=lambda i: (-scores[among[i]], ids[i]))[:n]
            rows, scores = rows[among[order]], scores[among[order]]
        return Ranking(rows, scores)

    def score(self, text: str, rows: Rows, visible: Visible, statistics: WordStatistics | None = None) -> Scores:
        """The scores [n_rows] `search` gives to these visible rows, 0 for those that share no token with `text`."""
        known = statistics or self.statistics(text, visible)
        scores = np.zeros(rows.size, np.float32)
        for (first, end), (held, seen) in zip(self._spans, self._seen(visible), strict=True):
            here = np.flatnonzero((rows >= first) & (rows < end))
            scores[here] = held.arm.score(text, rows[here] - first, seen, known)
        return scores

    @property
    def _spans(self) -> list[tuple[int, int]]:
        return list(pairwise(self._firsts.tolist()))

    def _seen(self, visible: Visible) -> Iterator[tuple[Held, Visible]]:
        if visible not in self._readers:
            raise ValueError("a reader whose rows are those of another snapshot: this is a bug")
        return zip(self.held, self._readers[visible], strict=True)
