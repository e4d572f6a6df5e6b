"""Which sentences answer a question best, for extractive.py: candidates, what each says, and chains of them.

What a sentence is stands in sentences.py, what a question wants in asking.py. Scores are only compared within one
question; whether the best is good enough is not decided here.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul

from domain.types import Evidence
from generation.asking import Asked
from generation.sentences import Sentence, sentences
from generation.terms import Kind, Term, keys, terms

BEAM = 8  # chains of sentences that are prolonged
HOP_COST = 0.15  # what a further hop must add, on a scale where 1 says all that is asked
BRINGS = 0.2  # what a new name is worth in the nearest sentence, on the same scale
BLIND_HOP_COST = 0.4  # the same from a sentence that says nothing of what is asked: a chance acquaintance


@dataclass(frozen=True, slots=True, eq=False)  # two passages may say the same words: each is its own candidate
class Candidate:
    """A sentence that may be quoted: where it stands, what it says itself, and what stands around it."""

    sid: str
    place: tuple[int, int]  # (evidence, sentence), from 0
    sentence: Sentence
    own: frozenset[str]
    above: frozenset[str]  # also title, headings, speaker, the question it answers, date
    around: frozenset[str]  # also the rest of the passage
    published: str


Chain = tuple[Candidate, ...]


class Judge:
    """One question before its candidates. What each sentence says of each asked term is worked out once."""

    def __init__(self, wanted: Asked, candidates: Sequence[Candidate]) -> None:
        self.wanted = wanted
        self.candidates = candidates
        self._known = wanted.known
        self._asked = (*wanted.words, *wanted.qualifiers)
        self._counts = [wanted.weight(term) for term in self._asked]
        self._weights = [self._idf(term) * count for term, count in zip(self._asked, self._counts, strict=True)]
        self._says = {
            c.place: [*(says(w, c) for w in wanted.words), *(holds(q, c) for q in wanted.qualifiers)]
            for c in candidates
        }
        self._met = {
            c.place: wanted.cue is not None and wanted.cue.met(c.sentence.text, self._known) for c in candidates
        }
        dates = sorted({candidate.published for candidate in candidates})
        self._age = {date: i / max(1, len(dates) - 1) for i, date in enumerate(dates)}  # 0 oldest .. 1 newest

    def best_chain(self, subject: Term | None, room: int) -> tuple[Candidate, ...]:
        """The sentences that together say most of what is asked about `subject`, at most `room`; none when none does.

        The first is about the subject, each further one about something that the one before mentions (a hop). Beam
        search: of the chains of one length, the BEAM best are prolonged.
        """
        if subject is None and not self._asked:
            return ()  # nothing is asked
        beam = self._ranked(subject, [(c,) for c in self.candidates if subject is None or about(subject, c)])
        best = beam[:1]
        for _ in range(room - 1):
            beam = self._ranked(subject, [(*chain, c) for _, chain in beam for c in self._linked(chain)])
            best = max(best, beam[:1], key=lambda scored: scored[0][0] if scored else 0.0)
        return best[0][1] if best and best[0][0] > 0 else ()

    def nearest(self, subject: Term | None, lead: "Judge | None" = None) -> Candidate | None:
        """The one sentence that says most about the subject, however little; None when none is about it.

        `lead` judges the phrase that leads to the subject, where the question goes on from there: then a sentence that
        brings in a name is preferred, since it is the first step to an answer that stands elsewhere.
        """
        named = [c for c in self.candidates if subject is None or subject.within(c.above)]
        near = named or [c for c in self.candidates if subject is not None and about(subject, c)]
        scores = {c.place: self._nearness(subject, c, lead) for c in near}
        return max(near, key=lambda c: (scores[c.place], [-place for place in c.place]), default=None)

    def _nearness(self, subject: Term | None, candidate: Candidate, lead: "Judge | None") -> float:
        near = self._value(subject, (candidate,))
        if lead is not None:
            brings = any(self._known.isdisjoint(name.keys) for name in _names(candidate.sentence.text))
            near += lead._value(subject, (candidate,)) + (BRINGS if brings else 0.0)
        return near

    def _ranked(self, subject: Term | None, chains: Sequence[Chain]) -> list[tuple[float, Chain]]:
        scored = [(self._value(subject, chain), chain) for chain in chains]
        return sorted(scored, key=lambda item: (-item[0], [c.place for c in item[1]]))[:BEAM]

    def _linked(self, chain: Chain) -> list[Candidate]:
        """The sentences about a name that the last one of the chain brings in."""
        names = [name for name in _names(chain[-1].sentence.text) if self._known.isdisjoint(name.keys)]
        return [c for c in self.candidates if c not in chain and any(name.within(c.above) for name in names)]

    def _value(self, subject: Term | None, chain: Chain) -> float:
        """How well a chain answers about one subject; a hop must earn its place."""
        wanted, last = self.wanted, chain[-1]
        fit = _share(self._weights, [self._says[c.place] for c in chain])
        for other in wanted.subjects:
            if other is not subject and other.within(chain[0].own):
                fit += 0.25
        if wanted.cue and self._met[last.place]:
            fit += 0.3 * wanted.cue.weight
        if subject is not None:
            fit = about(subject, chain[0]) * (fit + 0.1)  # being about it is something
        fit *= 1.0 + 0.1 / (1 + last.place[0])  # retrieval already put the better passages first
        fit *= 1.0 + wanted.freshness * self._age[last.published]
        fit /= 1.0 + max(0.0, math.log2(max(len(last.sentence.text), 1) / 200)) * 0.1  # long ones match by accident
        if self._contradicts(last):
            fit *= 0.3
        if _DISCLAIMS.search(last.sentence.text):
            fit *= 0.3
        cost = sum(HOP_COST if any(self._says[c.place]) else BLIND_HOP_COST for c in chain[:-1])
        return fit - cost if fit > 0 else 0.0

    def _contradicts(self, candidate: Candidate) -> bool:
        """True when a sentence names years, and not one that is asked about."""
        years = {key for key in candidate.own if _YEAR.fullmatch(key)}
        asked_for = {q.keys[0] for q in self.wanted.qualifiers if _YEAR.fullmatch(q.keys[0])}
        return bool(years and asked_for) and years.isdisjoint(asked_for)

    def most_telling(self, quoted: Sequence[Candidate]) -> list[Candidate]:
        """The quoted sentences that say most of the words asked: a year must hold for these, not for one on the way."""
        n = len(self.wanted.words)
        said = [sum(self._says[c.place][:n]) for c in quoted]
        return [c for c, words in zip(quoted, said, strict=True) if words >= 0.5 * max(said)]

    def coverage(self, quoted: Sequence[Candidate]) -> float:
        """Share of what is asked that the quoted sentences speak of, the kind of fact included; 1 when nothing is."""
        if not quoted:
            return 0.0
        weights, says = list(self._counts), [[*self._says[c.place], float(self._met[c.place])] for c in quoted]
        return _share([*weights, self.wanted.cue.weight if self.wanted.cue else 0.0], says)

    def _idf(self, term: Term) -> float:
        n = sum(term.within(candidate.own) for candidate in self.candidates)
        return math.log(1 + (len(self.candidates) - n + 0.5) / (n + 0.5))


def _share(weights: Sequence[float], says: Sequence[Sequence[float]]) -> float:
    """Share of the weights that the best of several sentences reaches, term by term; 1 when nothing weighs."""
    total = sum(weights)
    return sum(map(mul, weights, map(max, zip(*says, strict=True)))) / total if total else 1.0


@lru_cache(maxsize=4096)
def _names(text: str) -> tuple[Term, ...]:
    """The names and identifiers a sentence brings in."""
    return tuple(term for term in terms(text) if term.kind in (Kind.NAME, Kind.IDENTIFIER))


def about(subject: Term, candidate: Candidate) -> float:
    """How much a sentence is about a subject: 1 when it names it, less when only its title or passage does."""
    if subject.within(candidate.own):
        return 1.0
    others = _names(candidate.sentence.text)
    if subject.within(candidate.above):
        return 0.3 if any(other.kind is subject.kind is Kind.IDENTIFIER for other in others) else 0.9
    return (0.15 if others else 0.5) if subject.within(candidate.around) else 0.0


def says(term: Term, candidate: Candidate) -> float:
    """How much a sentence says of a word: 1 the word, 0.7 a related one, 0.5 the word in its headings, else 0."""
    if term.within(candidate.own):
        return 1.0
    if term.related & candidate.own:
        return 0.7
    return 0.5 if term.within(candidate.above) else 0.0


def holds(qualifier: Term, candidate: Candidate) -> float:
    """How much a number of the question holds for a sentence: 1 when it or its headings say so.

    A source that names no year speaks of its own time and of what follows until somebody says otherwise: 0.5 for a
    year that is not before its own.
    """
    if qualifier.within(candidate.above):
        return 1.0
    year = qualifier.keys[0]
    dateless = not any(_YEAR.fullmatch(key) for key in candidate.own)
    return 0.5 if _YEAR.fullmatch(year) and dateless and "" < candidate.published[:4] <= year else 0.0


def candidates_of(evidence: Sequence[Evidence]) -> list[Candidate]:
    found = []
    for i, item in enumerate(evidence):
        source = item.chunk.source
        top = keys(f"{source.title} . {item.chunk.heading} . {source.published}")
        read = _read(item.chunk.text)
        around = top.union(*(above for _, _, above in read))
        for j, (sentence, own, above) in enumerate(read):
            found.append(Candidate(item.sid, (i, j), sentence, own, above | top, around, source.published))
    return found


@lru_cache(maxsize=1024)  # passages come back often, and reading one takes longer than judging it
def _read(text: str) -> tuple[tuple[Sentence, frozenset[str], frozenset[str]], ...]:
    """Every sentence of a passage with its own keys, and those with what it refers back to."""
    read: list[tuple[Sentence, frozenset[str], frozenset[str]]] = []
    for sentence in sentences(text):
        own = keys(sentence.text)
        above = own | keys(sentence.about)
        if read and _REFERS_BACK.match(sentence.text):
            above |= read[-1][2]
        read.append((sentence, own, above))
    return tuple(read)


_DISCLAIMS = re.compile(
    r"\b(?:confuse|mistake|mix(?:ed)? up|swap)\w*\b", re.IGNORECASE
)  # names two things, tells of none
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_REFERS_BACK = re.compile(
    r"(?:It|They|He|She|Its|Their|His|Her|This|These|Those|That|Both|The (?:company|group|firm))\b"
)
