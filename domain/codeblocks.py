"""Which characters of a model's Markdown are code, told one character at a time and without looking ahead.

Code is never read for markers. What Markdown would decide by looking ahead is decided here at once: an inline span
ends with its line at the latest, an open fence with the text, and indentation alone does not make code.
"""

_LINE_OPENERS = frozenset(" \t>-*+0123456789.)")  # what may stand before a fence: indentation, quotes, list bullets
_LONGEST_FENCE = 200  # characters of a line that are kept to see whether it closes a fence


class CodeTracker:
    """`takes` says of the next character whether it is code; the runs of ` and ~ around code are part of it."""

    def __init__(self) -> None:
        self._state = self._in_text
        self._tick = "`"
        self._ticks = 0  # length of the run being counted
        self._opened = 0  # length of the run that opened the code we are in
        self._fence_possible = True
        self._line_start = True  # only line openers since the last line break
        self._escaped = False
        self._line = ""  # the current line of a fence, while it may still close it

    def takes(self, char: str) -> bool:
        """True when `char` is code."""
        return self._state(char)

    def passes(self, words: str) -> bool:
        """True when `words`, in which there is no tick, backslash or line break, are text: a short way for many."""
        if self._state != self._in_text or self._escaped:
            return False
        self._line_start = self._line_start and _LINE_OPENERS.issuperset(words)
        return True

    def _in_text(self, char: str) -> bool:
        escaped, self._escaped = self._escaped, char == "\\" and not self._escaped
        at_start, self._line_start = self._line_start, char == "\n" or (self._line_start and char in _LINE_OPENERS)
        if escaped or not (char == "`" or (char == "~" and at_start)):
            return False
        self._tick, self._ticks, self._fence_possible, self._state = char, 1, at_start, self._in_opening_run
        return True

    def _in_opening_run(self, char: str) -> bool:
        if char == self._tick:
            self._ticks += 1
            return True
        self._opened, self._ticks = self._ticks, 0
        if self._opened >= 3 and self._fence_possible:
            self._state = self._in_fence_head
        else:
            self._state = self._in_span if self._tick == "`" else self._in_text
        return self._state(char)

    def _in_span(self, char: str) -> bool:
        if char == "`":
            self._ticks += 1
            return True
        closed, self._ticks = self._ticks == self._opened, 0
        if closed or char == "\n":
            self._state = self._in_text
            return self._in_text(char)
        return True

    def _in_fence_head(self, char: str) -> bool:
        """The rest of a fence's first line. A backtick in it means that ```this``` was a span after all."""
        if char == "`" == self._tick:
            self._state = self._in_span
            return self._in_span(char)
        if char == "\n":
            self._line, self._state = "", self._in_fence
        return True

    def _in_fence(self, char: str) -> bool:
        if char != "\n":
            self._line = self._line + char if len(self._line) < _LONGEST_FENCE else "too long to close it"
            return True
        line, self._line = self._line.strip(" \t\r>"), ""
        if len(line) >= self._opened and set(line) == {self._tick}:
            self._line_start, self._state = True, self._in_text
        return True
