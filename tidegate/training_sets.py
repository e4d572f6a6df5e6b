"""A question set as a training set: dev questions only, over the passages of the library that they are asked of.

Frozen questions measure, so none is ever learnt from: neither one of them nor a dev question with the same words.
Follow-ups, which do not stand alone, and questions without an answer are left out too.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import CorpusError

if TYPE_CHECKING:
    from domain.types import Chunk
    from eval.questions import Question
    from retrieval.pair_sets import Asked, TrainingSet
    from tidegate.settings import Settings

_WORD = re.compile(r"\w+")
MOST_DOCUMENTS = 100  # right ones of a question: with more, "right" says little about any


@dataclass(frozen=True, slots=True)
class Taken:
    """A training set and what was not taken into it, by reason."""

    training: "TrainingSet"
    left_out: dict[str, int]


def from_questions(settings: "Settings", questions: Path, corpus: Path | None) -> Taken:
    """The dev questions of a JSON lines file or BEIR folder, over `corpus` (left out: the folder, or the sample
    library). Raises CorpusError when there is none, or when their answers do not stand in the corpus.
    """
    from eval.collection import load_questions
    from tidegate.compose import anonymous
    from tidegate.sample import corpus_path

    everything = load_questions(questions, anonymous(settings))
    if not any(q.slice == "dev" for q in everything):
        raise CorpusError(
            f"{questions} has {len(everything)} questions and none for training (slice dev): frozen ones, and those of "
            "a collection with a single split, are kept to measure on. Mark some as dev, or give a split train or dev."
        )
    where = corpus or (questions if questions.is_dir() else corpus_path(settings))
    return taken(questions.resolve().name, everything, tuple(_chunks(settings, where)))


def taken(name: str, questions: "Sequence[Question]", chunks: "tuple[Chunk, ...]") -> Taken:
    """The training set of the dev questions whose evidence is in `chunks`."""
    from retrieval.pair_sets import TrainingSet, folded, without

    left_out = {"frozen": 0, "unanswerable": 0, "follow-ups": 0, "not found in the corpus": 0}
    asked = []
    places = _places(chunks)
    for question in questions:
        reason = _unfit(question)
        found = None if reason else _asked(question, chunks, places)
        if found is None:
            left_out[reason or "not found in the corpus"] += 1
        else:
            asked.append(found)
    frozen = frozenset(folded(question.query) for question in questions if question.slice != "dev")
    training = without(TrainingSet(name, chunks, tuple(asked)), frozen)
    left_out["same words as a frozen one"] = len(asked) - len(training.asked)
    if not training.asked:
        raise CorpusError(
            f"No question of {name} can be learnt from: of {len(questions)}, "
            f"{', '.join(f'{n} are {why}' for why, n in left_out.items() if n)}. Is --corpus their library?"
        )
    return Taken(training, {why: n for why, n in left_out.items() if n})


def _unfit(question: "Question") -> str:
    """Why a question is not learnt from; empty when it may be."""
    if question.slice != "dev":
        return "frozen"
    if question.type == "null" or not question.evidence:
        return "unanswerable"
    return "follow-ups" if question.history else ""


def _asked(question: "Question", chunks: "tuple[Chunk, ...]", places: dict[str, list[int]]) -> "Asked | None":
    """The question with the rows that answer it: those that hold the sentence, or the best one of a document."""
    from retrieval.pair_sets import Asked, folded

    right: list[int] = []
    unclear: list[int] = []
    for anchor in question.evidence[:MOST_DOCUMENTS]:
        rows = places.get(anchor.doc_id, [])
        holding = [row for row in rows if anchor.text and folded(anchor.text) in folded(chunks[row].text)]
        if not holding and not anchor.text and rows:
            holding = [
                max(rows, key=lambda row: (_common(f"{question.query} {question.answer}", chunks[row].text), -row))
            ]
        right += holding
        unclear += [row for row in rows if row not in holding]
    if not right:
        return None
    rights = tuple(dict.fromkeys(right))
    return Asked(question.query, rights, unclear=tuple(row for row in dict.fromkeys(unclear) if row not in rights))


def _common(one: str, other: str) -> int:
    """How many different words two texts share."""
    return len(set(_WORD.findall(one.lower())) & set(_WORD.findall(other.lower())))


def _places(chunks: "Sequence[Chunk]") -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for row, chunk in enumerate(chunks):
        places.setdefault(chunk.source.doc_id, []).append(row)
    return places


def _chunks(settings: "Settings", corpus: Path) -> "Iterator[Chunk]":
    """The corpus cut as a build would cut it."""
    from retrieval.chunking import BY_MEANING, BY_PARTS, chunks_of
    from retrieval.documents import Corpus, collection_file
    from retrieval.families import passages_of
    from tidegate.build import PASSAGE_TOKENS
    from tidegate.compose import make_embedder

    if not corpus.exists():
        raise CorpusError(f"Corpus {corpus} does not exist: name the library that the questions ask about, --corpus.")
    chosen = settings.chunking
    is_default_size = chosen.tokens == type(chosen).model_fields["tokens"].default
    is_collection = collection_file(corpus, "auto") is not None
    size = PASSAGE_TOKENS if is_collection and is_default_size else chosen.tokens
    embedder = make_embedder(settings) if chosen.strategy in BY_MEANING else None
    for document in Corpus(corpus, "auto", frozenset(), settings.access.tenant):
        cut = chunks_of(document, chosen.strategy, size, chosen.overlap, embedder)
        yield from passages_of(cut) if chosen.strategy in BY_PARTS else cut
