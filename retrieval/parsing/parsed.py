"""What a parser makes of a file, and how it says that it cannot: the words that all of parsing/ shares.

Text is written through `Draft`, so that it is clean, its marks stand where they should, and none grows without end.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.types import Mark
from retrieval.records import clean


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file may take before it is given up. `ocr` has pages without text read by tesseract if it is there."""

    seconds: float = 60.0
    memory_mb: int = 1024  # address space of the process that reads it
    file_mb: int = 100
    text_chars: int = 20_000_000
    ocr: bool = False


DEFAULTS = Limits()


@dataclass(frozen=True, slots=True)
class Parsed:
    """One document out of a file. `fields` has what the file states besides: title, published.

    A file of `records` has those instead: objects that state their own id, text and readers.
    """

    text: str
    marks: tuple[Mark, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    records: tuple[Mapping[str, object], ...] = ()


class Refused(Exception):
    """A file cannot become a document. `code` is stable; `reason` is for a person, and never what a library said."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class Draft:
    """A text that grows block by block; blocks stand apart by a blank line."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._blocks: list[str] = []
        self._marks: list[Mark] = []
        self._size = 0
        self._pending = ""

    @property
    def has_text(self) -> bool:
        """True when anything was written."""
        return bool(self._blocks)

    @property
    def size(self) -> int:
        """Characters written so far."""
        return self._size

    def mark(self, name: str) -> None:
        """What is written from now on is at `name`; a mark before which nothing was written is forgotten."""
        self._pending = name

    def heading(self, level: int, text: str) -> None:
        """A heading, as Markdown writes it."""
        if text := one_line(text):
            self.block(f"{'#' * min(max(level, 1), 6)} {text}")

    def block(self, text: str, apart: str = "\n\n") -> None:
        """A paragraph, a table, a list; `apart` stands between it and what was written before."""
        text = plain(text).strip("\n").rstrip()
        if not text.strip():
            return
        if self._blocks:
            text = apart + text
        start = self._size + (len(apart) if self._blocks else 0)  # where the words begin, not what parts them
        if self._pending and (not self._marks or self._marks[-1].name != self._pending):
            self._marks.append(Mark(start, self._pending))
        self._pending = ""
        self._size += len(text)
        if self._size > self._limits.text_chars:
            raise Refused(
                "too_big", f"holds more than {self._limits.text_chars} characters of text: split it, or raise the limit"
            )
        self._blocks.append(text)

    def parsed(self, fields: Mapping[str, str] | None = None, remarks: tuple[str, ...] = ()) -> Parsed:
        """All that was written. Raises Refused when that is nothing."""
        if not self._blocks:
            raise Refused("no_text", "has no text in it")
        stated = {name: one_line(value) for name, value in (fields or {}).items() if one_line(value)}
        return Parsed("".join(self._blocks), tuple(self._marks), stated, remarks)


def plain(text: str) -> str:
    """The text as `document_of` will leave it, so that offsets into it stay true."""
    return clean(text).replace("\ufeff", "")


def one_line(text: str) -> str:
    """The text without line ends and doubled blanks."""
    return " ".join(plain(text).split())


def counted(n: int, thing: str) -> str:
    """ "1 page", "3 pages"."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def listed(numbers: list[int]) -> str:
    """Numbers as a person writes them: "2, 5-9"; of many the first ones."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    told = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ", ".join(told[:12]) + (f" and {len(told) - 12} more" if len(told) > 12 else "")


def fold(text: str) -> str:
    """Blanks as a browser shows them: runs become one, and there are none at the ends."""
    return re.sub(r"[ \t\n\r\f\xa0]+", " ", text)
