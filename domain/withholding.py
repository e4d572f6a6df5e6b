"""Sentences held back until it is known whether their sources state what they say; those that do not are never shown.

The third machine of streaming.py, there only where `Rules.on_unsupported` is DROP: it costs the stream a sentence of
delay. A sentence is judged once the character after it is there, so that no later text can change where it ends; what
is shown does not depend on how the text was cut.
"""

from collections.abc import Iterator, Mapping, Sequence

from domain.grounding import MASK, fence_after, masked, sentence_spans, unsupported
from domain.markers import Marker, Piece

LONGEST_SENTENCE = 4000  # characters; what goes on longer is judged in parts
_MAY_END = frozenset(".!?\u2026\u3002\uff01\uff1f\n")
_LOOKED_BACK_AT = 8  # characters before a stop that say whether it ends a sentence: "Mrs." does not


class ClaimGate:
    """Pieces in, pieces out, whole sentences of them. `withheld` counts the sentences that were not shown."""

    def __init__(self, passages: Mapping[str, str]) -> None:
        self._passages = passages
        self._held: list[Piece] = []
        self._text = ""  # of what is held
        self._may_end = False  # something that may end a sentence is held
        self._look_at = 0  # length of it from which on it is looked at again
        self._before = ""  # the last prose before it
        self._fence = ""  # the fence that is open where it begins
        self._mid_line = False
        self.withheld = 0

    def feed(self, pieces: Sequence[Piece]) -> list[Piece]:
        """The sentences that are complete now and rest on what they cite, or cite nothing."""
        shown: list[Piece] = []
        for piece in pieces:
            for part in self._fitting(piece):
                self._hold(part)
                text = part.text if isinstance(part, Marker) else part
                self._text += text
                self._may_end = self._may_end or not _MAY_END.isdisjoint(text)
                if len(self._text) >= LONGEST_SENTENCE and not self._complete(shown, final=False):
                    self._complete(shown, final=True)
        if self._may_end and len(self._text) >= self._look_at:
            self._complete(shown, final=False)
            self._look_at = len(self._text) * 17 // 16  # or a long sentence would be read again with every token
        return shown

    def close(self) -> list[Piece]:
        """The rest, judged as it is."""
        shown: list[Piece] = []
        self._complete(shown, final=True)
        return shown

    def _hold(self, piece: Piece) -> None:
        """Neighbouring texts are held as one, so that nothing remembers where the answer was cut."""
        last = self._held[-1] if self._held else None
        if isinstance(piece, str) and isinstance(last, str):
            self._held[-1] = last + piece
        else:
            self._held.append(piece)

    def _fitting(self, piece: Piece) -> Iterator[Piece]:
        """The piece in parts, each no longer than what may still be held when its turn has come."""
        while isinstance(piece, str) and len(piece) > (room := max(1, LONGEST_SENTENCE - len(self._text))):
            yield piece[:room]
            piece = piece[room:]
        yield piece

    def _complete(self, shown: list[Piece], final: bool) -> bool:
        """Judges the sentences that have ended, with `final` all that is held. False when there was none."""
        text = self._text if final else _settled(self._text)
        prose = self._before + masked(text, self._fence, self._mid_line)
        start = len(self._before)
        last = len(prose) if final else len(prose.rstrip()) - 1  # a sentence has ended when something follows it
        spans = [span for span in sentence_spans(prose, start) if span[1] <= last]
        for begin, end in spans:
            pieces = self._take(end - begin)
            if unsupported(prose[begin:end].replace(MASK, ""), self._passages) is not None:
                self.withheld += 1
            else:
                shown += pieces
            self._before = prose[max(0, end - _LOOKED_BACK_AT) : end]
        if spans:
            self._may_end = not _MAY_END.isdisjoint(self._text)
        return bool(spans)

    def _take(self, length: int) -> list[Piece]:
        """The first `length` characters of what is held, which is held no longer."""
        self._pass_lines(self._text[:length])
        self._text = self._text[length:]
        taken: list[Piece] = []
        while length > 0:
            piece = self._held.pop(0)
            if isinstance(piece, str) and len(piece) > length:
                self._held.insert(0, piece[length:])
                piece = piece[:length]
            taken.append(piece)
            length -= len(piece.text) if isinstance(piece, Marker) else len(piece)
        return taken

    def _pass_lines(self, text: str) -> None:
        *lines, rest = text.split("\n")
        for place, line in enumerate(lines):
            if place or not self._mid_line:
                self._fence = fence_after(line.strip(" \t>"), self._fence)
        self._mid_line = bool(rest) or (self._mid_line and not lines)


def _settled(text: str) -> str:
    """`text` without a last line in which a tick or tilde may still turn out to open or to close code."""
    line_start = text.rfind("\n") + 1
    return text[:line_start] if not {"`", "~"}.isdisjoint(text[line_start:]) else text
