"""Two first-stage rankings to one.

`gather` lists what either arm returned, each row once; a fusion scores the list. It never searches: a caller that
can score the rows which only one arm returned fills those scores in first (`Candidates.filled`), and convex and
weighted fusion then rank as if both arms had returned everything.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval.arms import Ranking, Rows, Scores, best


@dataclass(frozen=True, slots=True)
class Candidates:
    """The distinct rows of both arms with what each arm thought of them; all arrays [n_candidates].

    A score is NaN, and a rank 0, where that arm did not return the row. Filling a score leaves the rank 0.
    """

    rows: Rows  # ascending
    bm25: Scores
    cosine: Scores
    lexical_rank: NDArray[np.int64]  # from 1
    dense_rank: NDArray[np.int64]  # from 1

    def filled(self, bm25: Scores, cosine: Scores) -> "Candidates":
        """The same candidates with these scores [n_candidates] where an arm had none; known scores stay."""
        return replace(
            self,
            bm25=np.where(np.isnan(self.bm25), bm25, self.bm25).astype(np.float32),
            cosine=np.where(np.isnan(self.cosine), cosine, self.cosine).astype(np.float32),
        )


Fusion = Callable[[Candidates, int], Ranking]


def gather(lexical: Ranking, dense: Ranking) -> Candidates:
    """The rows of both rankings, each once, ready for a fusion."""
    rows = np.union1d(lexical.rows, dense.rows)
    bm25, lexical_rank = _aligned(rows, lexical)
    cosine, dense_rank = _aligned(rows, dense)
    return Candidates(rows, bm25, cosine, lexical_rank, dense_rank)


def convex(candidates: Candidates, n: int, dense_share: float = 0.6) -> Ranking:
    """The `n` best by (1 - dense_share) * bm25 / (highest bm25) + dense_share * cosine, ties by row.

    An unknown score counts 0. BM25 has no upper bound of its own, so the best candidate's stands in; cosines are
    taken as they are. Source: Bruch, Gai, Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023.
    """
    bm25 = np.nan_to_num(candidates.bm25.astype(np.float64))
    cosine = np.nan_to_num(candidates.cosine.astype(np.float64))
    highest = bm25.max(initial=0.0)
    lexical = bm25 / highest if highest > 0 else bm25
    return _ranked(candidates, (1 - dense_share) * lexical + dense_share * cosine, n)


def rrf(candidates: Candidates, n: int, k: int = 60) -> Ranking:
    """The `n` best by summed reciprocal rank, 1 / (k + rank) per arm that returned the row, ties by row.

    Only ranks matter, so filled scores change nothing. Source: Cormack, Clarke, Buettcher, SIGIR 2009.
    """
    ranks = np.stack([candidates.lexical_rank, candidates.dense_rank])  # [2, n_candidates]
    return _ranked(candidates, np.where(ranks > 0, 1 / (k + ranks), 0.0).sum(axis=0), n)


def weighted(candidates: Candidates, n: int, dense_share: float = 0.6) -> Ranking:
    """The `n` best by the weighted sum of both scores, each min-max normalised over the candidates, ties by row.

    An unknown score counts as the lowest. Scores that are all equal say nothing about order and count 1.
    Source: "MM" of Bruch, Gai, Ingber, TOIS 2023.
    """
    lexical, dense = _min_max(candidates.bm25), _min_max(candidates.cosine)
    return _ranked(candidates, (1 - dense_share) * lexical + dense_share * dense, n)


def _aligned(rows: Rows, ranking: Ranking) -> tuple[Scores, NDArray[np.int64]]:
    scores = np.full(rows.size, np.nan, np.float32)
    ranks = np.zeros(rows.size, np.int64)
    places = np.searchsorted(rows, ranking.rows)
    scores[places] = ranking.scores
    ranks[places] = np.arange(1, ranking.rows.size + 1)
    return scores, ranks


def _min_max(scores: Scores) -> NDArray[np.float64]:
    known = ~np.isnan(scores)
    normalised = np.zeros(scores.size)
    if known.any():
        values = scores[known].astype(np.float64)
        low, high = values.min(), values.max()
        normalised[known] = (values - low) / (high - low) if high > low else 1.0
    return normalised


def _ranked(candidates: Candidates, scores: NDArray[np.float64], n: int) -> Ranking:
    return best(candidates.rows, scores.astype(np.float32), n)


FUSIONS: dict[str, Fusion] = {"convex": convex, "rrf": rrf, "weighted": weighted}
