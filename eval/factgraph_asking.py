"""Deals the questions out: how many of each kind, in which order, none of them twice.

What can be asked is in factgraph_walks.py (answerable) and factgraph_nulls.py (not).
"""

from collections.abc import Callable, Iterator
from random import Random

from domain.types import Turn
from eval import factgraph_nulls as nulls
from eval import factgraph_walks as walks
from eval.factgraph_graph import Draft, Graph
from eval.factgraph_vocabulary import dice

Bucket = Callable[[Graph, Random], Iterator[Draft]]

# Which drafts one round of forty questions takes from each bucket; together they make the mix of the whole set.
BUCKETS: dict[str, tuple[int, Bucket]] = {
    "one": (14, lambda graph, rng: walks.chains(graph, rng, 1)),
    "two": (4, lambda graph, rng: walks.chains(graph, rng, 2)),
    "three": (2, lambda graph, rng: walks.chains(graph, rng, 3)),
    "four": (1, lambda graph, rng: walks.chains(graph, rng, 4)),
    "follow_up": (1, walks.follow_ups),
    "comparison": (4, walks.comparisons),
    "winner": (1, walks.winners),
    "behind": (1, walks.comparisons_behind),
    "as_of": (1, walks.as_of),
    "change": (1, walks.changes),
    "order": (2, walks.orders),
    "leader": (1, walks.leaders),
    "near_miss": (2, nulls.near_misses),
    "unstated": (2, nulls.unstated),
    "hidden": (1, nulls.hidden),
    "year": (1, nulls.other_years),
    "outside": (1, nulls.outside),
}


def deal(graph: Graph) -> Iterator[tuple[int, Draft]]:
    """Every draft once, each with the number of its round; ends when all buckets are empty.

    The order does not depend on how many are taken, so a longer set begins with the shorter one.
    """
    seen: set[tuple[str, tuple[Turn, ...]]] = set()
    piles: dict[str, list[Draft]] = {}
    for name, (_, bucket) in BUCKETS.items():
        drafts = list(bucket(graph, dice(graph.world.seed, "ask", name)))
        dice(graph.world.seed, "deal", name).shuffle(drafts)
        piles[name] = drafts
    order = dice(graph.world.seed, "rounds")
    number = 0
    while any(piles.values()):
        turn = [name for name, (share, _) in BUCKETS.items() for _ in range(share)]
        order.shuffle(turn)
        for name in turn:
            while piles[name]:
                draft = piles[name].pop()
                if (draft.query, draft.history) not in seen:
                    seen.add((draft.query, draft.history))
                    yield number, draft
                    break
        number += 1
