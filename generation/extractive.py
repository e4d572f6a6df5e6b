"""Answers by quoting: picks the sentences of the evidence that answer the question, and says so when none do.

Deterministic and without a model: it can select and cite, not combine or infer. Which sentences answer best is
choosing.py's business; here is whether they answer at all, and how the answer reads.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence

from domain.prompt import PromptPlan
from domain.types import Delta, Draft, Evidence, StopReason
from generation.asking import asked, innermost
from generation.choosing import Candidate, Judge, about, candidates_of, holds, says
from generation.rewriting import standalone
from generation.terms import Term


class ExtractiveGenerator:
    """The Generator that needs no model: one to `max_sentences` quoted sentences, one marker each, as `sentence [S1].`

    For each name and identifier of the question the quoted sentences must be about it, the years and amounts asked for
    must stand with it, and of what is asked about it at least `min_coverage` (0..1) must be spoken of. Subjects for
    which that fails are named at the end; when it fails for all, the draft stops as NOT_COVERED and says what was not
    found. With `nearest` somebody else decides what is covered: where the rules above would decline, it quotes the one
    sentence nearest to each subject instead, and declines only where none is about any. Streams one delta per claim.
    English casing decides what is a name; other languages are matched word by word.
    """

    def __init__(self, max_sentences: int = 4, min_coverage: float = 0.5, *, nearest: bool = False) -> None:
        if max_sentences < 1 or not 0 <= min_coverage <= 1:
            raise ValueError(
                f"An extractive answer needs max_sentences >= 1 and min_coverage in 0..1, got {max_sentences} and "
                f"{min_coverage}."
            )
        self._max_sentences = max_sentences
        self._min_coverage = min_coverage
        self._nearest = nearest

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        """Deltas, one per claim, then the Draft. Equal plans give equal drafts.

        A follow-up is read with what the history says it is about, since the plan carries it as it was typed.
        """
        pieces, stop = self.answer(standalone(plan.question, plan.history), plan.evidence)
        for piece in pieces:
            yield Delta(piece)
            await asyncio.sleep(0)  # others share this loop
        yield Draft("".join(pieces), stop)

    def answer(self, question: str, evidence: Sequence[Evidence]) -> tuple[list[str], StopReason]:
        """The claims of the answer, to be joined as they are, and why it ends."""
        if not evidence:
            return ["The library has no source for this question."], StopReason.NOT_COVERED
        judge = Judge(asked(question), candidates_of(evidence))
        quoted: dict[Candidate, str] = {}  # and whom it is about, where it does not say so itself
        missing: list[Term] = []
        subjects: Sequence[Term | None] = judge.wanted.subjects or (None,)
        room = max(1, self._max_sentences // len(subjects))
        for subject in subjects[: self._max_sentences]:
            chain = judge.best_chain(subject, room)
            unmet = self._missing(judge, subject, chain)
            missing += unmet
            for candidate in () if unmet or not chain else chain:
                unnamed = len(subjects) > 1 and subject is not None and not subject.within(candidate.own)
                quoted.setdefault(candidate, subject.shown if unnamed and subject else "")
        if not quoted and self._nearest:
            quoted = self._nearest_to(question, judge)
        if not quoted:
            return [_not_covered(missing)], StopReason.NOT_COVERED
        claims = [_claim(candidate, name) for candidate, name in quoted.items()]
        left = [s for s in judge.wanted.subjects if not any(s.within(c.above) or about(s, c) >= 0.5 for c in quoted)]
        claims += [f"The sources do not say this of {_listed(left)}."] if left else []
        return [claim + " " for claim in claims[:-1]] + claims[-1:], StopReason.END

    def _nearest_to(self, question: str, judge: Judge) -> dict[Candidate, str]:
        """A sentence for each subject: the one that leads on from it where others are asked about through it."""
        found: dict[Candidate, str] = {}
        subjects: Sequence[Term | None] = judge.wanted.subjects or (None,)
        for subject in subjects[: self._max_sentences]:
            phrase = innermost(question, subject) if subject else ""
            lead = Judge(asked(f"Which is {phrase}?"), judge.candidates) if phrase else None
            if (candidate := judge.nearest(subject, lead)) is not None:
                found.setdefault(candidate, "")
        return found

    def _missing(self, judge: Judge, subject: Term | None, chain: Sequence[Candidate]) -> list[Term]:
        """What a chain leaves uncovered, when that is too much to be an answer about `subject`; else nothing."""
        wanted = judge.wanted
        if not chain:
            return list(wanted.words if subject is None else [subject])
        telling = judge.most_telling(chain)
        lost = [qualifier for qualifier in wanted.qualifiers if not any(holds(qualifier, c) for c in telling)]
        if lost:
            return lost
        unsaid = [word for word in wanted.words if not any(says(word, c) for c in chain)]
        silent = bool(unsaid) and len(unsaid) == len(wanted.words)  # a date alone does not say when what happened
        return (unsaid or list(wanted.words)) if silent or judge.coverage(chain) < self._min_coverage else []


# ---------------------------------------------------------------------------------------------- how it reads


def _claim(candidate: Candidate, name: str) -> str:
    """`sentence [S1].`: the marker stands before the full stop, so that it belongs to its claim beyond doubt.

    With a `name`, `name: sentence [S1].`: two sentences about "the company" side by side tell nobody which is which.
    A sentence that ends in a quotation or without a stop keeps its end and gets marker and full stop behind it.
    Anything in the source that looks like a marker or opens code would change what is cited: it is left out.
    """
    text = _MARKER_LIKE.sub("", candidate.sentence.text)
    text = re.sub(r"\s+", " ", text.replace("`", "")).strip()
    match = _END.search(text)
    body, stop = (text[: match.start()].rstrip(), match.group()) if match else (text, ".")
    space = "" if stop in "。！" else " "
    return f"{name and f'{name}: '}{body}{space}[{candidate.sid}]{stop}"


def _not_covered(missing: Sequence[Term]) -> str:
    if not missing:
        return "The sources do not answer this question."
    return f"The sources do not answer this: they say nothing about {_listed(missing)}."


def _listed(missing: Sequence[Term]) -> str:
    whole = list(dict.fromkeys(term.shown for term in missing))[:4]
    shown = [text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}\u2026" for text in whole]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


LONGEST_SHOWN = 60  # characters of what is missing: a question of thousands without a blank is not sent back whole
_END = re.compile(r"(?:\.{1,3}|[!…。！]+)$")
_MARKER_LIKE = re.compile(r"\\?[\[［【]\s*[SsＳｓ]-?\d[\dSsＳｓ,;\s-]*\\?[\]］】](?:\([^)]*\))?")
