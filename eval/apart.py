"""What two versions answered to one question, side by side, as far as a reader may see it, and which words differ.

Everything that leaves here has been cleaned of forbidden terms. Which questions are worth showing is comparing.py.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

from domain.naming import Naming
from domain.types import Scope
from eval.client import Failure
from eval.observed import Observed
from eval.questions import slices

MOST_WORDS = 5_000  # blanks count too; longer answers are not matched
# Matching takes up to the cube of it where a text repeats itself. Beyond this, words that are more than one in a
# hundred are no longer looked for: they are marked only by what stands around them.
MANY_WORDS = 600
# One ideograph or kana is a word: a line of Chinese has no blanks.
_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"\[S\d+\]|\s+|[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+|\W")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words of an answer; `own` says that the other answer does not have them there."""

    text: str
    own: bool


@dataclass(frozen=True, slots=True)
class Cited:
    """A passage that an answer cites."""

    marker: str
    title: str
    doc_id: str
    quote: str


@dataclass(frozen=True, slots=True)
class Side:
    """What one version answered. `failure` is why there is no answer, empty when there is one."""

    pieces: tuple[Piece, ...]
    status: str
    grounding: str
    citations: tuple[Cited, ...]
    failure: str

    @property
    def text(self) -> str:
        """The whole answer."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Apart:
    """One question with what both versions answered.

    `visible` is False when whoever asked it may read more than the reader of this: then only id, parts and numbers
    are here, and every text is empty.
    """

    question: str
    parts: dict[str, str]
    visible: bool
    query: str
    gold: str
    before: Side
    after: Side


def apart(before: Observed, after: Observed, reader: Scope | None, naming: Naming) -> Apart:
    """The two answers as `reader` may see them; None is the owner of the library, who may see everything."""
    question, scrub = after.question, naming.scrub
    visible = reader is None or (question.tenant == reader.tenant and question.groups <= reader.groups)
    old, new = (scrub(side.text) if visible else "" for side in (before, after))
    theirs, ours = words_apart(old, new)
    return Apart(
        question=scrub(question.id),
        parts={scrub(dimension): scrub(value) for dimension, value in slices(question).items()},
        visible=visible,
        query=scrub(question.query) if visible else "",
        gold=scrub(question.answer) if visible else "",
        before=_side(before, theirs, visible, naming),
        after=_side(after, ours, visible, naming),
    )


def same_answer(before: Observed, after: Observed) -> bool:
    """True when a reader would see the same text, ended in the same way."""
    return (before.failed, before.status, before.text) == (after.failed, after.status, after.text)


def words_apart(before: str, after: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Both texts in pieces, those marked that the other does not have. Joined they are the texts again.

    Texts of more than MOST_WORDS words are not matched: each is one unmarked piece.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if max(len(old), len(new)) > MOST_WORDS:
        return _pieces([Piece(before, own=False)]), _pieces([Piece(after, own=False)])
    steps = SequenceMatcher(None, old, new, autojunk=max(len(old), len(new)) > MANY_WORDS).get_opcodes()
    marked = [_marked(steps, place, "".join(old[step[1] : step[2]])) for place, step in enumerate(steps)]
    theirs = [Piece("".join(old[step[1] : step[2]]), own) for step, own in zip(steps, marked, strict=True)]
    ours = [Piece("".join(new[step[3] : step[4]]), own) for step, own in zip(steps, marked, strict=True)]
    return _pieces(theirs), _pieces(ours)


def excerpt(passage: str, answer: str, most: int = 240) -> str:
    """At most about `most` characters of a passage, around the longest run of words that the answer has too."""
    words, said = _WORDS.findall(" ".join(passage.split()))[:MOST_WORDS], _WORDS.findall(answer)[:MOST_WORDS]
    shared = SequenceMatcher(None, words, said, autojunk=len(said) > MANY_WORDS).find_longest_match()
    first, last, length = shared.a, shared.a + shared.size, sum(map(len, words[shared.a : shared.a + shared.size]))
    while (first > 0 or last < len(words)) and length < most:
        if first > 0:
            first -= 1
            length += len(words[first])
        if last < len(words):
            length += len(words[last])
            last += 1
    told = "".join(words[first:last]).strip()
    return f"{'… ' if first else ''}{told}{' …' if last < len(words) else ''}"


def _marked(steps: Sequence[tuple[str, int, int, int, int]], place: int, text: str) -> bool:
    """True for what differs, and for a blank between two things that do: a mark that is torn reads badly."""
    around = {steps[beside][0] for beside in (place - 1, place + 1) if 0 <= beside < len(steps)}
    return steps[place][0] != "equal" or (text.isspace() and "equal" not in around)


def _pieces(found: Sequence[Piece]) -> tuple[Piece, ...]:
    """Without empty ones, and neighbours of the same kind as one."""
    runs = ((own, "".join(piece.text for piece in run)) for own, run in groupby(found, key=lambda piece: piece.own))
    return tuple(Piece(text, own) for own, text in runs if text)


def _side(observed: Observed, pieces: tuple[Piece, ...], visible: bool, naming: Naming) -> Side:
    response, scrub = observed.response, naming.scrub
    if isinstance(response, Failure):
        told = f"{response.code}: {response.message}" if visible else response.code
        return Side((), "", "", (), scrub(told))
    citations = tuple(
        Cited(scrub(c["marker"]), scrub(c["title"]), scrub(c["doc_id"]), scrub(c["quote"]))
        for c in response["citations"]
        if visible
    )
    return Side(
        pieces, scrub(response["status"]), scrub(response["grounding"]), tuple(citations) if visible else (), ""
    )
