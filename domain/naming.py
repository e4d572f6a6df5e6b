"""The name guard: forbidden terms never reach a reader, whatever they are dressed in.

The second of the two machines behind streaming.py, and the whole of `Naming.scrub`. A term is compared letter by
letter after folding; whatever a reader would not see as a letter is filler and is skipped.

  folded away   case, full-width and styled letters (NFKD), accents, look-alike letters of the table below
  filler        zero-width and control characters, soft hyphens, * _ ~ ` and \\, hyphens, resolved [S1] markers
  blanks        after a hyphen (a word broken at a line's end) and wherever the term itself has a blank or hyphen;
                a term of several words is also found with nothing between them

A term inside a longer word is scrubbed too ("zanzibrands", a file name, an address): a name half shown is a name
shown. Not covered, on purpose: digits for letters, spelt-out letters, transliterations, HTML entities. List them
as terms of their own where they matter.

The machine holds back only text that could still become a term: at most MAX_FILL fillers after each letter of the
longest term. Filler beyond that, inside what may be a term, is not sent at all, so that padding cannot break the guard.
"""

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from domain.errors import ConfigError
from domain.markers import Marker, Piece

REDACTED = "[name removed]"
MAX_FILL = 32
LONGEST_EMPHASIS = 3  # "***" opens bold italics; a longer run opens nothing
_STANDINS = (REDACTED, "[redacted]", "[withheld]", "[...]", "\u2588\u2588\u2588")

_EMPHASIS = frozenset("*_~`")
_BALANCED = frozenset("*~`")  # "_" inside a word is no emphasis in Markdown
_HYPHENS = frozenset("-\u2010\u2011\u00ad\u058a\u2043")
_UNSEEN_LETTERS = frozenset("\u115f\u1160\u3164\u2800")  # fillers that Unicode calls letters or symbols
_ACCENTS = ((0x0300, 0x036F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE00, 0xFE0F), (0xFE20, 0xFE2F))

# Letters of other scripts that pass for Latin ones, as pairs. Capitals stand here only where they look like another
# letter than their small form does (Greek capital Nu is an N, the small one a v).
_LOOK_ALIKES = (
    "аa вb ьb сc ԁd еe ɡg һh нh іi ӏl јj кk мm пn оo рp ԛq гr ѕs тt уy ѵv ԝw хx зz "  # Cyrillic
    "αa βb ςc εe ηn ιi ϳj κk νv οo ρp τt υu μu χx γy ωw ζz ΗH ΝN ΥY ΜM "  # Greek
    "օo սu ոn հh "  # Armenian
    "ıi ɩi ɑa łl øo đd ħh ŧt ƶz ᴀa ʙb ᴄc ᴅd ᴇe ɢg ʜh ɪi ᴊj ᴋk ʟl ᴍm ɴn ᴏo ᴘp ʀr ꜱs ᴛt ᴜu ᴠv ᴡw ʏy ᴢz "  # Latin
    "’' ‘' ʼ'"
)
LOOK_ALIKES = {pair[0]: pair[1].lower() for pair in _LOOK_ALIKES.split()}


@dataclass(frozen=True, slots=True)
class _Folded:
    """One character as the guard sees it: letters (each with its alternatives), or some kind of filler."""

    letters: tuple[frozenset[str], ...] = ()
    blank: bool = False
    hyphen: bool = False


@dataclass(frozen=True, slots=True)
class _Term:
    """A term's letters, and after how many of them blanks are allowed."""

    letters: tuple[frozenset[str], ...]
    gaps: frozenset[int]


@dataclass(slots=True)
class _Candidate:
    """A term of which `at` letters have been seen, the first of them at position `start`."""

    term: _Term
    start: int
    at: int = 1


class Naming:
    """The forbidden terms, ready to be looked for. Never shows them: not in repr, not in an error."""

    __slots__ = ("_begun", "_roots", "_starter", "standin")

    def __init__(self, terms: Sequence[str]) -> None:
        """Blank terms are skipped. Raises ConfigError for one without a letter, naming only its position."""
        self._roots: dict[str, list[_Term]] = {}
        self._begun: dict[frozenset[str], tuple[_Term, ...]] = {}
        for position, text in enumerate(terms, 1):
            if not text.strip():
                continue
            term = _term(text)
            if not term.letters:
                raise ConfigError(
                    f"Forbidden term {position} of {len(terms)} has no letters or digits: it would match nothing, "
                    "correct or remove it."
                )
            for letter in term.letters[0]:
                self._roots.setdefault(letter, []).append(term)
        # Where no term can begin the text is passed on unread; what is not ASCII is always looked at.
        ascii_starters = [chr(i) for i in range(128) if any(_roots_of(self._roots, chr(i)))]
        self._starter = re.compile("[" + "".join(map(re.escape, ascii_starters)) + "\x80-\U0010ffff]")
        self.standin = REDACTED
        self.standin = next((s for s in _STANDINS if not self.contains(s)), _STANDINS[-1])

    def __repr__(self) -> str:
        return "Naming(...)"

    def __bool__(self) -> bool:
        """True when there is anything to look for."""
        return bool(self._roots)

    def begun_by(self, letter: frozenset[str]) -> tuple[_Term, ...]:
        """The terms that begin with a letter, given with its alternatives; looked up once per letter."""
        if letter not in self._begun:
            terms = {id(t): t for alternative in sorted(letter) for t in self._roots.get(alternative, ())}
            self._begun[letter] = tuple(terms.values())
        return self._begun[letter]

    def scrub(self, text: str) -> str:
        """`text` with every disguise of every term replaced by a neutral word; the rest is left as it is."""
        if not self._roots:
            return text
        scrubber = Scrubber(self)
        pieces = scrubber.feed([text]) + scrubber.close()
        return "".join(piece for piece in pieces if isinstance(piece, str))

    def contains(self, text: str) -> bool:
        """True when `scrub` would replace something."""
        scrubber = Scrubber(self)
        scrubber.feed([text])
        scrubber.close()
        return scrubber.found


class Scrubber:
    """The incremental machine: pieces in, pieces out, markers whole. `found` tells whether any term was met.

    `_held` are the pieces from position `_base` on that some candidate still needs; a character is released once no
    candidate begins at or before it, and by then every match that covers it is known.
    """

    def __init__(self, naming: Naming) -> None:
        self._naming = naming
        self._held: deque[Piece] = deque()
        self._base = 0
        self._candidates: list[_Candidate] = []  # oldest start first
        self._ends: dict[int, int] = {}  # start of a match -> its furthest end
        self._fill = 0
        self._after_hyphen = False
        self._covered_to = 0
        self._kept: list[Piece] = []  # markers and emphasis met inside the current match
        self._out: list[Piece] = []
        self.found = False

    def feed(self, pieces: Iterable[Piece]) -> list[Piece]:
        """What is now certain not to be part of a term."""
        for piece in pieces:
            if isinstance(piece, Marker):
                self._step(piece)
            elif self._naming:
                self._read(piece)
            else:
                self._out.append(piece)
        return self._take()

    def close(self) -> list[Piece]:
        """What was held: no term can be completed any more."""
        self._candidates = []
        self._release()
        return self._take()

    def _read(self, text: str) -> None:
        at = 0
        while at < len(text):
            if not self._candidates:
                found = self._naming._starter.search(text, at)
                until = found.start() if found else len(text)
                if until > at:
                    self._out.append(text[at:until])
                    self._base += until - at
                at = until
            if at < len(text):
                self._step(text[at])
                at += 1

    def _step(self, piece: Piece) -> None:
        folded = _Folded() if isinstance(piece, Marker) else _fold(piece)
        if folded.letters:
            self._fill, self._after_hyphen = 0, False
            self._advance(folded.letters)
        else:
            if folded.blank and not self._after_hyphen:
                self._candidates = [c for c in self._candidates if c.at in c.term.gaps]
            self._after_hyphen = self._after_hyphen or folded.hyphen
            self._fill += 1
            if self._candidates and self._fill > MAX_FILL:
                return
        self._held.append(piece)
        self._release()

    def _advance(self, letters: tuple[frozenset[str], ...]) -> None:
        position = self._base + len(self._held)
        for letter in letters:
            alive = []
            for candidate in self._candidates:
                if letter.isdisjoint(candidate.term.letters[candidate.at]):
                    continue
                candidate.at += 1
                alive.append(candidate)
            alive.extend([_Candidate(term, position) for term in self._naming.begun_by(letter)])
            self._candidates = [c for c in alive if not self._complete(c, position + 1)]

    def _complete(self, candidate: _Candidate, end: int) -> bool:
        if candidate.at < len(candidate.term.letters):
            return False
        self.found = True
        self._ends[candidate.start] = max(end, self._ends.get(candidate.start, 0))
        return True

    def _release(self) -> None:
        free_to = self._candidates[0].start if self._candidates else self._base + len(self._held)
        while self._base < free_to:
            piece, position = self._held.popleft(), self._base
            self._base += 1
            end = self._ends.pop(position, 0)
            if end and position >= self._covered_to:
                self._out.append(self._naming.standin)
            self._covered_to = max(self._covered_to, end)
            if position >= self._covered_to:
                self._out.append(piece)
                continue
            if isinstance(piece, Marker) or piece in _BALANCED or self._kept[-1:] != [""]:
                self._kept.append(piece if isinstance(piece, Marker) or piece in _BALANCED else "")
            if self._base == self._covered_to:
                self._out.extend(_left_open(self._kept))
                self._kept = []

    def _take(self) -> list[Piece]:
        out, self._out = self._out, []
        return out


def _left_open(kept: Sequence[Piece]) -> list[Piece]:
    """What must follow a stand-in: emphasis that closes something before it, then the markers met inside.

    `kept` has "" for any run of other characters. "**zan**zibrand" becomes "**[name removed]**", while the pair
    inside "zan**zi**brand" cancels out.
    """
    open_runs: list[str] = []
    for mark, run in groupby(kept):
        length = len(list(run))
        if isinstance(mark, Marker) or not mark or length > LONGEST_EMPHASIS:
            continue
        text = mark * length
        if open_runs[-1:] == [text]:
            open_runs.pop()
        else:
            open_runs.append(text)
    return [*open_runs, *(piece for piece in kept if isinstance(piece, Marker))]


def _term(text: str) -> _Term:
    letters: list[frozenset[str]] = []
    gaps: set[int] = set()
    for char in text:
        folded = _fold(char)
        letters.extend(folded.letters)
        if folded.blank or (folded.hyphen and char != "\u00ad"):
            gaps.add(len(letters))
    return _Term(tuple(letters), frozenset(gaps - {0, len(letters)}))


def _roots_of(roots: dict[str, list[_Term]], char: str) -> Iterable[bool]:
    return (alternative in roots for letter in _fold(char).letters for alternative in letter)


@lru_cache(maxsize=8192)
def _fold(char: str) -> _Folded:
    if char.isspace():
        return _Folded(blank=True)
    letters: list[frozenset[str]] = []
    hyphen = char in _HYPHENS
    for part in unicodedata.normalize("NFKD", char):
        hyphen = hyphen or part in _HYPHENS
        if not _is_filler(part):
            for small in part.casefold():
                letters.append(frozenset({small, LOOK_ALIKES.get(part, LOOK_ALIKES.get(small, small))}))
    return _Folded(tuple(letters), hyphen=hyphen)


def _is_filler(char: str) -> bool:
    if char in _EMPHASIS or char in _HYPHENS or char in _UNSEEN_LETTERS or char == "\\" or char.isspace():
        return True
    return unicodedata.category(char) in ("Cf", "Cc") or any(low <= ord(char) <= high for low, high in _ACCENTS)
