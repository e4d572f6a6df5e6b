"""Answers by quoting: picks the sentences of the evidence that answer the question, and says so when none do.

Deterministic and without a model: it can select and cite, not combine or infer. What a sentence is stands in
sentences.py, what it speaks of in terms.py; here are the three decisions: how well a sentence answers, which ones to
quote, and whether together they cover the question.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from domain.prompt import PromptPlan
from domain.types import Delta, Draft, Evidence, StopReason, Usage
from generation.rewriting import standalone
from generation.sentences import Sentence, sentences
from generation.terms import Term, entities, keys, terms


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be quoted: where it stands, what it says itself, and what stands around it."""

    sid: str
    place: tuple[int, int]  # (evidence, sentence), from 0
    sentence: Sentence
    own: frozenset[str]
    above: frozenset[str]  # keys of title, headings, the question it answers, date
    around: frozenset[str]  # keys of the whole passage


class ExtractiveGenerator:
    """The Generator that needs no model: one to `max_sentences` quoted sentences, one marker each, as `sentence [S1].`

    `min_coverage` (0..1) is the share of what the question speaks of that the quoted sentences must speak of, and
    `min_gain` (0..1) the share a further sentence must add. Every entity of the question (name, identifier, number)
    must be covered, whatever the share. Otherwise the draft stops as NOT_COVERED and names what was not found.
    Streams one delta per claim. English casing decides what is a name; other languages are matched word by word.
    """

    def __init__(self, max_sentences: int = 3, min_coverage: float = 0.5, min_gain: float = 0.2) -> None:
        if max_sentences < 1 or not 0 <= min_coverage <= 1 or not 0 < min_gain <= 1:
            raise ValueError(
                f"An extractive answer needs max_sentences >= 1 and shares within 0..1, got {max_sentences}, "
                f"{min_coverage} and {min_gain}."
            )
        self._max_sentences = max_sentences
        self._min_coverage = min_coverage
        self._min_gain = min_gain

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
        wanted = terms(question)
        if not evidence:
            return ["The library has no source for this question."], StopReason.NOT_COVERED
        candidates = _candidates(evidence)
        weights = _weights(wanted, candidates)
        quoted = self._choose(question, wanted, weights, candidates)
        missing = self._missing(wanted, quoted)
        if missing or not quoted:
            return [_not_covered(missing)], StopReason.NOT_COVERED
        claims = [_claim(candidate) for candidate in quoted]
        return [claim + " " for claim in claims[:-1]] + claims[-1:], StopReason.END

    def _choose(
        self, question: str, wanted: Sequence[Term], weights: Sequence[float], candidates: Sequence[Candidate]
    ) -> list[Candidate]:
        """The sentences to quote, best first.

        A second one is added for what the first leaves open: another entity with the same attribute (comparison), or
        what is asked about something the first one mentions (a hop). It must add `min_gain` of the whole.
        """
        cue = _cue(question)
        importance = [2.0 if term.entity else 1.0 for term in wanted]
        total = sum(importance) or 1.0
        chosen: list[Candidate] = []
        open_weights = list(weights)
        while len(chosen) < self._max_sentences:
            linked = frozenset().union(*(entities(c.sentence.text) for c in chosen)) - _keys_of(wanted)
            scored = []
            for candidate in candidates:
                if any(candidate.own == other.own for other in chosen):
                    continue
                score = _score(candidate, wanted, open_weights, cue)
                if chosen and linked & candidate.own:
                    score *= 1.3
                scored.append((-score, candidate.place, candidate))
            if not scored:
                break
            score, _, best = min(scored)
            gain = sum(
                i for term, i, w in zip(wanted, importance, open_weights, strict=True) if w and term.within(best.own)
            )
            needed = self._min_gain * total * (0.5 if linked & best.own else 1.0)
            if -score <= 0 or (chosen and gain < needed):
                break
            chosen.append(best)
            open_weights = _still_open(wanted, weights, chosen)
        return chosen

    def _missing(self, wanted: Sequence[Term], quoted: Sequence[Candidate]) -> list[Term]:
        """What the quoted sentences leave uncovered, when that is too much; else nothing."""
        reached = [max((_reach(term, candidate) for candidate in quoted), default=0.0) for term in wanted]
        lost = [term for term, share in zip(wanted, reached, strict=True) if share == 0]
        if any(term.entity for term in lost):
            return [term for term in lost if term.entity]
        importance = [2.0 if term.entity else 1.0 for term in wanted]
        covered = sum(i * share for i, share in zip(importance, reached, strict=True))
        words = [share for term, share in zip(wanted, reached, strict=True) if not term.entity]
        if covered < self._min_coverage * sum(importance) or (words and max(words) < 1):
            return lost or list(wanted)
        return []


# ---------------------------------------------------------------------------------------------- how well it answers


def _score(
    candidate: Candidate, wanted: Sequence[Term], weights: Sequence[float], cue: re.Pattern[str] | None
) -> float:
    """How well a sentence answers what is open: weighted reach, more with the kind of fact that is asked for."""
    score = sum(w * _reach(term, candidate) for term, w in zip(wanted, weights, strict=True))
    if cue is not None:
        score *= 1.25 if cue.search(candidate.sentence.text) else 0.85
    length = len(candidate.sentence.text)
    score *= 1.0 + 0.1 / (1 + candidate.place[0])  # retrieval already put the better passages first
    return score / (1.0 + max(0.0, math.log2(max(length, 1) / 200)) * 0.1)  # long sentences match by accident


def _reach(term: Term, candidate: Candidate) -> float:
    """How much a sentence is about a term: 1 in its own words, less above it, least elsewhere in its passage.

    Titles name the subject, so an entity there counts almost fully; an ordinary word there hardly says that the
    sentence answers.
    """
    if term.within(candidate.own):
        return 1.0
    if term.within(candidate.above | candidate.own):
        return 0.9 if term.entity else 0.5
    if term.within(candidate.around):
        return 0.6 if term.entity else 0.2
    return 0.0


def _weights(wanted: Sequence[Term], candidates: Sequence[Candidate]) -> list[float]:
    """Inverse frequency of each term among the sentences, half as much again for entities."""
    weights = []
    for term in wanted:
        n = sum(term.within(candidate.own) for candidate in candidates)
        idf = math.log(1 + (len(candidates) - n + 0.5) / (n + 0.5))
        weights.append(idf * (1.5 if term.entity else 1.0))
    return weights


def _still_open(wanted: Sequence[Term], weights: Sequence[float], chosen: Sequence[Candidate]) -> list[float]:
    """What is left to cover. An entity named by no chosen sentence reopens the words: they are asked about it too."""
    closed = [any(term.within(c.own | c.above) for c in chosen) for term in wanted]
    reopened = 0.5 if any(term.entity and not done for term, done in zip(wanted, closed, strict=True)) else 0.0
    return [
        w if not done else w * reopened * (not term.entity)
        for term, w, done in zip(wanted, weights, closed, strict=True)
    ]


def _cue(question: str) -> re.Pattern[str] | None:
    """What kind of fact is asked for, as the pattern of such a fact."""
    for asking, fact in _CUES:
        if asking.search(question):
            return fact
    return None


def _candidates(evidence: Sequence[Evidence]) -> list[Candidate]:
    found = []
    for i, item in enumerate(evidence):
        source = item.chunk.source
        top = keys(f"{source.title} {item.chunk.heading} {source.published}")
        around = top | keys(item.chunk.text)
        subject: frozenset[str] = frozenset()
        for j, sentence in enumerate(sentences(item.chunk.text)):
            own = keys(sentence.text)
            above = top | keys(sentence.about)
            if _REFERS_BACK.match(sentence.text):
                above |= subject
            found.append(Candidate(item.sid, (i, j), sentence, own, above, around))
            subject = own | (above - top)
    return found


def _keys_of(wanted: Sequence[Term]) -> frozenset[str]:
    return frozenset(key for term in wanted for key in term.keys)


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
    named = [term for term in missing if term.entity] or list(missing)
    if not named:
        return "The sources do not answer this question."
    shown = [term.shown for term in named[:4]]
    listed = shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
    return f"The sources do not answer this: they say nothing about {listed}."


_END = re.compile(r"(?:\.{1,3}|[!…。！]+)$")
_MARKER_LIKE = re.compile(r"\\?[\[［]\s*[SsＳ]-?[\d０-９]+\s*\\?[\]］](?:\([^)]*\))?")
_REFERS_BACK = re.compile(r"(?:It|They|He|She|Its|Their|His|Her|This|These|Those|That|Both)\b")
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DATE = re.compile(rf"\b\d{{4}}\b|\b\d{{1,2}}\.? {_MONTH}\b|\b{_MONTH} \d{{1,2}}\b|\d年|\d月")
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|million|none)\b",
    re.I,
)
_PERSON = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z][a-z]+ (?:[A-Z]\. )?[A-Z][a-z]+|\b(?:Mr|Mrs|Ms|Dr)\b")
_REASON = re.compile(
    r"\b(?:because|since|due to|caus\w+|reason|as a result|so that|owing to|in order to|led to)\b", re.I
)
_CUES = (
    (re.compile(r"\bwhen\b|\bwhat (?:date|day|year|month)\b|\bwhich (?:year|month|day)\b|什么时候|いつ", re.I), _DATE),
    (re.compile(r"\bhow (?:many|much|long|often|far|old|high|large|big|fast)\b|多少|几", re.I), _NUMBER),
    (re.compile(r"\bwhos?e?\b|\bwhom\b", re.I), _PERSON),
    (re.compile(r"\bwhy\b|\bwhat caused\b|为什么", re.I), _REASON),
)
