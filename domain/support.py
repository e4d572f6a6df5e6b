"""Does a passage say what a sentence claims? Rules over words, names and specifics, without a model.

They cannot read: a sentence with the right words, numbers, dates and names that means something else passes, and so
does one whose two numbers changed places. What they see without fail is a digit, a unit, a date, an identifier or a
name that the passage does not have. `unstated` is asked of every answer that is given, `supports` when answers are
measured: that one wants the words as well, which an answer in another language than its source cannot have.
"""

import re
from collections.abc import Sequence

from domain.names import missing
from domain.specifics import Specific, Stated, rivals, spelled, stated, states

# Share of a sentence's content words that must come from the passage. Of 646 sentences that people wrote for questions
# of CLAP NQ dev, each from one passage, 644 reach .6 with that passage and 640 reach .8; with another passage drawn at
# random one in a thousand reaches .5.
ENOUGH = 0.6


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
    return tuple(dict.fromkeys([*(spellings[one] for one in lacking), *missing(claim, passages)]))


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


_WRAPPED = re.compile(r"(?<![.!?:|\n\u3002\uff01\uff1f])\n[ \t]*(?![\s#*|>\u2022-]|\d+[.)])")
_PIECE = re.compile(r"(?<=[.!?\u2026])\s+(?=[^\W\d_a-z])|(?<=[\u3002\uff01\uff1f])|\n+")
