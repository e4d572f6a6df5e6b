"""Answers whose grade is true by construction, out of the sample library: what a judge is calibrated on.

Every case says what is known, so no person has to label it. A right answer quotes all gold sentences; a partial one
lacks those that hold the answer, or adds a claim that nothing states; a wrong one quotes, faithfully, something beside
the point; an ungrounded one has its numbers or names changed, cites a passage that says something else, or nothing.
Each is also there with sentences and passages the other way round, and with more to read: neither changes its grade.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from random import Random

from domain.grounding import prose_sentences
from domain.judging import Grade, Passage, Submission
from domain.naming import Naming
from domain.ports import Generator
from domain.prompt import plan
from domain.streaming import AnswerStream
from domain.types import Chunk, Draft, Evidence, SourceRef
from eval.factgraph import Library
from eval.metrics import folded
from eval.questions import Anchor, Question

FILLERS = 3  # sentences that make an answer longer
LEADS = ("", "Here is what the sources say:\n\n")


@dataclass(frozen=True, slots=True)
class Case:
    """A submission with its true grade, and twice more: the other way round, and with more to read."""

    id: str
    grade: Grade
    submission: Submission
    turned: Submission
    longer: Submission


@dataclass(frozen=True, slots=True)
class _Said:
    """A sentence of an answer and the sentence of the library whose passage it cites; None cites nothing."""

    text: str
    source: Anchor | None


def cases(library: Library, n: int, seed: int = 7) -> tuple[Case, ...]:
    """Four cases for each of at most `n` questions, and two for each of at most `n` that the library cannot answer.

    Comparisons, and questions whose answer stands in none of their gold sentences, are left out: what quoting them says
    is not certain. Equal arguments give equal cases.
    """
    shelf = _Shelf(library)
    rng = Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    plain = [q for q in library.questions if not q.history]
    fit = [q for q in plain if q.type in ("inference", "temporal") and shelf.quotable(q)]
    null = [q for q in plain if q.type == "null"]
    found: list[Case] = []
    for question in rng.sample(fit, min(n, len(fit))):
        found += shelf.answered(question, rng)
    for question in rng.sample(null, min(n, len(null))):
        found += shelf.unanswerable(question, rng)
    return tuple(found)


def digest(listed: Sequence[Case]) -> str:
    """Twelve hex digits of every word of every case."""
    text = json.dumps([asdict(case) for case in listed], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


async def written(generator: Generator, listed: Sequence[Case]) -> dict[str, Submission]:
    """What `generator` writes, as readers would see it, by question: on the passages of the first case of each.

    Once a question, because the bounds of a share are those of answers that have nothing to do with each other.
    """
    first: dict[str, Submission] = {}
    for case in listed:
        first.setdefault(case.id.partition("-")[0], case.submission)
    return {question: await _written(generator, submission) for question, submission in first.items()}


async def _written(generator: Generator, of: Submission) -> Submission:
    evidence = tuple(_evidence(passage) for passage in of.passages)
    stream = AnswerStream(evidence, Naming(()))
    async with aclosing(generator.generate(plan(evidence, (), of.question, 0))) as pieces:
        async for piece in pieces:
            if not isinstance(piece, Draft):
                stream.feed(piece.text)
    stream.close()
    cited = {citation.sid for citation in stream.citations}
    kept = tuple(passage for passage in of.passages if passage.marker in cited)
    return Submission(of.question, of.accepted, of.facts, stream.text, kept)


def _evidence(passage: Passage) -> Evidence:
    source = SourceRef(passage.marker, passage.title, "", "", "")
    return Evidence(passage.marker, Chunk(passage.marker, passage.quote, 0, "", source, "", frozenset()), 1, 1)


class _Shelf:
    """The told sentences of a library that can stand alone in an answer, and answers made of them."""

    def __init__(self, library: Library) -> None:
        self._documents = {document.doc_id: document for document in library.documents}
        told = sorted({(a.doc_id, a.text) for a in library.told.values()})
        alone = [anchor for anchor in (Anchor(*one) for one in told) if _stands_alone(anchor.text)]
        self._told = {anchor: folded(anchor.text) for anchor in alone}

    def quotable(self, question: Question) -> bool:
        """True when every gold sentence can stand alone and quoting them gives the answer."""
        anchors = question.evidence
        return all(_stands_alone(a.text) for a in anchors) and any(_gives(a.text, question) for a in anchors)

    def answered(self, question: Question, rng: Random) -> list[Case]:
        """One case a grade."""
        gold = list(question.evidence)
        others = self._others(question, rng)
        besides, fillers = self._nearest(question, others), others[:FILLERS]
        rest = [anchor for anchor in gold if not _gives(anchor.text, question)]
        if rest:
            partly = [_Said(anchor.text, anchor) for anchor in rest]
        else:
            partly = [*(_Said(a.text, a) for a in gold), self._made_up(besides, others, rng)]
        made = {
            Grade.RIGHT: [_Said(anchor.text, anchor) for anchor in gold],
            Grade.PARTLY: partly,
            Grade.WRONG: [_Said(besides.text, besides)],
            Grade.UNGROUNDED: self._ungrounded(gold, others, rng),
        }
        return [self._case(question, grade, said, fillers, others[-2:], rng) for grade, said in made.items()]

    def unanswerable(self, question: Question, rng: Random) -> list[Case]:
        """An answer where none can be given: quoted, and made up."""
        others = self._others(question, rng)
        besides, fillers = self._nearest(question, others), others[:FILLERS]
        return [
            self._case(question, Grade.WRONG, [_Said(besides.text, besides)], fillers, others[-2:], rng),
            self._case(question, Grade.UNGROUNDED, [_Said(besides.text, None)], fillers, others[-2:], rng),
        ]

    def _ungrounded(self, gold: list[Anchor], others: list[Anchor], rng: Random) -> list[_Said]:
        way = rng.randrange(3)
        if way == 0:
            return [_Said(anchor.text, None) for anchor in gold]
        if way == 1:
            return [_Said(anchor.text, rng.choice(others)) for anchor in gold]
        return [self._made_up(anchor, others, rng) for anchor in gold]

    def _made_up(self, anchor: Anchor, others: list[Anchor], rng: Random) -> _Said:
        """The sentence with something changed, under the passage of the true one; as it is under none, where there is
        nothing to change.
        """
        changed = _changed(anchor.text, others, rng)
        return _Said(changed, anchor if changed != anchor.text else None)

    def _others(self, question: Question, rng: Random) -> list[Anchor]:
        """Sentences that neither are gold nor give the answer, from documents without any of the gold, shuffled."""
        gold = {anchor.doc_id for anchor in question.evidence}
        accepted = _accepted(question)
        others = [
            a for a, words in self._told.items() if a.doc_id not in gold and not any(s in words for s in accepted)
        ]
        rng.shuffle(others)
        return others

    def _nearest(self, question: Question, others: Sequence[Anchor]) -> Anchor:
        """The sentence with most words of the question: the wrong answer that is easiest to take for a right one."""
        wanted = set(folded(question.query).split())
        return max(others, key=lambda anchor: (len(wanted & set(self._told[anchor].split())), anchor.text))

    def _case(
        self,
        question: Question,
        grade: Grade,
        said: list[_Said],
        fillers: list[Anchor],
        beside: list[Anchor],
        rng: Random,
    ) -> Case:
        lead = rng.choice(LEADS)
        # What is added to an answer without ground has none either, or the answer would gain some.
        more = [_Said(f.text, None if grade is Grade.UNGROUNDED else f) for f in fillers]
        return Case(
            id=f"{question.id}-{grade.value}",
            grade=grade,
            submission=self._submission(question, lead, said, beside),
            turned=self._submission(question, lead, said[::-1], beside, turned=True),
            longer=self._submission(question, lead, [*said, *more], beside),
        )

    def _submission(
        self, question: Question, lead: str, said: list[_Said], beside: list[Anchor], *, turned: bool = False
    ) -> Submission:
        # Two passages that nothing cites, so that what cites one or none can be turned round too.
        shown = list(dict.fromkeys([*(one.source for one in said if one.source), *beside]))
        shown = shown[::-1] if turned else shown
        markers = {anchor: f"S{number}" for number, anchor in enumerate(shown, 1)}
        sentences = [_marked(one.text, markers[one.source] if one.source else "") for one in said]
        return Submission(
            question=question.query,
            accepted=tuple(spelling for spelling in (question.answer, *question.aliases) if spelling),
            facts=tuple(anchor.text for anchor in question.evidence),
            answer=lead + " ".join(sentences),
            passages=tuple(self._passage(markers[anchor], anchor) for anchor in shown),
        )

    def _passage(self, marker: str, anchor: Anchor) -> Passage:
        document = self._documents[anchor.doc_id]
        whole = next((p for p in document.text.split("\n\n") if anchor.text in p), document.text)
        return Passage(marker, document.title, whole)


def _stands_alone(text: str) -> bool:
    return text.endswith(".") and "\n" not in text and len(prose_sentences(text)) == 1


def _gives(text: str, question: Question) -> bool:
    words = folded(text)
    return any(spelling in words for spelling in _accepted(question))


def _accepted(question: Question) -> list[str]:
    return [folded(spelling) for spelling in (question.answer, *question.aliases) if spelling]


def _marked(text: str, marker: str) -> str:
    return f"{text[:-1]} [{marker}]." if marker else text


def _changed(text: str, others: Sequence[Anchor], rng: Random) -> str:
    """The sentence with its numbers changed; without a number, with its names taken from other documents. The same
    sentence where it has neither.
    """
    if _NUMBER.search(text):
        return _NUMBER.sub(lambda found: str((int(found[0]) + rng.randint(1, 8)) % 10), text)
    names = sorted({name for other in others for name in _NAME.findall(other.text[1:])} - set(_NAME.findall(text)))
    return _NAME.sub(lambda _: rng.choice(names), text)


_NUMBER = re.compile(r"(?<!\d)\d")  # the first digit of every number
_NAME = re.compile(r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)+\b")
