"""Trains the embedded reranker's weights: `python -m retrieval.feature_training --pairs DIR --out FILE`.

DIR holds folders of (question, passage) pairs. Each becomes a small corpus of its own, searched by our own first stage,
so that the wrong passages are the ones it finds. A linear model over list-normalised features is fitted by listwise
softmax; then all its weights are scaled by one factor, chosen where it has to hold: on domains left out of the fit.
Everything is seeded and deterministic; no test collection is touched.
"""

import argparse
import gzip
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from domain.ports import Embedder
from domain.types import Chunk, Hit, SourceRef
from retrieval.arms import Visible
from retrieval.dense import ExactArm
from retrieval.fusion import convex, gather
from retrieval.lexical import Bm25Arm
from retrieval.pair_features import FEATURES, Floats, PairFeatures, WordVectors
from retrieval.reranking import passage, standardised

# Sets by domain; a set that is not named here, such as one under a non-commercial licence, is not used.
DOMAINS: Mapping[str, Sequence[str]] = {
    "encyclopedic": (
        "squad-train-paragraphs", "squad-train-sentences", "nq-qed", "boolq-dev", "nq-open-dev", "selqa",
        "2wikimultihop-train",
    ),
    "biomedical": ("bioasq", "medquad", "pubmedqa", "covid-qa", "covid-faq"),
    "rules": ("conditionalqa", "policyqa"),
    "technical": ("stackexchange", "texfaq", "software-faqs"),
    "mixed": ("expertqa", "multihop-rag-news"),
}  # fmt: skip
QUESTIONS, PASSAGES = 250, 500  # per set: 19 sets make some 4,000 lists in 10 minutes on one thread
DEPTH = 50  # hits per list, as in service
RIDGE = 1e-2
FACTORS = tuple(i / 20 for i in range(25))  # 0 keeps the first stage's order; above 1 trusts the fit more than itself


@dataclass(frozen=True, slots=True)
class Listed:
    """One question's candidates: list-normalised first-stage score and features [n, 9], and which one is relevant."""

    inputs: Floats
    relevant: int


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and the passage that answers it; `others` are passages known not to."""

    question: str
    title: str
    positive: str
    others: tuple[str, ...]


def main() -> None:
    """Read pairs, make lists, fit, choose the factor, write the weights and what they come from."""
    from retrieval.neural import MINILM, SentenceEncoder, minilm_folder
    from retrieval.word_vectors import word_vectors

    parser = argparse.ArgumentParser(description="Train the embedded reranker's weights.")
    parser.add_argument("--pairs", type=Path, required=True, help="folder of NAME/pairs.jsonl.gz")
    parser.add_argument("--out", type=Path, required=True, help="weights file to write, JSON")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    embedder = SentenceEncoder(minilm_folder(), name=MINILM)
    words = word_vectors(minilm_folder())
    lists = {
        name: lists_of(sampled(read_pairs(given.pairs / name / "pairs.jsonl.gz"), given.seed), embedder, words)
        for names in DOMAINS.values()
        for name in names
    }
    command = f"python -m retrieval.feature_training --pairs DIR --out {given.out.name} --seed {given.seed}"
    record = train(lists) | {"first_stage": f"convex of bm25 and {embedder.tag}", "command": command}
    given.out.write_text(json.dumps(record, indent=2) + "\n", "utf-8")


def train(lists: Mapping[str, Sequence[Listed]]) -> dict[str, Any]:
    """The weights and the facts behind them: gains of left-out sets by factor, counts, the fit's own weights."""
    factor, gains = chosen_factor(lists)
    fitted = fit(lists)
    return {
        "weights": {name: round(float(factor * w), 4) for name, w in zip(FEATURES, fitted, strict=True)},
        "factor": factor,
        "fitted": {name: round(float(w), 4) for name, w in zip(FEATURES, fitted, strict=True)},
        "left_out_ndcg10": {
            name: {"lists": len(lists[name]), "first_stage": round(before, 4), "reranked": round(after, 4)}
            for name, (before, after) in gains.items()
        },
    }


# ---------------------------------------------------------------------------------------------- fitting


def fit(lists: Mapping[str, Sequence[Listed]]) -> Floats:
    """The features' weights [8] relative to the first stage's, by listwise softmax; every set weighs the same.

    Newton's method on a convex loss with nine parameters: no seed, no step size. Source: Cao et al., Learning to Rank:
    From Pairwise Approach to Listwise Approach, ICML 2007.
    """
    weights = np.eye(len(FEATURES) + 1)[0]
    for _ in range(50):
        gradient, curvature = RIDGE * weights, RIDGE * np.eye(weights.size)
        for group in lists.values():
            for listed in group:
                scores = listed.inputs @ weights
                p = np.exp(scores - scores.max())
                p /= p.sum()
                mean = p @ listed.inputs
                gradient = gradient + (mean - listed.inputs[listed.relevant]) / len(group)
                spread = listed.inputs.T @ (p[:, None] * listed.inputs) - np.outer(mean, mean)
                curvature = curvature + spread / len(group)
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    relative: Floats = weights[1:] / weights[0]
    return relative


def chosen_factor(lists: Mapping[str, Sequence[Listed]]) -> tuple[float, dict[str, tuple[float, float]]]:
    """The factor with the best mean nDCG@10 over left-out sets among those that make the fewest of them worse.

    Also, by set, nDCG@10 before and after at that factor, with weights that never saw the set's domain.
    """
    left_out: dict[str, Floats] = {}
    for names in DOMAINS.values():
        seen = {name: group for name, group in lists.items() if name not in names}
        left_out |= {name: fit(seen) for name in names if lists.get(name)}
    table = np.array(
        [[ndcg10(lists[name], factor * w) for name, w in left_out.items()] for factor in FACTORS]
    )  # [n_factors, n_sets]
    gains = table - table[0]
    worst_first = [
        (np.minimum(gain, 0).sum() * 4 + gain.sum(), -factor) for gain, factor in zip(gains, FACTORS, strict=True)
    ]
    best = max(range(len(FACTORS)), key=lambda i: worst_first[i])
    return FACTORS[best], dict(zip(left_out, zip(table[0], table[best], strict=True), strict=True))


def ndcg10(group: Sequence[Listed], weights: Floats) -> float:
    """Mean nDCG@10 with one relevant passage a list: 1 / log2(1 + its rank), 0 below rank 10."""
    total = 0.0
    for listed in group:
        scores = listed.inputs @ np.concatenate([[1.0], weights])
        rank = 1 + int((scores > scores[listed.relevant]).sum())
        total += 1 / np.log2(1 + rank) if rank <= 10 else 0.0
    return total / len(group)


# ---------------------------------------------------------------------------------------------- lists


def read_pairs(file: Path) -> list[Pair]:
    """The pairs of one set, in file order."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    return [Pair(r["question"], r.get("title") or "", r["positive"], tuple(r.get("negatives") or ())) for r in rows]


def sampled(pairs: Sequence[Pair], seed: int) -> list[Pair]:
    """At most PASSAGES pairs, drawn without order; the first QUESTIONS of them ask, all of them are searched."""
    return random.Random(seed).sample(list(pairs), min(PASSAGES, len(pairs)))  # noqa: S311 (a sample, not a secret)


def lists_of(pairs: Sequence[Pair], embedder: Embedder, words: WordVectors | None) -> list[Listed]:
    """One list per question whose passage the first stage found: its DEPTH best of the set's passages.

    A passage that contains the right one, or is contained in it, is neither right nor wrong and is left out.
    """
    chunks = chunks_of(pairs)
    lexical = Bm25Arm.build([passage(chunk) for chunk in chunks])
    dense = ExactArm(embedder.embed_documents([passage(chunk) for chunk in chunks]))
    visible, features = Visible(np.ones(len(chunks), np.bool_)), PairFeatures(words)
    lists = []
    for pair in pairs[:QUESTIONS]:
        vector = embedder.embed_queries([pair.question])[0]
        found = gather(lexical.search(pair.question, 100, visible), dense.search(vector, 100, visible))
        found = found.filled(lexical.score(pair.question, found.rows, visible), dense.scores(vector, found.rows))
        ranking = convex(found, DEPTH)
        cosines = dict(zip(found.rows.tolist(), found.cosine.tolist(), strict=True))
        hits = [
            Hit(chunks[row], score, rank, "convex", cosines[row])
            for rank, (row, score) in enumerate(zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True), 1)
            if chunks[row].text == pair.positive or not overlaps(chunks[row].text, pair.positive)
        ]
        right = [i for i, hit in enumerate(hits) if hit.chunk.text == pair.positive]
        if right:
            columns = np.column_stack([[hit.score for hit in hits], features(pair.question, hits)])
            lists.append(Listed(standardised(columns), right[0]))
    return lists


def chunks_of(pairs: Sequence[Pair]) -> list[Chunk]:
    """The set's corpus: every positive and the known wrong passages of the questions that ask, each once."""
    texts = {(pair.title, pair.positive): None for pair in pairs}
    texts |= {(pair.title, text): None for pair in pairs[:QUESTIONS] for text in pair.others}
    return [
        Chunk(f"c{row:05}", text, 0, "", SourceRef(f"c{row:05}", title, "", "", ""), "", frozenset())
        for row, (title, text) in enumerate(texts)
    ]


def overlaps(a: str, b: str) -> bool:
    """True when one text contains the other, whatever the white space and the case."""
    a, b = " ".join(a.lower().split()), " ".join(b.lower().split())
    return a in b or b in a


if __name__ == "__main__":
    main()
