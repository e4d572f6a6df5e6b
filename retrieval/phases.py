"""A search in two halves: what the arms find among the rows of one index, and what is made of all that was found.

The first half needs an index, the second only its findings; so it makes no difference to the second whether they come
from one index or from the shards of one (merging.py). Arms, ties and fusions are files of their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from domain.errors import BadRequest
from domain.types import Mode, Query
from retrieval.arms import DenseArm, LexicalArm, Ranking, Rows, Scores, Visible, WordStatistics, merge_variants
from retrieval.fusion import FUSIONS, Fusion, convex, gather

SINGLE_ARMS = (Mode.LEXICAL.value, Mode.DENSE.value)  # may stand in the place of a fusion: no fusion, one arm
FUSION_NAMES = (*FUSIONS, *SINGLE_ARMS)
NONE = Ranking(np.empty(0, np.int64), np.empty(0, np.float32))

BothScores = Callable[[Rows], tuple[Scores, Scores]]  # rows to bm25 and cosine


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of the arms: each text is searched for, `depth` chunks per arm, and `n` hits come of it."""

    texts: tuple[str, ...]  # the query and its variants, each once, none blank
    n: int
    depth: int
    mode: Mode  # LEXICAL and DENSE ask one arm


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a search is made, apart from the arms."""

    fusion: Fusion = convex
    hybrid: Mode = Mode.HYBRID  # what a hybrid search does: both arms, or the one that the settings leave it
    arm_candidates: int = 100

    def asked(self, query: Query, n: int, mode: Mode) -> Asked:
        """What a search for `n` hits asks. Raises BadRequest for a blank query or an `n` below 1."""
        if n < 1:
            raise BadRequest(f"{n} hits cannot be found: ask for at least 1.", "k")
        if not query.text.strip():
            raise BadRequest("The query is blank: ask for something.", "query")
        mode = self.hybrid if mode is Mode.HYBRID else mode
        texts = tuple(dict.fromkeys(text for text in (query.text, *query.variants) if text.strip()))
        return Asked(texts, n, max(n, self.arm_candidates) if mode is Mode.HYBRID else n, mode)


def recipe(fusion: str, *, dense_share: float = 0.6, rrf_k: int = 60, arm_candidates: int = 100) -> Recipe:
    """The recipe of settings; `fusion` is one of FUSION_NAMES, an arm's name meaning that arm alone."""
    parameters: dict[str, dict[str, Any]] = {"rrf": {"k": rrf_k}}
    parameters["convex"] = parameters["weighted"] = {"dense_share": dense_share}
    hybrid = Mode(fusion) if fusion in SINGLE_ARMS else Mode.HYBRID
    return Recipe(partial(FUSIONS.get(fusion, convex), **parameters.get(fusion, {})), hybrid, arm_candidates)


@dataclass(frozen=True, slots=True)
class Found:
    """What the arms returned: a ranking per text and arm, none for an arm that was not asked."""

    by_words: tuple[Ranking, ...] = ()
    by_vectors: tuple[Ranking, ...] = ()

    def merged(self, asked: Asked) -> tuple[Ranking, Ranking]:
        """One ranking per arm, of words and of vectors; an arm that was not asked has an empty one."""
        return _merged(self.by_words, asked.depth), _merged(self.by_vectors, asked.depth)


@dataclass(frozen=True, slots=True)
class Fused:
    """The hits of a search as rows, best first, and what each arm that was asked thought of them."""

    ranking: Ranking
    bm25: dict[int, float]
    cosine: dict[int, float]


@dataclass(frozen=True, slots=True)
class Finding:
    """The arms of one index, for one reader and one question."""

    lexical: LexicalArm
    dense: DenseArm
    visible: Visible
    asked: Asked
    vectors: Any  # numpy float32 [n_texts, dimensions]; not looked at in lexical mode
    statistics: Sequence[WordStatistics | None]  # one per text; None: this index is the reader's whole library

    def found(self) -> Found:
        """What the arms return."""
        by_words: tuple[Ranking, ...] = ()
        by_vectors: tuple[Ranking, ...] = ()
        # Vectors first: words are scored once more afterwards, and their postings should still be near the core.
        if self.asked.mode is not Mode.LEXICAL:
            by_vectors = tuple(self.dense.search(vector, self.asked.depth, self.visible) for vector in self.vectors)
        if self.asked.mode is not Mode.DENSE:
            by_words = tuple(
                self.lexical.search(text, self.asked.depth, self.visible, whole)
                for text, whole in zip(self.asked.texts, self.statistics, strict=True)
            )
        return Found(by_words, by_vectors)

    def both_scores(self, rows: Rows) -> tuple[Scores, Scores]:
        """bm25 and cosine [n_rows] of visible rows, whichever arm returned them: the best over the texts."""
        words = [
            self.lexical.score(text, rows, self.visible, whole)
            for text, whole in zip(self.asked.texts, self.statistics, strict=True)
        ]
        return np.max(words, axis=0), np.max([self.dense.scores(vector, rows) for vector in self.vectors], axis=0)


def fuse(found: Found, asked: Asked, fusion: Fusion, both_scores: BothScores) -> Fused:
    """At most `asked.n` hits of what was found, best first, ties by row.

    `both_scores` knows both scores of every row that one arm alone returned: not returned is not worthless.
    """
    words, meaning = found.merged(asked)
    if asked.mode is Mode.LEXICAL:
        return Fused(words, _by_row(words), {})
    if asked.mode is Mode.DENSE:
        return Fused(meaning, {}, _by_row(meaning))
    both = gather(words, meaning)
    both = both.filled(*both_scores(both.rows))
    ranking = fusion(both, asked.n)
    return Fused(ranking, _by_row(Ranking(both.rows, both.bm25)), _by_row(Ranking(both.rows, both.cosine)))


def _merged(rankings: Sequence[Ranking], depth: int) -> Ranking:
    return merge_variants(rankings, depth) if rankings else NONE


def _by_row(ranking: Ranking) -> dict[int, float]:
    return dict(zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True))
