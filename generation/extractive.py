"""Answers by quoting: picks the sentences of the evidence that answer the question, and says so when none do.

Deterministic and without a model: it can select and cite, not combine or infer. What a sentence is stands in
sentences.py, what a question wants in asking.py; here are the three decisions: how well a sentence answers, which ones
to quote, and whether together they cover the question.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from domain.prompt import PromptPlan
from domain.types import Delta, Draft, Evidence, StopReason, Usage
from generation.asking import Asked, asked
from generation.rewriting import standalone
from generation.sentences import Sentence, sentences
from generation.terms import Term, entities, keys


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be quoted: where it stands, what it says itself, and what stands around it."""

    sid: str
    place: tuple[int, int]  # (evidence, sentence), from 0
    sentence: Sentence
    own: frozenset[str]
    above: frozenset[str]  # also title, headings, speaker, the question it answers, date
    around: frozenset[str]  # also the rest of the passage
    published: str


class ExtractiveGenerator:
    """The Generator that needs no model: one to `max_sentences` quoted sentences, one marker each, as `sentence [S1].`

    Every name and identifier of the question must be what a quoted sentence is about, its years and amounts must stand
    with them, and of what is asked about them at least `min_coverage` (0..1) must be spoken of. Otherwise the draft
    stops as NOT_COVERED and names what was not found. Streams one delta per claim. English casing decides what is a
    name; other languages are matched word by word.
    """

    def __init__(self, max_sentences: int = 3, min_coverage: float = 0.5) -> None:
        if max_sentences < 1 or not 0 <= min_coverage <= 1:
            raise ValueError(
                f"An extractive answer needs max_sentences >= 1 and min_coverage in 0..1, got {max_sentences} and "
                f"{min_coverage}."
            )
        self._max_sentences = max_sentences
        self._min_coverage = min_coverage

    async def generate(self, plan: PromptPlan) -> AsyncIterator[Delta | Draft]:
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
        wanted = asked(question)
        judge = _Judge(wanted, _candidates(evidence))
        quoted = self._choose(judge)
        missing = self._missing(judge, quoted)
        if missing or not quoted:
            return [_not_covered(missing)], StopReason.NOT_COVERED
        claims = [_claim(candidate) for candidate in quoted]
        return [claim + " " for claim in claims[:-1]] + claims[-1:], StopReason.END

    def _choose(self, judge: "_Judge") -> list[Candidate]:
        """The sentences to quote: the best about each subject, then what the next hop adds, best first."""
        chosen: list[Candidate] = []
        for subject in judge.wanted.subjects or (None,):
            best = judge.best(subject, judge.candidates)
            if best is not None and best not in chosen and len(chosen) < self._max_sentences:
                chosen.append(best)
        while chosen and len(chosen) < self._max_sentences:
            further = judge.next_hop(chosen)
            if further is None:
                break
            chosen.append(further)
        return chosen

    def _missing(self, judge: "_Judge", quoted: Sequence[Candidate]) -> list[Term]:
        """What the quoted sentences leave uncovered, when that is too much; else nothing."""
        wanted = judge.wanted
        lost = [subject for subject in wanted.subjects if not any(_about(subject, c) for c in quoted)]
        lost += [q for q in wanted.qualifiers if not any(q.within(c.above) for c in quoted)]
        if lost:
            return lost
        if judge.coverage(quoted) < self._min_coverage:
            return [word for word in wanted.words if not any(_says(word, c) for c in quoted)] or list(wanted.words)
        return []


# ---------------------------------------------------------------------------------------------- how well it answers


class _Judge:
    """One question before its candidates."""

    def __init__(self, wanted: Asked, candidates: Sequence[Candidate]) -> None:
        self.wanted = wanted
        self.candidates = candidates
        self._known = wanted.known
        self._weights = {term: self._idf(term) for term in (*wanted.words, *wanted.qualifiers, *wanted.subjects)}
        dates = sorted({candidate.published for candidate in candidates})
        self._recency = {date: i / max(1, len(dates) - 1) for i, date in enumerate(dates)}  # 0 oldest .. 1 newest

    def best(self, subject: Term | None, among: Sequence[Candidate]) -> Candidate | None:
        """The sentence that says most of what is asked about `subject`; None when none is about it or says anything."""
        scored = [(-self.score(subject, candidate), candidate.place, candidate) for candidate in among]
        score, _, found = min(scored, default=(0.0, (0, 0), None), key=lambda item: item[:2])
        return found if score < 0 else None

    def score(self, subject: Term | None, candidate: Candidate) -> float:
        """How well one sentence answers about one subject, from 0."""
        wanted = self.wanted
        about = 1.0 if subject is None else _about(subject, candidate)
        said = sum(self._weights[term] * _says(term, candidate) for term in (*wanted.words, *wanted.qualifiers))
        said += sum(0.5 * self._weights[t] * t.within(candidate.own) for t in wanted.subjects if t is not subject)
        total = sum(self._weights[term] for term in (*wanted.words, *wanted.qualifiers)) or 1.0
        fit = said / total
        if wanted.cue and wanted.cue.met(candidate.sentence.text, self._known):
            fit += 0.3 * wanted.cue.weight
        if subject is not None:
            fit += 0.1  # being about it is something
        fit *= 1.0 + 0.1 / (1 + candidate.place[0])  # retrieval already put the better passages first
        fit *= 1.0 + (0.3 if wanted.now else 0.03) * self._recency[candidate.published]
        length = len(candidate.sentence.text)
        return about * fit / (1.0 + max(0.0, math.log2(max(length, 1) / 200)) * 0.1)  # long ones match by accident

    def next_hop(self, chosen: Sequence[Candidate]) -> Candidate | None:
        """The sentence about something the chosen ones mention that says what they leave open; None when none does."""
        before = self.coverage(chosen)
        if before >= 1:
            return None
        linked = frozenset().union(*(entities(c.sentence.text) for c in chosen)) - self._known
        reachable = [c for c in self.candidates if linked & c.own and c not in chosen]
        gains = [(-(self.coverage([*chosen, c]) - before), -self.score(None, c), c.place, c) for c in reachable]
        gain, _, _, best = min(gains, default=(0.0, 0.0, (0, 0), None), key=lambda item: item[:3])
        return best if -gain > 0.2 else None

    def coverage(self, quoted: Sequence[Candidate]) -> float:
        """Share of what is asked that the quoted sentences speak of, the kind of fact included; 1 when nothing is."""
        wanted = self.wanted
        reached = sum(max((_says(word, c) for c in quoted), default=0.0) for word in wanted.words)
        asked_for = float(len(wanted.words))
        if wanted.cue:
            asked_for += wanted.cue.weight
            reached += wanted.cue.weight * any(wanted.cue.met(c.sentence.text, self._known) for c in quoted)
        return reached / asked_for if asked_for else 1.0

    def _idf(self, term: Term) -> float:
        n = sum(term.within(candidate.own) for candidate in self.candidates)
        return math.log(1 + (len(self.candidates) - n + 0.5) / (n + 0.5))


def _about(subject: Term, candidate: Candidate) -> float:
    """How much a sentence is about a subject: 1 when it names it, less when only its title or passage does."""
    for keys_there, share in ((candidate.own, 1.0), (candidate.above, 0.9), (candidate.around, 0.5)):
        if subject.within(keys_there):
            return share
    return 0.0


def _says(term: Term, candidate: Candidate) -> float:
    """How much a sentence says of a word: 1 the word, 0.7 a related one, 0.5 the word in its headings, else 0."""
    if term.within(candidate.own):
        return 1.0
    if term.related & candidate.own:
        return 0.7
    return 0.5 if term.within(candidate.above) else 0.0


def _candidates(evidence: Sequence[Evidence]) -> list[Candidate]:
    found = []
    for i, item in enumerate(evidence):
        source = item.chunk.source
        top = keys(f"{source.title} . {item.chunk.heading} . {source.published}")
        around = top | keys(item.chunk.text)
        subject: frozenset[str] = frozenset()
        for j, sentence in enumerate(sentences(item.chunk.text)):
            own = keys(sentence.text)
            above = top | own | keys(sentence.about)
            if _REFERS_BACK.match(sentence.text):
                above |= subject
            found.append(Candidate(item.sid, (i, j), sentence, own, above, around, source.published))
            subject = above - top
    return found


# ---------------------------------------------------------------------------------------------- how it reads


def _claim(candidate: Candidate) -> str:
    """`sentence [S1].`: the marker stands before the full stop, so that it belongs to its claim beyond doubt.

    A sentence that ends in a quotation or without a stop keeps its end and gets marker and full stop behind it.
    Anything in the source that looks like a marker or opens code would change what is cited: it is left out.
    """
    text = _MARKER_LIKE.sub("", candidate.sentence.text)
    text = re.sub(r"\s+", " ", text.replace("`", "")).strip()
    match = _END.search(text)
    body, stop = (text[: match.start()], match.group()) if match else (text, ".")
    space = "" if stop in "。！" else " "
    return f"{body}{space}[{candidate.sid}]{stop}"


def _not_covered(missing: Sequence[Term]) -> str:
    if not missing:
        return "The sources do not answer this question."
    shown = [term.shown for term in missing[:4]]
    listed = shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
    return f"The sources do not answer this: they say nothing about {listed}."


_END = re.compile(r"(?:\.{1,3}|[!…。！]+)$")
_MARKER_LIKE = re.compile(r"\\?[\[［]\s*[SsＳ]-?[\d０-９]+\s*\\?[\]］](?:\([^)]*\))?")
_REFERS_BACK = re.compile(
    r"(?:It|They|He|She|Its|Their|His|Her|This|These|Those|That|Both|The (?:company|group|firm))\b"
)
