"""Citations, sentence by sentence: does the cited passage say what the sentence says, and is it the right passage?

A citation is a pair: a sentence of the answer and a passage whose marker it carries. The sentence metrics ask only
whether the passages support the sentences (support.py), as Gao et al., EMNLP 2023, do with a model; they need no gold
evidence, and an answer that quotes faithfully from the wrong place passes. `citation_precision` and `citation_recall`
ask for both, support and gold evidence: these are what a gate should hold.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from domain.grounding import claims_something, prose_sentences
from domain.support import supports
from eval.client import Body
from eval.observed import Observed
from eval.ranking import contains


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer without its markers, the passages it cites, and for each whether the citation holds."""

    text: str
    cited: tuple[Body, ...]
    holds: tuple[bool, ...]
    supported: bool


def citation_precision(observed: Observed) -> float | None:
    """Share of the citations that hold: the passage supports the sentence and has a gold sentence, whole.

    Every fact on the way to an answer has its gold sentence, so citing an intermediate hop holds too. A passage that
    says the same in other words counts as wrong: a lower bound, which no lucky word can raise. Not eligible without a
    citation: missing ones are citation recall's business. On a null question every citation is wrong.
    """
    if observed.failed:
        return 0.0
    gold = observed.question.evidence
    pairs = _pairs(observed)
    return _mean(holds and any(contains(passage, anchor) for anchor in gold) for passage, holds in pairs)


def citation_recall(observed: Observed) -> float | None:
    """Share of the gold sentences that stand in a passage which a sentence of the answer cites and is supported by."""
    held = [passage for passage, holds in _pairs(observed) if holds]
    return _mean(any(contains(passage, anchor) for passage in held) for anchor in observed.question.evidence)


def sentence_citation_precision(observed: Observed) -> float | None:
    """Share of the citations whose passage supports the sentence, alone or as a needed part of all that it cites."""
    return 0.0 if observed.failed else _mean(holds for _, holds in _pairs(observed))


def sentence_citation_recall(observed: Observed) -> float | None:
    """Share of the sentences that claim something which are supported by the passages they cite.

    A sentence without a citation is not supported. Not eligible when the service declined.
    """
    if observed.failed:
        return 0.0
    return None if observed.abstained else _mean(claim.supported for claim in claims(observed))


def claims(observed: Observed) -> list[Claim]:
    """The sentences of the answer that claim something or cite something, in order.

    That the sources are silent about something is an admission, not a claim: no passage can say it.
    """
    sources = {passage["marker"]: passage for passage in observed.passages("citations")}
    found = []
    for sentence in prose_sentences(observed.text):
        cited = tuple(sources[sid] for sid in dict.fromkeys(_MARKER.findall(sentence)) if sid in sources)
        if cited or asserts(sentence):
            found.append(_claim(_MARKER.sub("", sentence).strip(), cited))
    return found


def asserts(sentence: str) -> bool:
    """True for a sentence that claims something; that the sources are silent about something is an admission."""
    return claims_something(sentence) and not _ADMISSION.search(sentence)


def _claim(text: str, cited: tuple[Body, ...]) -> Claim:
    texts = [f"{passage['title']}\n\n{passage['quote']}" for passage in cited]
    alone = [supports([one], text) for one in texts]
    together = any(alone) or (len(texts) > 1 and supports(texts, text))
    needed = [
        together and not any(alone) and not supports([*texts[:place], *texts[place + 1 :]], text)
        for place in range(len(texts))
    ]
    return Claim(text, cited, tuple(a or n for a, n in zip(alone, needed, strict=True)), together)


def _pairs(observed: Observed) -> list[tuple[Body, bool]]:
    """Every citation with whether it holds. A source that no sentence cites, as under a heading, supports nothing."""
    pairs = [pair for claim in claims(observed) for pair in zip(claim.cited, claim.holds, strict=True)]
    carried = {passage["marker"] for passage, _ in pairs}
    return pairs + [(passage, False) for passage in observed.passages("citations") if passage["marker"] not in carried]


def _mean(values: Iterable[bool]) -> float | None:
    seen = [float(value) for value in values]
    return fmean(seen) if seen else None


_MARKER = re.compile(r"\s*\[(S\d+)\]")
_ADMISSION = re.compile(
    r"\b(?:sources?|library|documents?|passages?|evidence|context)\b (?:do|does|did) not\b", re.IGNORECASE
)
