"""What lists that are not learnt from say about a model: nDCG@10 for each share of its reading beside the prior.

Chooses weights and share; what is served with them is measured elsewhere, on collections that chose nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval.pair_features import Floats
from retrieval.pair_lists import DevList
from retrieval.pairs import Ids
from retrieval.pooled_pair import PooledPair
from retrieval.reranking import standardised

SHARES = tuple(round(0.05 * step, 2) for step in range(21))
READ_AT_ONCE = 16  # pairs


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Token ids of everything a training reads: by question, and by set and row."""

    questions: Mapping[str, Ids]
    passages: Mapping[tuple[str, int], Ids]


@dataclass(frozen=True, slots=True)
class Look:
    """nDCG@10 by set and share at a step, list by list in the order of dev, and the mean loss since the look before.

    `seconds` had been trained by then, those before a kill included.
    """

    step: int
    loss: float
    ndcg10: Mapping[str, Mapping[float, Sequence[float]]]
    seconds: float = 0.0

    def of_set(self, name: str, share: float) -> float:
        """The mean of one set."""
        return float(np.mean(self.ndcg10[name][share]))

    def mean(self, share: float) -> float:
        """The mean over sets: a large set counts no more than a small one."""
        return float(np.mean([self.of_set(name, share) for name in self.ndcg10]))

    @property
    def share(self) -> float:
        """The smallest share with the best mean."""
        return max(SHARES, key=lambda share: (round(self.mean(share), 6), -share))

    @property
    def best(self) -> float:
        """The mean under that share."""
        return self.mean(self.share)


@dataclass(frozen=True, slots=True)
class Chosen:
    """nDCG@10 of one dev list in the first stage's order, the prior's, and that of the mix."""

    set: str
    fusion: float
    prior: float
    mixed: float


def look(model: PooledPair, dev: Sequence[DevList], texts: Texts, step: int = 0, loss: float = 0.0) -> Look:
    """What dev says about the model as it is."""
    values: dict[str, dict[float, list[float]]] = {}
    for one, prior, reading in _read(model, dev, texts):
        by_share = values.setdefault(one.set, {share: [] for share in SHARES})
        for share in SHARES:
            by_share[share].append(one.ndcg10(((1 - share) * prior + share * reading).tolist()))
    return Look(step, loss, values)


def under_share(seen: Look, dev: Sequence[DevList], share: float) -> list[Chosen]:
    """List by list, what the model that was looked at adds with this share."""
    places: Counter[str] = Counter()
    found = []
    for one in dev:
        by_share, place = seen.ndcg10[one.set], places[one.set]
        fused = one.ndcg10([-float(rank) for rank in range(len(one.rows))])
        found.append(Chosen(one.set, fused, by_share[0.0][place], by_share[share][place]))
        places[one.set] += 1
    return found


def _read(model: PooledPair, dev: Sequence[DevList], texts: Texts) -> Iterator[tuple[DevList, Floats, Floats]]:
    """Each list with prior and reading, both standardised over it."""
    for one in dev:
        question = texts.questions[one.question]
        pairs = [(question, texts.passages[one.set, row]) for row in one.rows]
        logits = [model.logits(pairs[at : at + READ_AT_ONCE]) for at in range(0, len(pairs), READ_AT_ONCE)]
        yield one, _z(np.array(one.prior)), _z(np.concatenate(logits).astype(np.float64))


def _z(values: Floats) -> Floats:
    return standardised(values.reshape(-1, 1))[:, 0]
