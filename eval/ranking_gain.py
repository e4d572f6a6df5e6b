"""What a second ranking of the same queries gains over a first: nDCG@10 query by query, and the mean difference.

Rankings are of documents, best first, as in beir.py. It decides nothing; gates and their stricter bounds are
verdicts.py and intervals.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval.beir import Qrels, falling
from eval.intervals import Sample, bca_quantile, interval, resampled


@dataclass(frozen=True, slots=True)
class Gain:
    """Mean nDCG@10 of both rankings over the same `n` queries, and the mean of the differences query by query.

    `low` and `high` hold the true difference with a chance of 95 % as far as the queries seen show it (a paired
    bootstrap, BCa); `safe_low` and `safe_high` also allow for losses so rare that none of them was seen.
    """

    n: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    safe_low: float
    safe_high: float


def ndcg10(rankings: Mapping[str, Sequence[str]], qrels: Qrels) -> dict[str, float]:
    """nDCG@10 by query id, for every query that has a relevant document; one that was not ranked has 0."""
    import ir_measures
    from ir_measures import nDCG

    judged = {query: dict(grades) for query, grades in qrels.items() if any(g > 0 for g in grades.values())}
    run = {query: falling(rankings.get(query, ())) for query in judged}
    found = {metric.query_id: float(metric.value) for metric in ir_measures.iter_calc([nDCG @ 10], judged, run)}
    return {query: found.get(query, 0.0) for query in judged}


def gain(before: Mapping[str, float], after: Mapping[str, float], seed: int = 7) -> Gain:
    """The Gain of `after` over `before`, values by query id. Raises ValueError unless both know the same queries."""
    if not before or before.keys() != after.keys():
        raise ValueError(f"{len(before)} and {len(after)} queries do not pair up: both rankings need the same, some.")
    sample = Sample.of([after[query] - before[query] for query in before], -1, 1)
    means = resampled(sample, seed)
    safe_low, safe_high = interval(sample, 0.025, seed)
    return Gain(
        n=len(before),
        before=sum(before.values()) / len(before),
        after=sum(after[query] for query in before) / len(before),
        difference=sample.mean,
        low=bca_quantile(sample, means, 0.025),
        high=bca_quantile(sample, means, 0.975),
        safe_low=safe_low,
        safe_high=safe_high,
    )
