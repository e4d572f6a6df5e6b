"""Does a passage say what a sentence claims? Rules over words, names and specifics, without a model.

They cannot read: a sentence with the right words, numbers, dates and names that means something else passes, and so
does one whose two numbers changed places. What they see without fail is a digit, a unit, a date, an identifier or a
name that the passage does not have; a name in the place of another one is seen where a sentence is copied, no further.
`unstated` is asked of every answer that is given, `supports` when answers are measured: that one wants the words as
well, which an answer in another language than its source cannot have.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from domain.names import has, missing, names, written
from domain.specifics import Specific, Stated, rivals, spelled, stated, states

# Share of a sentence's content words that must come from the passage. Of 646 sentences that people wrote for questions
# of CLAP NQ dev, each from one passage, 644 reach .6 with that passage and 640 reach .8; with another passage drawn at
# random one in a thousand reaches .5.
ENOUGH = 0.6
NEARLY_ALL = 0.8  # of the words of two sentences, their names aside, to call one of them the other
FEWEST_COMMON = 2  # words: with fewer, any two sentences are alike


def supports(passages: Sequence[str], claim: str) -> bool:
    """True when `passages` together hold the claim: enough of its words, and every specific where they stand.

    A claim of neither words nor specifics holds nowhere.
    """
    wanted = stated(claim)
    if not wanted.words and not wanted.specifics:
        return False
    pieces = _read(passages)
    if len(wanted.words & _joined(pieces).words) < ENOUGH * len(wanted.words):
        return False
    return not _lacking(pieces, wanted)


def unstated(passages: Sequence[str], claim: str) -> tuple[str, ...]:
    """The specifics and names of the claim that `passages` together do not state, as the claim spells them."""
    lacking = _lacking(_read(passages), stated(claim))
    spellings = spelled(claim) if lacking else {}
    named = [*missing(claim, passages), *exchanged(claim, passages)]
    return tuple(dict.fromkeys([*(spellings[one] for one in lacking), *named]))


def exchanged(claim: str, passages: Sequence[str]) -> tuple[str, ...]:
    """The names of a claim that repeats a sentence of the passages almost word for word, but has another name there.

    Only such a claim can be told by rule: in other words, a name that another sentence has may well belong to it. And a
    name that stands where the sentence has none, a pronoun perhaps, says who is meant.
    """
    said = names(claim)
    without = _without(claim, said)
    if not said or len(without) < FEWEST_COMMON:
        return ()
    repeated = [piece for passage in passages for piece in pieces(passage) if _repeats(without, piece)]
    there, own = [written(piece) for piece in repeated], written(claim)
    others = ((piece, other) for piece in repeated for other in names(piece) if not has(own, other))
    ousted = {place for piece, other in others for place in _beside(piece, other)}
    strangers = (name for name in said if not any(has(one, name) for one in there))
    return tuple(name for name in strangers if not ousted.isdisjoint(_beside(claim, name)))


def _beside(text: str, name: str) -> list[tuple[str, str]]:
    """The words before and after each place of a name; empty where the text begins or ends."""
    parts = text.casefold().split(name.casefold())
    return [
        ((_WORD.findall(before) or [""])[-1], (_WORD.findall(after) or [""])[0]) for before, after in pairwise(parts)
    ]


def _repeats(without: frozenset[str], piece: str) -> bool:
    """True when a claim of these words says the piece again, its names aside."""
    there = _without(piece, names(piece))
    return len(without & there) >= NEARLY_ALL * max(len(without), len(there))


@lru_cache(maxsize=4096)
def _without(text: str, said: tuple[str, ...]) -> frozenset[str]:
    """The words of a text, its names left out."""
    for name in sorted(said, key=len, reverse=True):
        text = text.replace(name, " ")
    return stated(text).words


def _lacking(pieces: Sequence[Stated], wanted: Stated) -> list[Specific]:
    """The specifics that do not stand where the claim's words come from.

    That is the *span*, the fewest sentences that hold those words. One that a heading or an earlier sentence names may
    stand elsewhere in the passages, unless the span has a rival for it: quoted with another number, a sentence still
    leads to the place of the true one.
    """
    if not wanted.specifics:
        return []
    whole = _joined(pieces)
    span = _joined(_span(pieces, wanted)) if wanted.words else whole
    return [specific for specific in wanted.specifics if not _stands(specific, wanted, span, whole)]


def _stands(specific: Specific, wanted: Stated, span: Stated, whole: Stated) -> bool:
    if states(span, specific):
        return True
    contested = any(rivals(specific, other) and not states(wanted, other) for other in span.specifics)
    return states(whole, specific) and not contested


def _span(pieces: Sequence[Stated], wanted: Stated) -> list[Stated]:
    """Greedy cover: again and again the piece with most words not covered yet; of equals the one that states more of
    the claim's specifics, then the first.
    """
    uncovered, chosen = set(wanted.words), list[Stated]()
    while uncovered and pieces:
        best = max(pieces, key=lambda piece: (len(piece.words & uncovered), _agreeing(piece, wanted)))
        if not best.words & uncovered:
            break
        chosen.append(best)
        uncovered -= best.words
    return chosen


def _agreeing(piece: Stated, wanted: Stated) -> int:
    return sum(states(piece, specific) for specific in wanted.specifics)


def _joined(pieces: Sequence[Stated]) -> Stated:
    return Stated(
        tuple(specific for piece in pieces for specific in piece.specifics),
        frozenset[str]().union(*(piece.words for piece in pieces)),
        frozenset[str]().union(*(piece.units for piece in pieces)),
    )


def _read(passages: Sequence[str]) -> list[Stated]:
    return [stated(piece) for passage in passages for piece in pieces(passage)]


def pieces(passage: str) -> list[str]:
    """The sentences, headings, list items and rows of a passage. A line that was only wrapped goes on in the next."""
    return [piece for piece in _PIECE.split(_WRAPPED.sub(" ", passage)) if piece.strip()]


_WORD = re.compile(r"\w+")
_WRAPPED = re.compile(r"(?<![.!?:|\n\u3002\uff01\uff1f])\n[ \t]*(?![\s#*|>\u2022-]|\d+[.)])")
_PIECE = re.compile(r"(?<=[.!?\u2026])\s+(?=[^\W\d_a-z])|(?<=[\u3002\uff01\uff1f])|\n+")
