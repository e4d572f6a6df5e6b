"""Answers by quoting: picks the sentences of the evidence that answer the question, and says so when none do.

Deterministic and without a model: it can select and cite, not combine or infer. What a sentence is stands in
sentences.py, what a question wants in asking.py; here are the three decisions: how well a sentence answers, which ones
to quote, and whether together they cover the question.
"""

import asyncio
import math
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul

from domain.prompt import PromptPlan
from domain.types import Delta, Draft, Evidence, StopReason, Usage
from generation.asking import Asked, asked
from generation.rewriting import standalone
from generation.sentences import Sentence, sentences
from generation.terms import Kind, Term, keys, terms

BEAM = 8  # chains of sentences that are prolonged
HOP_COST = 0.15  # what a further hop must add, on a scale where 1 says all that is asked
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


class ExtractiveGenerator:
    """The Generator that needs no model: one to `max_sentences` quoted sentences, one marker each, as `sentence [S1].`

    Every name and identifier of the question must be what a quoted sentence is about, its years and amounts must stand
    with them, and of what is asked about them at least `min_coverage` (0..1) must be spoken of. Otherwise the draft
    stops as NOT_COVERED and names what was not found. Streams one delta per claim. English casing decides what is a
    name; other languages are matched word by word.
    """

    def __init__(self, max_sentences: int = 4, min_coverage: float = 0.5) -> None:
        if max_sentences < 1 or not 0 <= min_coverage <= 1:
            raise ValueError(
                f"An extractive answer needs max_sentences >= 1 and min_coverage in 0..1, got {max_sentences} and "
                f"{min_coverage}."
            )
        self._max_sentences = max_sentences
        self._min_coverage = min_coverage

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        """Deltas, one per claim, then the Draft. Equal plans give equal drafts.

        A follow-up is read with what the history says it is about, since the plan carries it as it was typed.
        """
        pieces, stop = self.answer(standalone(plan.question, plan.history), plan.evidence)
        for piece in pieces:
            yield Delta(piece)
            await asyncio.sleep(0)  # others share this loop
        text = "".join(pieces)
        yield Draft(text, stop, Usage(output_tokens=len(text.split())))

    def answer(self, question: str, evidence: Sequence[Evidence]) -> tuple[list[str], StopReason]:
        """The claims of the answer, to be joined as they are, and why it ends."""
        if not evidence:
            return ["The library has no source for this question."], StopReason.NOT_COVERED
        judge = _Judge(asked(question), _candidates(evidence))
        quoted: list[Candidate] = []
        missing: list[Term] = []
        subjects: Sequence[Term | None] = judge.wanted.subjects or (None,)
        room = max(1, self._max_sentences // len(subjects))
        for subject in subjects[: self._max_sentences]:
            chain = judge.best_chain(subject, room)
            unmet = self._missing(judge, subject, chain)
            missing += unmet
            quoted += [] if unmet or not chain else chain
        if not quoted:
            return [_not_covered(missing)], StopReason.NOT_COVERED
        claims = [_claim(candidate) for candidate in dict.fromkeys(quoted)]
        left = [s for s in judge.wanted.subjects if not any(s.within(c.above) or _about(s, c) >= 0.5 for c in quoted)]
        claims += [f"The sources do not say this of {_listed(left)}."] if left else []
        return [claim + " " for claim in claims[:-1]] + claims[-1:], StopReason.END

    def _missing(self, judge: "_Judge", subject: Term | None, chain: Sequence[Candidate]) -> list[Term]:
        """What a chain leaves uncovered, when that is too much to be an answer about `subject`; else nothing."""
        wanted = judge.wanted
        if not chain:
            return list(wanted.words if subject is None else [subject])
        telling = judge.most_telling(chain)
        lost = [qualifier for qualifier in wanted.qualifiers if not any(_holds(qualifier, c) for c in telling)]
        if lost:
            return lost
        unsaid = [word for word in wanted.words if not any(_says(word, c) for c in chain)]
        silent = bool(unsaid) and len(unsaid) == len(wanted.words)  # a date alone does not say when what happened
        return (unsaid or list(wanted.words)) if silent or judge.coverage(chain) < self._min_coverage else []


# ---------------------------------------------------------------------------------------------- how well it answers


class _Judge:
    """One question before its candidates. What each sentence says of each asked term is worked out once."""

    def __init__(self, wanted: Asked, candidates: Sequence[Candidate]) -> None:
        self.wanted = wanted
        self.candidates = candidates
        self._known = wanted.known
        self._asked = (*wanted.words, *wanted.qualifiers)
        self._counts = [wanted.weight(term) for term in self._asked]
        self._weights = [self._idf(term) * count for term, count in zip(self._asked, self._counts, strict=True)]
        self._says = {
            c.place: [*(_says(w, c) for w in wanted.words), *(_holds(q, c) for q in wanted.qualifiers)]
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
        beam = self._ranked(subject, [(c,) for c in self.candidates if subject is None or _about(subject, c)])
        best = beam[:1]
        for _ in range(room - 1):
            beam = self._ranked(subject, [(*chain, c) for _, chain in beam for c in self._linked(chain)])
            best = max(best, beam[:1], key=lambda scored: scored[0][0] if scored else 0.0)
        return best[0][1] if best and best[0][0] > 0 else ()

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
            fit = _about(subject, chain[0]) * (fit + 0.1)  # being about it is something
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


def _about(subject: Term, candidate: Candidate) -> float:
    """How much a sentence is about a subject: 1 when it names it, less when only its title or passage does."""
    if subject.within(candidate.own):
        return 1.0
    others = _names(candidate.sentence.text)
    if subject.within(candidate.above):
        return 0.3 if any(other.kind is subject.kind is Kind.IDENTIFIER for other in others) else 0.9
    return (0.15 if others else 0.5) if subject.within(candidate.around) else 0.0


def _says(term: Term, candidate: Candidate) -> float:
    """How much a sentence says of a word: 1 the word, 0.7 a related one, 0.5 the word in its headings, else 0."""
    if term.within(candidate.own):
        return 1.0
    if term.related & candidate.own:
        return 0.7
    return 0.5 if term.within(candidate.above) else 0.0


def _holds(qualifier: Term, candidate: Candidate) -> float:
    """How much a number of the question holds for a sentence: 1 when it or its headings say so.

    A source that names no year speaks of its own time and of what follows until somebody says otherwise: 0.5 for a
    year that is not before its own.
    """
    if qualifier.within(candidate.above):
        return 1.0
    year = qualifier.keys[0]
    dateless = not any(_YEAR.fullmatch(key) for key in candidate.own)
    return 0.5 if _YEAR.fullmatch(year) and dateless and "" < candidate.published[:4] <= year else 0.0


def _candidates(evidence: Sequence[Evidence]) -> list[Candidate]:
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


# ---------------------------------------------------------------------------------------------- how it reads


def _claim(candidate: Candidate) -> str:
    """`sentence [S1].`: the marker stands before the full stop, so that it belongs to its claim beyond doubt.

    A sentence that ends in a quotation or without a stop keeps its end and gets marker and full stop behind it.
    Anything in the source that looks like a marker or opens code would change what is cited: it is left out.
    """
    text = _MARKER_LIKE.sub("", candidate.sentence.text)
    text = re.sub(r"\s+", " ", text.replace("`", "")).strip()
    match = _END.search(text)
    body, stop = (text[: match.start()].rstrip(), match.group()) if match else (text, ".")
    space = "" if stop in "。！" else " "
    return f"{body}{space}[{candidate.sid}]{stop}"


def _not_covered(missing: Sequence[Term]) -> str:
    if not missing:
        return "The sources do not answer this question."
    return f"The sources do not answer this: they say nothing about {_listed(missing)}."


def _listed(missing: Sequence[Term]) -> str:
    shown = list(dict.fromkeys(term.shown for term in missing))[:4]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


_END = re.compile(r"(?:\.{1,3}|[!…。！]+)$")
_MARKER_LIKE = re.compile(r"\\?[\[［【]\s*[SsＳｓ]-?\d[\dSsＳｓ,;\s-]*\\?[\]］】](?:\([^)]*\))?")
_DISCLAIMS = re.compile(
    r"\b(?:confuse|mistake|mix(?:ed)? up|swap)\w*\b", re.IGNORECASE
)  # names two things, tells of none
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_REFERS_BACK = re.compile(
    r"(?:It|They|He|She|Its|Their|His|Her|This|These|Those|That|Both|The (?:company|group|firm))\b"
)
