"""Raw model text in, plain text and source markers out, one character at a time.

The first of the two machines behind streaming.py. It decides only what is a marker and what is not; whether a
name may be shown is naming.py's business. Every decision looks at one character and a short, capped hold, so the
result cannot depend on how the text was cut into chunks.

What the model may write, and what becomes of it (evidence S1..Sn):

  [S1]  [S1][S2]  [S1, S2]  [S1 S2]      markers; the normal form is [S1][S2]
  [S1-S3]  [S1-3]                        a range: every source in it that was supplied
  [s1]  [S01]  [ Ｓ１ ]  ［S1］  【S1】     the same marker, written carelessly: same normal form
  [S99]  [S0]  [S-1]                     no such source: removed with the blanks before it, and counted
  [S1](address)   [words](address)       the label stays, the address goes; an image's address likewise
  [S1]: address   at a line's start      a link definition: the label stays, the address goes
  [policy.pdf]  (Source: Handbook, p. 4) a source named by the model itself: never a citation, and unless evidence of
                                         that title was supplied its name gives way to "unverified source"
  `a[S1]`  ```...```  ~~~...~~~           code (codeblocks.py): untouched, no citation
  \\[S1\\]  [S1, p. 4]  [S1 and S2]  [1]   plain text, and so is a bare web address
  "... [S1" at the very end              half a marker: removed with the blanks before it, and nothing else
"""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

from domain.codeblocks import CodeTracker

HOLD_LIMIT = 256  # characters of a bracket that may still become a marker: S1..S48 in one pair of brackets
NAME_LIMIT = 120  # characters of "(Source: ...)" or "[file.ext]"; longer ones are prose and stay
ADDRESS_LIMIT = 2048  # the customary longest web address; what is longer and unbroken is dropped unread
BLANK_LIMIT = 32  # blanks held in case the next thing is a marker that goes

_CLOSING = {"[": "]", "［": "］", "【": "】"}
_READ_FIRST = frozenset(_CLOSING) | frozenset("\\")  # what has a meaning of its own inside any hold
_WORDS = re.compile(r"[^\s\\`~\[\]［【(]+(?: [^\s\\`~\[\]［【(]+)*")  # nothing in them can mean anything here
_ITEM = r"S-?\d+(?:-S?\d+)?"
_GROUP = re.compile(rf"\s*{_ITEM}(?:[\s,;]+{_ITEM})*[\s,;]*")
_GROUP_SO_FAR = re.compile(rf"\s*(?:{_ITEM}[\s,;]+)*(?:S-?\d*|S-?\d+-S?\d*)?")
_FILE_NAME = re.compile(r"[^\s\[\]()]+\.(?:pdf|docx?|pptx?|xlsx?|html?|md|rst|txt|epub)", re.IGNORECASE)
_ATTRIBUTION = ("source:", "sources:")
_ADDRESS = re.compile(r"<?(?:[a-z][a-z0-9+.-]*://|(?:mailto|tel|data|javascript):|www\.|//|\.{0,2}/\w)", re.IGNORECASE)
_NO_BLANK_BEFORE = frozenset(".,;:!?)]}\u2026\u3002\u3001\uff0c\uff01\uff1f\uff1b\uff1a\uff09\r\n")
UNVERIFIED = "unverified source"


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker that resolved to supplied evidence; it travels whole."""

    sid: str

    @property
    def text(self) -> str:
        """The marker in its normal form."""
        return f"[{self.sid}]"


Piece = str | Marker


class MarkerReader:
    """The incremental machine: `feed` gives what is decided, `close` decides the rest, `dropped` counts the losses.

    Each state is a method that takes one character; `_state` is the method whose turn it is. `_hold` is text whose
    meaning is open, `_blanks` the blanks before it.
    """

    def __init__(self, sids: Collection[str], titles: Collection[str] = ()) -> None:
        self._sids = tuple(sids)
        self._titles = frozenset(title.strip().casefold() for title in titles)
        self._out: list[Piece] = []
        self._state = self._in_text
        self._blanks = ""
        self._hold = ""
        self._opener = ""
        self._open_brackets = 0
        self._escaped = False
        self._in_half_marker = False  # the bracket being read stands inside the beginning of another
        self._fresh = True  # nothing at all since the last line break
        self._label_at_start = False  # the last label began its line, so ": address" after it would define a link
        self._just_dropped = False
        self._code = CodeTracker()
        self.dropped = 0

    def feed(self, text: str) -> list[Piece]:
        """The pieces decided by `text` and all that came before it, in order."""
        at = 0
        while at < len(text):
            reading = self._state == self._in_text and not self._escaped
            if reading and (words := _WORDS.match(text, at)) and self._code.passes(words[0]):
                self._say(words[0])
                at = words.end()
                continue
            char = text[at]
            at += 1
            if self._code.takes(char):
                self._show_code(char)
            else:
                self._state(char)
        return self._take()

    def close(self) -> list[Piece]:
        """The last pieces. Half a marker, half an address and half a named source go; anything else is shown."""
        hold, state = self._take_hold(), self._state
        if state == self._in_bracket and _GROUP_SO_FAR.fullmatch(_plain(hold[1:])):
            self._blanks = ""
        elif state == self._in_address and _ADDRESS.match(hold[1:].lstrip()):
            pass
        elif state == self._in_named_source and len(hold) >= len("(source:"):
            self._blanks = ""
        elif hold:
            self._say(hold)
        if not self._just_dropped:
            self._flush_blanks()
        self._blanks = ""
        return self._take()

    # ------------------------------------------------------------------------------------------ plain text

    def _in_text(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
            self._say(char)
        elif char in " \t":
            self._blank(char)
        elif char in _CLOSING:
            self._label_at_start = self._fresh and not self._open_brackets
            self._hold, self._opener, self._state = char, char, self._in_bracket
        elif char == "(":
            self._hold, self._state = char, self._in_named_source
        else:
            self._escaped = char == "\\"
            self._say(char)
            if char == "]" and self._open_brackets:
                self._open_brackets -= 1
                self._state = self._after_label

    def _blank(self, char: str) -> None:
        if self._just_dropped and self._fresh:
            return  # a marker that went stood at the line's start: its blank goes with it
        if self._just_dropped:
            self._blanks, self._just_dropped = "", False
        if len(self._blanks) >= BLANK_LIMIT:
            self._flush_blanks()
        self._blanks += char

    def _say(self, text: str) -> None:
        """Plain text: the blanks before it, unless they led to a marker that went, then itself."""
        if self._just_dropped and text[0] in _NO_BLANK_BEFORE:
            self._blanks = ""
        self._just_dropped = False
        self._flush_blanks()
        self._out.append(text)
        _, line_break, line = text.rpartition("\n")
        self._fresh = not line
        self._open_brackets = line.count("[") + (0 if line_break else self._open_brackets)

    def _show_code(self, char: str) -> None:
        if hold := self._take_hold():
            self._say(hold)
        self._state, self._just_dropped = self._in_text, False
        self._flush_blanks()
        self._out.append(char)
        self._fresh = char == "\n"

    def _flush_blanks(self) -> None:
        if self._blanks:
            self._out.append(self._blanks)
            self._blanks, self._fresh = "", False

    # ------------------------------------------------------------------------------------------ brackets

    def _in_bracket(self, char: str) -> None:
        if char == _CLOSING[self._opener]:
            self._close_bracket(char)
            return
        inner = self._hold[1:] + char
        marker_so_far = len(inner) < HOLD_LIMIT and _GROUP_SO_FAR.fullmatch(_plain(inner))
        name_so_far = len(inner) < NAME_LIMIT and not any(c.isspace() or c == "(" or c in _READ_FIRST for c in inner)
        if marker_so_far or (name_so_far and self._opener == "["):
            self._hold += char
            return
        self._in_half_marker = char in _CLOSING and _GROUP_SO_FAR.fullmatch(_plain(self._hold[1:])) is not None
        self._say(self._take_hold())
        self._state = self._in_text
        self._in_text(char)

    def _close_bracket(self, char: str) -> None:
        hold, self._state = self._take_hold(), self._after_label
        inside_half, self._in_half_marker = self._in_half_marker, False
        inner = _plain(hold[1:])
        if _GROUP.fullmatch(inner):
            found = self._resolve(inner)
            self._mark(found)
            if inside_half and not found:
                self._out.append(" ")  # or what is left of "[S[S99]1]" would pass for a marker
        elif self._opener == "[" and _FILE_NAME.fullmatch(hold[1:]) and not self._supplied(hold[1:]):
            self._doubt("[", "]")
        else:
            self._say(hold + char)
            self._open_brackets = max(self._open_brackets - 1, 0)
            self._state = self._after_label if char == "]" else self._in_text

    def _resolve(self, inner: str) -> list[str]:
        """The supplied sources that a group of markers names, once each, in its order."""
        found: list[str] = []
        for first, last in re.findall(r"S(-?\d+)(?:-S?(\d+))?", inner):
            numbers = range(int(first), int(last or first) + 1)
            named = [sid for sid in self._sids if int(sid[1:]) in numbers]
            self.dropped += not named
            found += named
        return list(dict.fromkeys(found))

    def _mark(self, found: list[str]) -> None:
        if not found:
            self._just_dropped = True
            return
        self._just_dropped = False
        self._flush_blanks()
        self._out.extend(Marker(sid) for sid in found)
        self._fresh = False

    # ------------------------------------------------------------------------------------------ link addresses

    def _after_label(self, char: str) -> None:
        self._state = self._in_text
        if char == "(" or (char == ":" and self._label_at_start):
            self._hold, self._state = char, self._in_address
        else:
            self._in_text(char)

    def _in_address(self, char: str) -> None:
        """Hold "(word" or ": word" until it is an address, which goes, or not, which stays."""
        body = self._hold[1:].lstrip()
        link = self._hold[0] == "("
        if link and char == ")" and body.count("(") == body.count(")"):
            self._hold, self._state = "", self._in_text
        elif char.isspace() and not body and char != "\n" and len(self._hold) < BLANK_LIMIT:
            self._hold += char
        elif len(self._hold) > ADDRESS_LIMIT or (char.isspace() and _ADDRESS.match(body)):
            self._state = self._in_rest_of_link if link else self._in_rest_of_address
            self._hold = ""
            self._state(char)
        elif char.isspace() or (char in _READ_FIRST and not _ADDRESS.match(body)):
            self._say(self._take_hold())
            self._state = self._in_text
            self._in_text(char)
        else:
            self._hold += char

    def _in_rest_of_link(self, char: str) -> None:
        """The title of a link, or an address beyond all measure: unread up to its end or the line's."""
        if char in ")\n":
            self._state = self._in_text
        if char == "\n":
            self._in_text(char)

    def _in_rest_of_address(self, char: str) -> None:
        if char.isspace():
            self._state = self._in_text
            self._in_text(char)

    # ------------------------------------------------------------------------------------------ named sources

    def _in_named_source(self, char: str) -> None:
        inner = (self._hold[1:] + char).casefold()
        named = inner.startswith(_ATTRIBUTION)
        if named and char == ")" and inner.count("(") < inner.count(")"):
            hold, self._state = self._take_hold(), self._in_text
            if self._supplied(hold.partition(":")[2]):
                self._say(hold + char)
            else:
                self._doubt("(", ")")
        elif (
            len(inner) < NAME_LIMIT
            and char not in _READ_FIRST
            and char != "\n"
            and (named or any(a.startswith(inner) for a in _ATTRIBUTION))
        ):
            self._hold += char
        else:
            self._say(self._take_hold())
            self._state = self._in_text
            self._in_text(char)

    def _supplied(self, name: str) -> bool:
        """True when evidence of this title was supplied; a page after a comma does not matter."""
        wanted = name.strip().casefold()
        return wanted in self._titles or wanted.partition(",")[0].strip() in self._titles

    def _doubt(self, opening: str, closing: str) -> None:
        self.dropped += 1
        self._say(opening + UNVERIFIED + closing)

    def _take_hold(self) -> str:
        hold, self._hold = self._hold, ""
        return hold

    def _take(self) -> list[Piece]:
        out, self._out = self._out, []
        return out


def _plain(text: str) -> str:
    """Marker letters and digits in their plain form: full-width ones narrowed, s raised."""
    return unicodedata.normalize("NFKC", text).replace("s", "S").replace("\u2013", "-").replace("\u2011", "-")
