"""What packed evidence shows of a question, as named numbers: the input of covering.py, which weighs them.

All of them can be had before anybody writes an answer, and none reads meaning: whether the things that are asked about
are named, whether the words, years and kind of fact that are asked for stand near them, and how alike the first-stage
arms found question and passage. No number here says yes or no.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from domain.grounding import passage
from domain.names import has, names, written
from domain.specifics import Date, Identifier, Number, Specific, stated, states
from domain.support import pieces
from domain.types import Evidence, Hit

SIGNALS = (
    "subjects",  # names and identifiers in the question, at most 3
    "named",  # share of them that some passage names
    "all_named",
    "named_together",  # the largest share that one passage names
    "passages_about",  # passages of six that name any
    "first_about",  # one by the place of the first that does
    "cosine",  # the best of all passages
    "cosine_about",  # the best of those that name a subject
    "cosine_first",
    "cosine_mean",
    "bm25",  # the best, by asked thing
    "bm25_about",
    "agreed",  # share of six passages that both arms found
    "words",  # share of the asked words that the passages have together
    "words_about",  # that one passage about a subject has
    "words_beside",  # that one sentence with a subject has
    "unknown_words",  # asked words in no passage, at most 3
    "qualifiers",  # numbers and dates in the question, at most 2
    "qualified",  # share of them that any passage states
    "qualified_about",
    "qualified_beside",
    "kind_known",  # 1 when the question says which kind of fact it wants
    "kind_beside",  # 1 when a sentence with a subject holds such a fact that the question does not; .5 unknown
    "words_with_kind",  # the asked words that the best of those sentences has
    "unspaced",  # share of the question's characters that are not ASCII
)
PACK = 6  # passages that shares of passages are shares of: the usual first round


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question as what is looked for: what it names, its further words as keys, and its numbers and dates."""

    names: tuple[str, ...]
    identifiers: tuple[Identifier, ...]
    words: frozenset[str]
    qualifiers: tuple[Specific, ...]
    kind: str

    @property
    def subjects(self) -> int:
        """How many things the question names."""
        return len(self.names) + len(self.identifiers)

    def spoken_of(self, text: str) -> int:
        """How many of them the text names; 1 for a question that names none."""
        if not self.subjects:
            return 1
        there, spelled = stated(text), written(text)
        return sum(has(spelled, name) for name in self.names) + sum(states(there, one) for one in self.identifiers)

    def share_of_words(self, text: str) -> float:
        """Share of the words that the text has; 1 where none is asked."""
        return len(self.words & stated(text).words) / len(self.words) if self.words else 1.0

    def qualified(self, texts: Sequence[str]) -> float:
        """Share of the qualifiers that any of the texts states; 1 where there is none."""
        there = [stated(text) for text in texts]
        met = [any(states(one, qualifier) for one in there) for qualifier in self.qualifiers]
        return sum(met) / len(met) if met else 1.0

    def holds_kind(self, sentence: str) -> bool:
        """True when the sentence has a fact of the kind that is wanted, beyond what the question itself says."""
        there = [one for one in stated(sentence).specifics if one not in self.qualifiers]
        if self.kind == "date":
            return any(isinstance(one, Date) or _is_year(one) for one in there)
        if self.kind == "number":
            return any(isinstance(one, Number) for one in there)
        return any(name not in self.names for name in names(sentence))


@lru_cache(maxsize=256)  # a question is looked at several times on its way
def wanted(question: str) -> Wanted:
    """The question taken apart."""
    found, spelled = stated(question), names(question)
    of_names = stated(" ".join(spelled)).words
    kind = next((kind for kind, asks in _KINDS if asks.search(question)), "")
    return Wanted(
        names=spelled,
        identifiers=tuple(one for one in found.specifics if isinstance(one, Identifier)),
        words=found.words - of_names - _FORM,
        qualifiers=tuple(one for one in found.specifics if not isinstance(one, Identifier)),
        kind=kind,
    )


def signals(question: str, evidence: Sequence[Evidence], hits: Sequence[Hit]) -> dict[str, float]:
    """Every one of SIGNALS. `hits` are those that the evidence was packed from; passages of earlier turns have none."""
    want = wanted(question)
    texts = [passage(one) for one in evidence]
    spoken = [want.spoken_of(text) for text in texts]
    about = [place for place, count in enumerate(spoken) if count]
    near = [texts[place] for place in about]
    beside = [piece for text in near for piece in pieces(text) if want.spoken_of(piece)]
    return {
        **_naming(want, texts, spoken, about),
        **_likeness(want, evidence, hits, about),
        **_wording(want, texts, near, beside),
        **_qualifying(want, texts, near, beside),
        "unspaced": sum(not char.isascii() for char in question) / max(1, len(question)),
    }


def _naming(want: Wanted, texts: Sequence[str], spoken: Sequence[int], about: Sequence[int]) -> dict[str, float]:
    every = want.subjects
    there = sum(any(has(written(text), name) for text in texts) for name in want.names)
    there += sum(any(states(stated(text), one) for text in texts) for one in want.identifiers)
    return {
        "subjects": float(min(every, 3)),
        "named": there / every if every else 1.0,
        "all_named": float(there == every),
        "named_together": max(spoken, default=0) / every if every else 1.0,
        "passages_about": min(len(about), PACK) / PACK,
        "first_about": 1 / (1 + about[0]) if about else 0.0,
    }


def _likeness(
    want: Wanted, evidence: Sequence[Evidence], hits: Sequence[Hit], about: Sequence[int]
) -> dict[str, float]:
    by_id = {hit.chunk.id: hit for hit in hits}
    found = [by_id.get(one.chunk.id) for one in evidence]
    cosines = [0.0 if hit is None or hit.cosine is None else hit.cosine for hit in found]
    things = 1 + len(want.words) + len(want.names) + len(want.identifiers)
    scores = [0.0 if hit is None or hit.bm25 is None else hit.bm25 / things for hit in found]
    both = sum(hit is not None and hit.cosine is not None and hit.bm25 is not None for hit in found[:PACK])
    return {
        "cosine": max(cosines, default=0.0),
        "cosine_about": max((cosines[place] for place in about), default=0.0),
        "cosine_first": cosines[0] if cosines else 0.0,
        "cosine_mean": sum(cosines[:PACK]) / len(cosines[:PACK]) if cosines else 0.0,
        "bm25": max(scores, default=0.0),
        "bm25_about": max((scores[place] for place in about), default=0.0),
        "agreed": both / PACK,
    }


def _wording(want: Wanted, texts: Sequence[str], near: Sequence[str], beside: Sequence[str]) -> dict[str, float]:
    there = frozenset[str]().union(*(stated(text).words for text in texts))
    telling = [piece for piece in beside if want.holds_kind(piece)] if want.kind else beside
    return {
        "words": len(want.words & there) / len(want.words) if want.words else 1.0,
        "words_about": max(map(want.share_of_words, near), default=0.0),
        "words_beside": max(map(want.share_of_words, beside), default=0.0),
        "unknown_words": float(min(3, len(want.words - there))),
        "kind_known": float(bool(want.kind)),
        "kind_beside": float(bool(telling)) if want.kind else 0.5,
        "words_with_kind": max(map(want.share_of_words, telling), default=0.0),
    }


def _qualifying(want: Wanted, texts: Sequence[str], near: Sequence[str], beside: Sequence[str]) -> dict[str, float]:
    return {
        "qualifiers": float(min(2, len(want.qualifiers))),
        "qualified": want.qualified(texts),
        "qualified_about": want.qualified(near),
        "qualified_beside": want.qualified(beside),
    }


def _is_year(one: Specific) -> bool:
    return isinstance(one, Number) and not one.unit and any(1400 <= reading <= 2100 for reading in one.readings)


# ---------------------------------------------------------------------------------------------- tables

_FORM = stated("kind much many long number name type last does did").words  # say how is asked, not what
_KINDS = tuple(
    (kind, re.compile(asks, re.IGNORECASE))
    for kind, asks in (
        ("date", r"\bwhen\b|\b(?:which|what) (?:year|date|day|month)\b|\bsince\b"),
        (
            "number",
            r"\bhow (?:many|much|large|big|high|long|deep|heavy|powerful|old|far)\b|\bwhat (?:share|percentage)\b"
            r"|\bprice\b|\bcosts?\b",
        ),
        ("name", r"\bwho\b|\bwhom\b|\bwhere\b|\bwhich (?:company|town|group|site|team|firm|person|country|city)\b"),
    )
)
