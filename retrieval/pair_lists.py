"""Lists to learn from and lists to choose by: a question with passages of its set, found by our own first stage.

Only what they are, how good an order of one is, and how they are kept; who makes them is pair_mining.py.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log2
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class LearnList:
    """One right passage and the wrong ones that were found before or after it, as rows of the set's passages."""

    set: str
    question: str
    right: int
    wrong: tuple[int, ...]  # best first
    given: tuple[int, ...]  # wrong ones that came with the set
    prior: tuple[float, ...] = ()  # of the right one and of each wrong one; nothing where the right one was not found


@dataclass(frozen=True, slots=True)
class DevList:
    """The best passages for a question with what the prior thinks of each; `right` are rows, found or not."""

    set: str
    question: str
    rows: tuple[int, ...]
    prior: tuple[float, ...]
    right: tuple[int, ...]

    def ndcg10(self, scores: Sequence[float]) -> float:
        """nDCG@10 of the rows ordered by `scores`; equal scores keep their order."""
        order = sorted(range(len(self.rows)), key=lambda i: -scores[i])[:10]
        gained = sum(1 / log2(2 + place) for place, i in enumerate(order) if self.rows[i] in self.right)
        return gained / sum(1 / log2(2 + place) for place in range(min(10, len(self.right))))


@dataclass(frozen=True, slots=True)
class Lists:
    """All lists of a training, and of how many questions the first stage found no right passage."""

    learn: tuple[LearnList, ...]
    dev: tuple[DevList, ...]
    missed: int


def write_lists(file: Path, lists: Lists) -> None:
    """Keep the lists in a file, which appears whole."""
    part = file.with_suffix(".part")
    with part.open("w", encoding="utf-8") as out:
        out.write(json.dumps({"missed": lists.missed}) + "\n")
        for kind, some in (("learn", lists.learn), ("dev", lists.dev)):
            for one in some:
                out.write(json.dumps({"kind": kind, **asdict(one)}) + "\n")
    part.replace(file)


def read_lists(file: Path) -> Lists:
    """The lists as they were kept."""
    with file.open(encoding="utf-8") as lines:
        missed = json.loads(next(lines))["missed"]
        rows = [json.loads(line) for line in lines]
    plain: list[dict[str, Any]] = [
        {key: tuple(v) if isinstance(v, list) else v for key, v in row.items()} for row in rows
    ]
    kinds = [row.pop("kind") for row in plain]
    learn = [LearnList(**row) for kind, row in zip(kinds, plain, strict=True) if kind == "learn"]
    dev = [DevList(**row) for kind, row in zip(kinds, plain, strict=True) if kind == "dev"]
    return Lists(tuple(learn), tuple(dev), missed)
