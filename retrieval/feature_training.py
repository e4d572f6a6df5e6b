"""Trains the embedded reranker's weights: `tidegate train-reranker --kind features --pairs DIR --out FILE`.

DIR holds folders of (question, passage) pairs. A sample of all of them becomes one mixed library, searched by our own
first stage, so that the wrong passages are the ones it finds. A linear correction of the first stage's score is fitted
by listwise softmax, with weights that may not be negative; how strongly they are held back is chosen where it has to
hold: on domains left out of the fit. Seeded and deterministic; no test collection is touched.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from domain.errors import CorpusError
from domain.ports import Embedder
from domain.types import Chunk, Hit, SourceRef
from retrieval.arms import Visible
from retrieval.dense import ExactArm, Vector
from retrieval.fusion import convex, gather
from retrieval.lexical import Bm25Arm
from retrieval.pair_features import FEATURES, Floats, PairFeatures, WordVectors
from retrieval.pair_sets import Pair, read_pairs
from retrieval.reranking import passage, standardised

# Sets by domain. Not used: sets under a non-commercial licence, and multi-hop ones, whose questions have more right
# passages than the one that is marked.
DOMAINS: Mapping[str, Sequence[str]] = {
    "encyclopedic": ("squad-train-paragraphs", "squad-train-sentences", "nq-qed", "boolq-dev", "nq-open-dev", "selqa"),
    "biomedical": ("bioasq", "medquad", "pubmedqa", "covid-qa", "covid-faq"),
    "rules": ("conditionalqa", "policyqa"),
    "technical": ("stackexchange", "texfaq", "software-faqs"),
}
QUESTIONS, PASSAGES = 250, 500  # per set: some 4,000 lists in 15 minutes on one thread, nearly all of it encoding
DEPTH = 50  # hits per list, as in service
RIDGES = (0.03, 0.1, 0.3, 1.0)
FACTORS = (0.25, 0.5, 0.75, 1.0)

Choice = tuple[float, float]  # ridge, factor


@dataclass(frozen=True, slots=True)
class Lists:
    """Candidates of the questions of one set, the relevant one first; short lists are padded."""

    inputs: Floats  # [n, DEPTH, 9] list-normalised first-stage score and features
    padding: Floats  # [n, DEPTH] 0, or -1e9 in padded places


def trained(pairs: Path, embedder: Embedder, words: WordVectors | None, seed: int) -> dict[str, Any]:
    """The record of weights trained on the sets in `pairs`; what wrote it may add how.

    Raises CorpusError when there are not two domains to be left out in turn.
    """
    domains = domains_in(pairs)
    sets = {
        name: sampled(read_pairs(pairs / name / "pairs.jsonl.gz"), seed) for names in domains.values() for name in names
    }
    return train(lists_of(sets, embedder, words), domains) | {"encoder": embedder.tag}


def domains_in(pairs: Path) -> dict[str, Sequence[str]]:
    """The sets of DOMAINS that are there, and nothing else beside them; where none is, every set is a domain."""
    if not pairs.is_dir():
        raise CorpusError(f"{pairs} is not there, or is no folder: name one that holds NAME/pairs.jsonl.gz.")
    there = sorted(path.parent.name for path in pairs.glob("*/pairs.jsonl.gz"))
    known = {domain: [name for name in names if name in there] for domain, names in DOMAINS.items()}
    found: dict[str, Sequence[str]] = {domain: names for domain, names in known.items() if names}
    found = found or {name: [name] for name in there}
    if len(found) < 2:
        raise CorpusError(
            f"{pairs} has {len(found)} domains of pairs ({', '.join(there) or 'no NAME/pairs.jsonl.gz'}), at least 2 "
            "are wanted: how strongly weights are held back is chosen on a domain that is left out."
        )
    return found


def train(lists: Mapping[str, Lists], domains: Mapping[str, Sequence[str]] = DOMAINS) -> dict[str, Any]:
    """The weights and the facts behind them: the choice made on left-out domains, and every set's gain there."""
    tried = {(ridge, factor): gains for ridge in RIDGES for factor, gains in left_out(lists, ridge, domains).items()}
    fits = {ridge: fit(lists, ridge) for ridge in RIDGES}
    ridge, factor = chosen(tried, {(r, f): float(f * fits[r].sum()) for r, f in tried})
    weights = factor * fits[ridge]
    return {
        "weights": {name: round(float(weight), 4) for name, weight in zip(FEATURES, weights, strict=True)},
        "ridge": ridge,
        "factor": factor,
        "lists": {name: len(group.inputs) for name, group in lists.items()},
        "first_stage_ndcg10": {name: round(ndcg10(group, 0 * weights), 4) for name, group in lists.items()},
        "gain_when_left_out": {name: round(gain, 4) for name, gain in tried[ridge, factor].items()},
    }


# ---------------------------------------------------------------------------------------------- fitting


def chosen(tried: Mapping[Choice, Mapping[str, float]], sizes: Mapping[Choice, float]) -> Choice:
    """The choice with the smallest weights among those within one standard error of the best on left-out sets.

    A set made worse counts four times a set made better: the reranker is the default and must first do no harm. Source
    of the one-standard-error rule: Breiman et al., Classification and Regression Trees, 1984.
    """
    values = {choice: np.array([g if g > 0 else 4 * g for g in gains.values()]) for choice, gains in tried.items()}
    best = max(values.values(), key=lambda value: float(value.mean()))
    bar = best.mean() - best.std(ddof=1) / np.sqrt(best.size)
    return min((choice for choice in values if values[choice].mean() >= bar), key=lambda choice: sizes[choice])


def fit(lists: Mapping[str, Lists], ridge: float) -> Floats:
    """The features' weights [8] relative to the first stage's, none negative; every set weighs the same.

    A matching feature with a negative weight would only cancel another one on these sets. Coordinate-wise Newton on a
    convex loss: no seed, no step size. Source: Cao et al., Learning to Rank: From Pairwise Approach to Listwise
    Approach, ICML 2007.
    """
    inputs = np.concatenate([group.inputs for group in lists.values()])  # [n, DEPTH, 9]
    padding = np.concatenate([group.padding for group in lists.values()])
    share = np.concatenate([np.full(len(g.inputs), 1 / len(g.inputs) / len(lists)) for g in lists.values()])
    held = np.array([0.0] + [ridge] * len(FEATURES))  # the first stage's own weight is free
    weights = np.eye(held.size)[0]
    scores = inputs @ weights + padding
    for _ in range(200):
        before = weights.copy()
        for i in range(weights.size):
            column = inputs[:, :, i]
            p = np.exp(scores - scores.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            mean = (p * column).sum(1)
            slope = share @ (mean - column[:, 0]) + held[i] * weights[i]
            curvature = share @ ((p * column**2).sum(1) - mean**2) + held[i] + 1e-9
            moved = max(0.0, weights[i] - slope / curvature)
            scores += (moved - weights[i]) * column
            weights[i] = moved
        if np.abs(weights - before).max() < 1e-5:
            break
    relative: Floats = weights[1:] / weights[0]
    return relative


def left_out(
    lists: Mapping[str, Lists], ridge: float, domains: Mapping[str, Sequence[str]]
) -> dict[float, dict[str, float]]:
    """By factor, the gain in nDCG@10 of every set under weights that never saw its domain."""
    gains: dict[float, dict[str, float]] = {factor: {} for factor in FACTORS}
    for names in domains.values():
        weights = fit({name: group for name, group in lists.items() if name not in names}, ridge)
        for name in names:
            before = ndcg10(lists[name], 0 * weights)
            for factor in FACTORS:
                gains[factor][name] = ndcg10(lists[name], factor * weights) - before
    return gains


def ndcg10(group: Lists, weights: Floats) -> float:
    """Mean nDCG@10 with one relevant passage a list: 1 / log2(1 + its rank), 0 below rank 10."""
    scores = group.inputs @ np.concatenate([[1.0], weights]) + group.padding
    ranks = 1 + (scores > scores[:, :1]).sum(1)
    return float(np.where(ranks <= 10, 1 / np.log2(1 + ranks), 0.0).mean())


# ---------------------------------------------------------------------------------------------- lists


def sampled(pairs: Sequence[Pair], seed: int) -> list[Pair]:
    """At most PASSAGES pairs, drawn without order; the first QUESTIONS of them ask, all of them are searched."""
    return random.Random(seed).sample(list(pairs), min(PASSAGES, len(pairs)))  # noqa: S311 (a sample, not a secret)


def lists_of(sets: Mapping[str, Sequence[Pair]], embedder: Embedder, words: WordVectors | None) -> dict[str, Lists]:
    """The lists of each set: for its first QUESTIONS pairs, the DEPTH best passages of all sets together.

    A question whose passage the first stage did not find is left out. So is, from a list, a passage that contains the
    right one or is contained in it: it is neither right nor wrong.
    """
    chunks = [chunk for name, pairs in sets.items() for chunk in chunks_of(name, pairs)]
    texts, plain = [passage(chunk) for chunk in chunks], [" ".join(c.text.lower().split()) for c in chunks]
    lexical, dense = Bm25Arm.build(texts), ExactArm(embedder.embed_documents(texts))
    visible, features = Visible(np.ones(len(chunks), np.bool_)), PairFeatures(words)

    def listed(pair: Pair, vector: Vector) -> Floats | None:
        found = gather(lexical.search(pair.question, 100, visible), dense.search(vector, 100, visible))
        found = found.filled(lexical.score(pair.question, found.rows, visible), dense.scores(vector, found.rows))
        cosines = dict(zip(found.rows.tolist(), found.cosine.tolist(), strict=True))
        ranking = convex(found, DEPTH)
        right = " ".join(pair.positive.lower().split())
        best = list(zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True))
        marked = [(row, score) for row, score in best if plain[row] == right][:1]
        wrong = [(row, score) for row, score in best if plain[row] not in right and right not in plain[row]]
        if not marked or not wrong:
            return None
        hits = [Hit(chunks[row], score, 1, "convex", cosines[row]) for row, score in marked + wrong]
        columns = np.column_stack([[hit.score for hit in hits], features(pair.question, hits)])
        return standardised(columns)

    found = {}
    for name, pairs in sets.items():
        asking = pairs[:QUESTIONS]
        vectors = embedder.embed_queries([pair.question for pair in asking])
        found[name] = padded([x for x in map(listed, asking, vectors) if x is not None])
    return found


def padded(inputs: Sequence[Floats]) -> Lists:
    """Lists of up to DEPTH candidates as one array."""
    lists = Lists(np.zeros((len(inputs), DEPTH, len(FEATURES) + 1)), np.full((len(inputs), DEPTH), -1e9))
    for row, columns in enumerate(inputs):
        lists.inputs[row, : len(columns)] = columns
        lists.padding[row, : len(columns)] = 0.0
    return lists


def chunks_of(name: str, pairs: Sequence[Pair]) -> list[Chunk]:
    """A set's part of the library, each passage once: all positives, and what is known to be wrong for who asks."""
    texts = {(pair.title, pair.positive): None for pair in pairs}
    texts |= {(pair.title, text): None for pair in pairs[:QUESTIONS] for text in pair.others}
    return [
        Chunk(f"{name}#{row:05}", text, 0, "", SourceRef(f"{name}#{row:05}", title, "", "", ""), "", frozenset())
        for row, (title, text) in enumerate(texts)
    ]
