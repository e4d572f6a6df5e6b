"""What the shards of a library found, as if one index had found it: pure functions over what travels between them.

Every number that a shard sends is what one index over everything would have computed for that chunk: whole counts add
up, and both arms score a chunk without looking at others. So cutting each ranking of the whole to its depth, and fusing
afterwards, gives the ids, scores, order and ties of one index to the last bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from domain.errors import StorageError
from retrieval.arms import Ranking, Rows, Scores, WordStatistics, best
from retrieval.fusion import Fusion
from retrieval.phases import Asked, Finding, Found, Fused, fuse

NO_SCORES: Scores = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True)
class Shortlist:
    """What one shard has to offer for a question. Rows are the shard's own; `ids` say which chunks they are."""

    found: Found
    rows: Rows  # [n] of all rankings, ascending
    ids: tuple[str, ...]  # [n]
    scored: Rows  # those that the shard's own merged rankings hold, ascending; empty where one arm was asked
    bm25: Scores  # [n_scored]
    cosine: Scores  # [n_scored]


def shortlist(finding: Finding, ids: Sequence[str]) -> Shortlist:
    """What the arms of one shard return; `ids` are the chunk ids of all its rows."""
    found = finding.found()
    rankings = (*found.by_words, *found.by_vectors)
    rows = np.unique(np.concatenate([ranking.rows for ranking in rankings]))
    scored, bm25, cosine = rows[:0], NO_SCORES, NO_SCORES
    if found.by_words and found.by_vectors:
        # A row that this cut leaves out is outranked by `depth` rows of this shard, and so is left out of the whole.
        words, meaning = found.merged(finding.asked)
        scored = np.union1d(words.rows, meaning.rows)
        bm25, cosine = finding.both_scores(scored)
    return Shortlist(found, rows, tuple(ids[row] for row in rows.tolist()), scored, bm25, cosine)


def summed(statistics: Sequence[Sequence[WordStatistics]]) -> tuple[WordStatistics, ...]:
    """The statistics of the reader's whole library, one per text, from those of each shard [n_shards][n_texts]."""
    return tuple(reduce(add, of_text) for of_text in zip(*statistics, strict=True))


def fused(shortlists: Sequence[Shortlist], asked: Asked, fusion: Fusion) -> tuple[Fused, list[str]]:
    """The hits of the whole library, and the chunk ids of their rows. Raises StorageError when shards overlap.

    Rows number the chunks of all shortlists by id, so that "lower row first" is what it is in one index.
    """
    ids = sorted(chunk_id for part in shortlists for chunk_id in part.ids)
    place = {chunk_id: row for row, chunk_id in enumerate(ids)}
    if len(place) < len(ids):
        raise StorageError("Two shards hold the same chunk: remove the folder of shards, it is cut again.")
    bm25, cosine = np.full((2, len(ids)), np.nan, np.float32)
    moved: list[Callable[[Rows], Rows]] = []
    for part in shortlists:
        move = _moving(part, place)
        bm25[move(part.scored)], cosine[move(part.scored)] = part.bm25, part.cosine
        moved.append(move)
    whole = Found(
        _rankings([part.found.by_words for part in shortlists], moved, asked.depth),
        _rankings([part.found.by_vectors for part in shortlists], moved, asked.depth),
    )
    return fuse(whole, asked, fusion, lambda rows: (bm25[rows], cosine[rows])), ids


def _moving(part: Shortlist, place: dict[str, int]) -> Callable[[Rows], Rows]:
    """Rows of a shard to rows of the whole."""
    rows = np.array([place[chunk_id] for chunk_id in part.ids], np.int64)
    return lambda own: rows[np.searchsorted(part.rows, own)]


def _rankings(
    parts: Sequence[Sequence[Ranking]], moved: Sequence[Callable[[Rows], Rows]], depth: int
) -> tuple[Ranking, ...]:
    """One ranking per text of the whole, from those of the shards [n_shards][n_texts]."""
    return tuple(
        best(
            np.concatenate([move(ranking.rows) for move, ranking in zip(moved, of_text, strict=True)]),
            np.concatenate([ranking.scores for ranking in of_text]),
            depth,
        )
        for of_text in zip(*parts, strict=True)
    )
