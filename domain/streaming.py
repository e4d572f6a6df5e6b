"""The policies on a stream: raw model text in, events out that are safe to show at once and never withdrawn.

A chain of small machines: markers.py resolves source markers, naming.py guards names, withholding.py, where it is
wanted, holds back claims without support, and here their pieces become events. They read characters, not chunks, so
the joined text and the citations are the same for every way of cutting the same answer; only the borders between text
events differ.

Held back at most: one open bracket, address or named source (the limits at the head of markers.py), and text that may
still become a forbidden term (naming.py). Where nothing on the way can become either, text goes out with the chunk
that brought it, but for blanks at the chunk's end, which wait for the next character.
"""

from collections.abc import Sequence

from domain.grounding import passage
from domain.markers import Marker, MarkerReader, Piece
from domain.naming import Naming, Scrubber
from domain.policies import cite
from domain.types import Citation, Cited, Evidence, TextDelta
from domain.withholding import ClaimGate

ALL_WITHHELD = "The sources do not state what an answer would have to say."


class AnswerStream:
    """One answer on its way to the reader. After `close` the properties say what the reader has seen."""

    def __init__(self, evidence: Sequence[Evidence], naming: Naming, withhold: bool = False) -> None:
        self._evidence = {e.sid: e for e in evidence}
        self._naming = naming
        self._reader = MarkerReader(self._evidence, [e.chunk.source.title for e in evidence])
        self._scrubber = Scrubber(naming)
        self._gate = ClaimGate({e.sid: passage(e) for e in evidence}) if withhold else None
        self._shown: list[str] = []
        self._citations: dict[str, Citation] = {}
        self._closed = False

    def feed(self, text: str) -> list[TextDelta | Cited]:
        """What may be shown now. A marker's first `Cited` follows the text that ends with the marker."""
        if self._closed:
            raise ValueError("The answer stream is closed: a new answer needs a new stream.")
        pieces = self._scrubber.feed(self._reader.feed(text))
        return self._events(self._gate.feed(pieces) if self._gate else pieces)

    def close(self) -> list[TextDelta | Cited]:
        """The rest, once the model has ended, well or not. A second call gives nothing."""
        if self._closed:
            return []
        self._closed = True
        pieces = self._scrubber.feed(self._reader.close()) + self._scrubber.close()
        if self._gate:
            pieces = self._gate.feed(pieces) + self._gate.close()
        events = self._events(pieces)
        return events + (self._events([ALL_WITHHELD]) if self.emptied else [])

    @property
    def text(self) -> str:
        """All visible text so far: the join of every text event."""
        return "".join(self._shown)

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The sources cited so far, once each, by first appearance."""
        return tuple(self._citations.values())

    @property
    def dropped(self) -> int:
        """How many markers and named sources pointed at nothing that was supplied."""
        return self._reader.dropped

    @property
    def withheld(self) -> int:
        """How many sentences were not shown, because what they cite does not state what they say."""
        return self._gate.withheld if self._gate else 0

    @property
    def emptied(self) -> bool:
        """True when nothing is left to read without the sentences that were withheld."""
        return self.withheld > 0 and not any(part.strip() for part in self._shown if part is not ALL_WITHHELD)

    def _events(self, pieces: Sequence[Piece]) -> list[TextDelta | Cited]:
        events: list[TextDelta | Cited] = []
        run: list[str] = []
        for piece in pieces:
            run.append(piece.text if isinstance(piece, Marker) else piece)
            if isinstance(piece, Marker) and piece.sid not in self._citations:
                citation = self._citations[piece.sid] = cite(self._evidence[piece.sid], self._naming)
                events += [TextDelta("".join(run)), Cited(citation)]
                self._shown += run
                run = []
        if run:
            events.append(TextDelta("".join(run)))
            self._shown += run
        return events
