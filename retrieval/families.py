"""Passages that are searched by their parts: each row of the version is a part, a hit on it is a hit on its passage.

A part has its passage's id and a number, `doc#3-0123456789!2`; the parts of a passage are neighbouring rows and join
up to its text. Only rows, postings and vectors know parts: whatever leaves an index is a passage. How a passage is
parted is chunkers_hierarchical.py; why it is kept like this, docs/adr/0053.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from domain.types import Chunk
from retrieval.arms import Ranking
from retrieval.phases import Asked, Fused

_MARK = "!"  # below all characters of ids but blanks, so that parts stand in the order of their passages


def parted(passage: Chunk, texts: Sequence[str]) -> list[Chunk]:
    """The parts of a passage as chunks of their own, at most ten; the passage itself where it has none."""
    return [replace(passage, id=part_id(passage.id, i), text=text) for i, text in enumerate(texts)] or [passage]


def part_id(passage: str, number: int = 0) -> str:
    """The id of a part of the passage with this id."""
    return f"{passage}{_MARK}{number}"


def passage_id(part: str) -> str:
    """The id of the passage that a part belongs to."""
    return part.rpartition(_MARK)[0]


def after_parts(passage: str) -> str:
    """What sorts after all parts of the passage with this id, and before those of any other."""
    return f"{passage}{chr(ord(_MARK) + 1)}"


def joined(parts: Iterable[Chunk]) -> Chunk:
    """The passage of all its parts, in their order."""
    found = list(parts)
    return replace(found[0], id=passage_id(found[0].id), text="".join(part.text for part in found))


def passages_of(parts: Iterable[Chunk]) -> Iterator[Chunk]:
    """The passages of parts that stand in order."""
    return (joined(of_one) for _, of_one in groupby(parts, key=lambda part: passage_id(part.id)))


def widened(asked: Asked, parts: int) -> Asked:
    """What to ask of rows so that `asked.n` passages of at most `parts` rows come of it, as far as there are any."""
    return replace(asked, n=asked.n * parts, depth=asked.depth * parts)


def folded(found: Fused, n: int, passage_of: Callable[[int], str]) -> Fused:
    """The `n` best passages of ranked rows: each once, as its best row and with the scores of that row."""
    rows, scores = found.ranking.rows.tolist(), found.ranking.scores
    places: dict[str, int] = {}
    for place, row in enumerate(rows):
        places.setdefault(passage_of(row), place)
        if len(places) == n:
            break
    kept = np.array(list(places.values()), np.int64)
    return replace(found, ranking=Ranking(found.ranking.rows[kept], scores[kept]))
