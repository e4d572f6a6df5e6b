"""What a reranker is trained on: questions, the passages that answer them, and the passages those are found among.

A training set comes from files of pairs or from a question set over a corpus (tidegate/training_sets.py); from here on
there is no difference. Nothing is searched here: hard negatives are pair_mining.py.
"""

import gzip
import hashlib
import json
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from domain.errors import CorpusError
from domain.types import Chunk, SourceRef

MOST_PASSAGES = 4_000  # of one set that are searched: beyond that, embedding costs more than training
TOLD = 5  # broken lines that are named


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and the passage that answers it; `others` are passages known not to."""

    question: str
    title: str
    positive: str
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the passages that answer it, and those of which it is known that they do not, as rows of a set."""

    question: str
    right: tuple[int, ...]
    wrong: tuple[int, ...] = ()
    unclear: tuple[int, ...] = ()  # rows that are neither: other passages of a document that answers it


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Questions over passages of their own; `source` tells origin and licence where they are known."""

    name: str
    chunks: tuple[Chunk, ...]
    asked: tuple[Asked, ...]
    source: str = ""


def read_pairs(file: Path) -> list[Pair]:
    """The pairs of one set, in file order. Raises CorpusError naming every broken line, up to five."""
    pairs: list[Pair] = []
    broken: list[int] = []
    try:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip() and (pair := _pair(line)) is None:
                    broken.append(number)
                elif line.strip() and pair is not None:
                    pairs.append(pair)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise CorpusError(f"{file} cannot be read ({error}): it has to be gzipped JSON lines.") from error
    if broken:
        raise CorpusError(
            f"{file} has {len(broken)} lines that are no pair, as line {', '.join(map(str, broken[:TOLD]))}: each "
            "needs a question and a positive, both texts; negatives is a list of texts, title a text."
        )
    return pairs


def _pair(line: str) -> Pair | None:
    try:
        row = json.loads(line)
        others = row.get("negatives") or ()
        texts = [row["question"], row.get("title") or "", row["positive"], *others]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not all(isinstance(text, str) for text in texts) or not texts[0].strip() or not texts[2].strip():
        return None
    return Pair(texts[0], texts[1], texts[2], tuple(others))


def read_pair_sets(folder: Path, names: Sequence[str], most: int, seed: int) -> list[TrainingSet]:
    """The sets NAME/pairs.jsonl.gz below `folder`, or those named; of each at most `most` questions, drawn by seed.

    Raises CorpusError when there is none, or a named one is missing.
    """
    if not folder.is_dir():
        raise CorpusError(f"{folder} is not there, or is no folder: name one that holds NAME/pairs.jsonl.gz.")
    there = sorted(path.parent.name for path in folder.glob("*/pairs.jsonl.gz"))
    if not there or (lost := sorted(set(names) - set(there))):
        wanted = f"no set {lost[0]!r}" if there else "no NAME/pairs.jsonl.gz"
        raise CorpusError(f"{folder} has {wanted}, there is: {', '.join(there) or 'nothing'}.")
    chosen = [name for name in there if name in names or not names]
    return [of_pairs(name, read_pairs(folder / name / "pairs.jsonl.gz"), most, seed) for name in chosen]


def of_pairs(name: str, pairs: Sequence[Pair], most: int, seed: int) -> TrainingSet:
    """At most `most` of the pairs ask; all of them are searched, up to MOST_PASSAGES, those of who asks first.

    Equal seeds draw equally.
    """
    rng = random.Random(seed)  # noqa: S311 - a sample, not a secret
    asking = [pairs[i] for i in rng.sample(range(len(pairs)), min(most, len(pairs)))]
    own = dict.fromkeys((pair.title, text) for pair in asking for text in (pair.positive, *pair.others))
    rest = [place for pair in pairs if (place := (pair.title, pair.positive)) not in own]
    rest = list(dict.fromkeys(rest))
    rng.shuffle(rest)
    passages = (*own, *rest[: max(0, MOST_PASSAGES - len(own))])
    rows = {passage: row for row, passage in enumerate(passages)}
    asked = tuple(
        Asked(
            pair.question,
            (rows[pair.title, pair.positive],),
            tuple(rows[pair.title, text] for text in pair.others if text != pair.positive),
        )
        for pair in asking
    )
    return TrainingSet(name, tuple(_chunk(name, row, *passage) for row, passage in enumerate(passages)), asked)


def _chunk(name: str, row: int, title: str, text: str) -> Chunk:
    place = f"{name}#{row:06}"
    return Chunk(place, text, 0, "", SourceRef(place, title, "", "", ""), "", frozenset())


def folded(text: str) -> str:
    """The text in lower case with single blanks: equal for two spellings of the same passage."""
    return " ".join(text.lower().split())


def held_out(training: TrainingSet, share: float, most: int) -> tuple[TrainingSet, TrainingSet]:
    """The set to learn from and the one to choose by: no question and no right passage is in both.

    A question is held out by the digest of its first right passage, so that all questions about it stay together and a
    question keeps its side when the set grows.
    """
    by_digest = [(_share_of(training.chunks[asked.right[0]].text), asked) for asked in training.asked]
    chosen = sorted((value, place) for place, (value, _) in enumerate(by_digest) if value < share)[:most]
    bar = chosen[-1][0] if len(chosen) == most else share  # all questions of a passage, or none
    dev = tuple(asked for value, asked in by_digest if value < bar)
    rights = {row for asked in dev for row in asked.right}
    words = {folded(asked.question) for asked in dev}
    learnt = tuple(
        asked
        for value, asked in by_digest
        if value >= bar and not rights & set(asked.right) and folded(asked.question) not in words
    )
    return replace(training, asked=learnt), replace(training, asked=dev)


def apart(sides: Sequence[tuple[TrainingSet, TrainingSet]]) -> list[tuple[TrainingSet, TrainingSet]]:
    """The two sides of several sets, with nothing learnt from in one that another is chosen by: neither the words of a
    question nor a right passage. Sets made of the same articles share both."""
    questions = {folded(asked.question) for _, dev in sides for asked in dev.asked}
    rights = {folded(dev.chunks[row].text) for _, dev in sides for asked in dev.asked for row in asked.right}

    def learnable(learn: TrainingSet, asked: Asked) -> bool:
        return folded(asked.question) not in questions and rights.isdisjoint(
            folded(learn.chunks[row].text) for row in asked.right
        )

    return [(replace(one, asked=tuple(a for a in one.asked if learnable(one, a))), dev) for one, dev in sides]


def _share_of(text: str) -> float:
    """0 to 1, evenly spread, and the same for the same text."""
    return int.from_bytes(hashlib.sha256(text.encode(errors="replace")).digest()[:6]) / 2**48


def without(training: TrainingSet, forbidden: Collection[str]) -> TrainingSet:
    """The set without the questions that are in `forbidden`, which holds them `folded`."""
    return replace(training, asked=tuple(a for a in training.asked if folded(a.question) not in forbidden))
