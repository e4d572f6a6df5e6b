"""Ranked metrics: where the gold evidence stands among the passages that were consulted.

The cutoff counts passages in the order they were consulted, the ranks count documents: a document has the rank where
it first came, and comes once. The order given is the ranking, so there are no ties, and relevance is binary: a
document of the gold evidence is worth 1, any other 0.
"""

from collections.abc import Sequence
from math import log2
from statistics import fmean

from eval.client import Body
from eval.observed import Observed
from eval.questions import Anchor


def recall(observed: Observed, k: int) -> float | None:
    """Share of the gold documents among the documents of the first `k` consulted passages."""
    gold = _gold(observed)
    return len(gold & set(_consulted(observed, k))) / len(gold) if gold else None


def ndcg(observed: Observed, k: int) -> float | None:
    """Normalised discounted cumulative gain of the gold documents; the ideal ranking has all of them, found or not.

    Source: Järvelin and Kekäläinen, TOIS 2002, with the discount 1 / log2(rank + 1) of trec_eval.
    """
    gold = _gold(observed)
    if not gold:
        return None
    order = _consulted(observed, k)
    gained = sum(1 / log2(rank + 1) for rank, doc_id in enumerate(order, 1) if doc_id in gold)
    return gained / sum(1 / log2(rank + 1) for rank in range(1, min(k, len(gold)) + 1))


def mrr(observed: Observed, k: int) -> float | None:
    """Reciprocal rank of the first gold document among the documents of the first `k` consulted passages."""
    gold = _gold(observed)
    if not gold:
        return None
    return next((1 / rank for rank, doc_id in enumerate(_consulted(observed, k), 1) if doc_id in gold), 0.0)


def evidence_recall(observed: Observed, k: int) -> float | None:
    """Share of the gold sentences that stand, whole, in one of the first `k` consulted passages."""
    return anchors_within(observed, observed.passages("consulted")[:k])


def full_chain_recall(observed: Observed, k: int) -> float | None:
    """1 when every gold sentence was consulted, otherwise 0: an answer over several hops needs them all."""
    share = evidence_recall(observed, k)
    return None if share is None else float(share == 1.0)


def _gold(observed: Observed) -> set[str]:
    return {anchor.doc_id for anchor in observed.question.evidence}


def _consulted(observed: Observed, k: int) -> list[str]:
    """The documents of the first `k` consulted passages, each once, in the order they first came."""
    return list(dict.fromkeys(passage["doc_id"] for passage in observed.passages("consulted")[:k]))


def anchors_within(observed: Observed, passages: Sequence[Body]) -> float | None:
    """Share of the gold sentences that stand, whole, in one of `passages`; None without gold."""
    anchors = observed.question.evidence
    return fmean(float(any(contains(p, anchor) for p in passages)) for anchor in anchors) if anchors else None


def contains(passage: Body, anchor: Anchor) -> bool:
    """True when the passage is of the gold sentence's document and has all of it."""
    return passage["doc_id"] == anchor.doc_id and folded(anchor.text) in folded(passage["quote"])


def folded(text: str) -> str:
    """White space folded, because chunking may join the lines of a paragraph."""
    return " ".join(text.split())
