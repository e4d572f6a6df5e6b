"""Transcripts (VTT, SRT): what was said, put together to paragraphs, with the time at which each cue begins."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from retrieval.parsing.decoding import text_of
from retrieval.parsing.parsed import Draft, Limits, Parsed, Refused, one_line

PAUSE = 4.0  # seconds of silence after which a paragraph ends
ROLLING = 15  # characters that two cues must begin with for the second to be a repetition
LONG = 600  # characters of a paragraph that ends with the next sentence

_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_CUE = re.compile(rf"^\s*{_TIME}\s*-->\s*{_TIME}")
_VOICE = re.compile(r"<v(?:\.[^ >]*)?\s+([^>]+)>")
_TAG = re.compile(r"<[^>]*>|\{\\[^}]*\}")


@dataclass(frozen=True, slots=True)
class Cue:
    """Something said from `start` to `end`, in seconds; `speaker` is empty where nobody is named."""

    start: float
    end: float
    speaker: str
    text: str


def parse(content: bytes, limits: Limits) -> Parsed:
    """The transcript with a mark a cue: "00:01:23"."""
    text, remarks = text_of(content)
    draft, before, size = Draft(limits), None, 0
    for cue in cues(text):
        begins = before is None or _new_paragraph(before, cue, size)
        named = before is None or cue.speaker != before.speaker
        draft.mark(clock(cue.start))
        said = f"{cue.speaker}: {cue.text}" if cue.speaker and (begins or named) else cue.text
        draft.block(said, "\n\n" if begins else " ")
        size = len(said) if begins else size + len(said)
        before = cue
    if before is None:
        raise Refused("no_text", "has no cue in it: lines such as 00:01:23.000 --> 00:01:25.000 are wanted")
    return draft.parsed(remarks=remarks)


def cues(text: str) -> Iterator[Cue]:
    """The cues in order; one that repeats the words of the one before, as rolling captions do, tells what is new."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    at, shown = 0, ""
    while at < len(lines):
        timed = _CUE.match(lines[at])
        at += 1
        if not timed:
            continue
        said = []
        while at < len(lines) and lines[at].strip() and not _CUE.match(lines[at]):
            said.append(lines[at])
            at += 1
        voice = _VOICE.search(" ".join(said))
        words = one_line(html.unescape(_TAG.sub("", " ".join(said))))
        fresh = words.removeprefix(shown).strip() if len(shown) >= ROLLING else words
        shown = words
        if fresh:
            start, end = _seconds(*timed.groups()[:4]), _seconds(*timed.groups()[4:])
            yield Cue(start, end, one_line(voice[1]) if voice else "", fresh)


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction}")


def _new_paragraph(before: Cue, cue: Cue, size: int) -> bool:
    if cue.speaker != before.speaker or cue.start - before.end > PAUSE:
        return True
    return size > LONG and before.text.endswith((".", "!", "?", "。", "…"))


def clock(seconds: float) -> str:
    """A time as "01:02:03"."""
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
