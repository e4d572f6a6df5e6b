"""What a reply says, read as a client reads it: the events of a stream, and whether citations hold together.

Knows the wire alone. The clock is the caller's.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MARKER = re.compile(r"\[(S\d+)\]")
# What a reader needs to find the place again.
OF_A_CITATION = ("marker", "chunk_id", "doc_id", "title", "quote")


@dataclass(slots=True)
class Heard:
    """A stream as it is heard, line by line. Times are the clock's; None is "not yet", or "never"."""

    clock: Callable[[], float]
    first_at: float | None = None
    last_text_at: float | None = None
    citation_at: float | None = None
    pieces: int = 0
    cited: list[str] = field(default_factory=list)
    body: Mapping[str, Any] | None = None  # Any: JSON; what `done` carries
    failure: str = ""
    _event: str = ""

    @property
    def ended(self) -> bool:
        """True once exactly one of `done` and `error` has come."""
        return self.body is not None or bool(self.failure)

    def line(self, text: str) -> None:
        """Takes the next line, without its end. Comments and empty lines say nothing."""
        if text.startswith("event:"):
            self._event = text.removeprefix("event:").strip()
        elif text.startswith("data:"):
            self._data(text.removeprefix("data:").strip())

    def _data(self, text: str) -> None:
        try:
            told = json.loads(text)
        except ValueError:
            self.failure = self.failure or f"event {self._event} holds no JSON"
            return
        if self.ended:
            self.failure = self.failure or f"event {self._event} after the end"
        elif self._event == "delta":
            self._text(str(told.get("text", "")))
        elif self._event == "citation":
            self.citation_at = self.clock()
            self.cited.append(str(told.get("marker")))
        elif self._event == "done":
            self.body = told
        elif self._event == "error":
            self.failure = f"error {told.get('error', {}).get('code', 'without a code')}"

    def _text(self, text: str) -> None:
        if not text.strip():
            return  # nobody sees a blank
        self.last_text_at = self.clock()
        self.pieces += 1
        if self.first_at is None:
            self.first_at = self.last_text_at

    def closed(self) -> str:
        """Why the stream counts as failed now that it is over; empty when it was whole."""
        if self.failure:
            return self.failure
        if self.body is None:
            return "the stream ended without done or error"
        if (promised := {one.get("marker") for one in self.body.get("citations", [])}) != set(self.cited):
            return f"citation events {sorted(self.cited)} and those of done {sorted(map(str, promised))} differ"
        return ""


def citations_complete(body: Mapping[str, Any]) -> bool:  # Any: JSON
    """True when every marker in the text has its citation, every citation is used and whole, and ground is cited."""
    used = set(MARKER.findall(str(body.get("answer", ""))))
    given = body.get("citations", [])
    whole = all(all(one.get(name) for name in OF_A_CITATION) for one in given)
    grounded = body.get("grounding") == "grounded"
    return whole and used == {one.get("marker") for one in given} and (bool(given) or not grounded)


def spent(body: Mapping[str, Any]) -> tuple[int | None, int | None, float | None]:
    """Tokens in and out, and dollars; None for what nobody measured, which is not 0."""
    usage, cost = body.get("usage", {}), body.get("cost_usd")
    if not usage.get("measured"):
        return None, None, cost
    sent = sum(int(usage.get(name, 0)) for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens"))
    return sent, int(usage.get("output_tokens", 0)), cost
