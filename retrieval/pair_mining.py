"""Hard negatives from our own retriever: what the first stage finds for a question beside the passage that answers it.

A passage that may be right too is worse than none, so it is left out when it contains the right one or is contained in
it, or is nearly the same to the encoder. That a passage lies closer to the question than the right one does is no
reason: without such passages the largest cosine would always be right, and that is all that would be learnt. Each set
is searched by itself; nothing is trained here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from domain.ports import Embedder, PairScorer
from domain.types import Hit
from retrieval.arms import Visible
from retrieval.dense import ExactArm, Vector, Vectors
from retrieval.fusion import convex, gather
from retrieval.lexical import Bm25Arm
from retrieval.pair_lists import DevList, LearnList, Lists
from retrieval.pair_sets import Asked, TrainingSet, folded
from retrieval.reranking import passage

ARM = 60  # passages that each arm contributes
WRONG = 30  # that a list keeps
FEWEST_WRONG = 4  # of a list worth learning from
PRIOR_DEPTH = 20  # passages that a prior is standardised over, as in service
ORDERS = ("fused", "lexical")  # by which wrong passages are the best: both arms, or words alone
DEV_DEPTH = 20  # passages of a list to choose by: reading them is most of what a look at dev costs
SAME = 0.95  # cosine between two passages from which on they say the same


@dataclass(frozen=True, slots=True)
class _Found:
    """What the first stage found for one question, best first."""

    rows: list[int]
    scores: list[float]
    bm25: list[float]
    cosine: list[float]


class Searched:
    """The passages of one set behind both arms."""

    def __init__(self, training: TrainingSet, embedder: Embedder) -> None:
        self._chunks, texts = training.chunks, [passage(chunk) for chunk in training.chunks]
        self._vectors: Vectors = embedder.embed_documents(texts)  # [n_chunks, dimensions]
        self._lexical, self._dense = Bm25Arm.build(texts), ExactArm(self._vectors)
        self._visible = Visible(np.ones(len(texts), np.bool_))
        self._plain = [folded(chunk.text) for chunk in training.chunks]

    def find(self, question: str, vector: Vector) -> _Found:
        """What both arms find, fused as in service."""
        found = gather(
            self._lexical.search(question, ARM, self._visible), self._dense.search(vector, ARM, self._visible)
        )
        found = found.filled(
            self._lexical.score(question, found.rows, self._visible), self._dense.scores(vector, found.rows)
        )
        ranking = convex(found, 2 * ARM)
        places = np.searchsorted(found.rows, ranking.rows)
        return _Found(
            ranking.rows.tolist(),
            ranking.scores.tolist(),
            found.bm25[places].tolist(),
            found.cosine[places].tolist(),
        )

    def hits(self, found: _Found, rows: Sequence[int]) -> list[Hit]:
        """Some of the found rows as a pair scorer sees them."""
        places = [found.rows.index(row) for row in rows]
        return [
            Hit(self._chunks[row], found.scores[at], at + 1, "convex", found.cosine[at], found.bm25[at])
            for row, at in zip(rows, places, strict=True)
        ]

    def certainly_wrong(self, asked: Asked, found: _Found) -> list[int]:
        """The found rows that no guard suspects of answering the question too, best first."""
        rights = list(asked.right)
        alike = (self._vectors[found.rows] @ self._vectors[rights].T).max(1)  # [n_found]
        known = {*asked.right, *asked.unclear}

        def suspect(row: int, likeness: float) -> bool:
            text = self._plain[row]
            return (
                row in known
                or likeness >= SAME
                or any(self._plain[right] in text or text in self._plain[right] for right in rights)
            )

        measured = zip(found.rows, alike.tolist(), strict=True)
        return [row for row, likeness in measured if not suspect(row, likeness)]


def mine(learn: TrainingSet, dev: TrainingSet, embedder: Embedder, prior: PairScorer, order: str = ORDERS[0]) -> Lists:
    """The lists of a set; `learn` and `dev` are its two sides, `order` says which wrong passages come first.

    A question of which the first stage finds no right passage is still learnt from, but chosen by only when a right
    passage is among the best DEV_DEPTH, where reranking can do something.
    """
    if not learn.asked and not dev.asked:
        return Lists((), (), 0)
    learnt: list[LearnList] = []
    chosen: list[DevList] = []
    missed = 0
    searched = Searched(learn, embedder)
    for asked, vector in zip(learn.asked, _vectors(learn, embedder), strict=True):
        found = searched.find(asked.question, vector)
        missed += not set(asked.right) & set(found.rows)
        wrong = searched.certainly_wrong(asked, found)
        if order == "lexical":
            wrong.sort(key=lambda row: -found.bm25[found.rows.index(row)])
        wrong = wrong[:WRONG]
        priors = _priors(asked, searched, found, wrong, prior)
        given = tuple(row for row in asked.wrong if row not in asked.right)
        if len(wrong) >= FEWEST_WRONG:
            learnt += [
                LearnList(
                    learn.name,
                    asked.question,
                    right,
                    tuple(wrong),
                    given,
                    tuple(priors[row] for row in (right, *wrong)) if right in priors else (),
                )
                for right in asked.right[:3]
            ]
    for asked, vector in zip(dev.asked, _vectors(dev, embedder), strict=True):
        found = searched.find(asked.question, vector)
        missed += not set(asked.right) & set(found.rows)
        rows = tuple(row for row in found.rows if row not in asked.unclear)[:DEV_DEPTH]
        if set(asked.right) & set(rows):
            scores = tuple(float(s) for s in prior.score(asked.question, searched.hits(found, rows)))
            chosen.append(DevList(dev.name, asked.question, rows, scores, asked.right))
    return Lists(tuple(learnt), tuple(chosen), missed)


def _priors(
    asked: Asked, searched: Searched, found: _Found, wrong: Sequence[int], prior: PairScorer
) -> dict[int, float]:
    """What the prior thinks of right and wrong rows that were found, in deviations of the best PRIOR_DEPTH."""
    wanted = {*asked.right, *wrong, *found.rows[:PRIOR_DEPTH]}
    rows = [row for row in found.rows if row in wanted]  # the best come first
    scores = np.array(prior.score(asked.question, searched.hits(found, rows)))
    best = scores[:PRIOR_DEPTH]
    return dict(zip(rows, ((scores - best.mean()) / (best.std() + 1e-9)).round(4).tolist(), strict=True))


def _vectors(side: TrainingSet, embedder: Embedder) -> Vectors:
    vectors: Vectors = embedder.embed_queries([asked.question for asked in side.asked])
    return vectors
