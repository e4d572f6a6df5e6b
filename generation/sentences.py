"""Passages as sentences that can be quoted on their own: prose, list items, table rows and speaker lines.

Quoting is all this file is for: nothing is rewritten but layout (bullets, pipes, hard wraps). Which sentence answers
a question is extractive.py; what the words of a sentence are is terms.py.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_CHARS = 600  # a "sentence" longer than this is a log or a minified file: it is quoted in pieces


@dataclass(frozen=True, slots=True)
class Sentence:
    """A quotable piece of a passage and the line above that says what it is about (heading, question), or empty."""

    text: str
    about: str = ""


@lru_cache(maxsize=2048)  # passages are immutable and come back often; splitting costs more than scoring
def sentences(text: str) -> tuple[Sentence, ...]:
    """The quotable pieces of a passage in reading order; blank text gives none.

    Headings and questions are not answers: they become the `about` of what follows them. A heading holds until the
    next heading, a question until the end of the paragraph that answers it. Table rows repeat their column names.
    """
    found: list[Sentence] = []
    heading = asked = ""
    ended_asking = False
    for block in _blocks(text):
        if match := _HEADING.match(block):
            heading, asked = match["text"].strip(" #*"), ""
            continue
        asked = asked if ended_asking else ""
        lead, said = _lead(block)
        for piece in _pieces(said):
            ended_asking = piece.rstrip("\"'»”’ ").endswith(("?", "？", "؟"))
            if ended_asking:
                asked = piece
            else:
                found.append(Sentence(piece, " ".join(part for part in (heading, lead, asked) if part)))
    return tuple(found)


def _lead(block: str) -> tuple[str, str]:
    """Who speaks or where and when it was written, and the rest: `Ada Holm: We open in May.` A value keeps its name."""
    match = _DATELINE.match(block) or _SPEAKER.match(block)
    rest = block[match.end() :] if match else ""
    if match and len(rest.split()) >= 4 and rest.rstrip("\"'»”’ ")[-1] in ".!?…。！？":
        return match.group().strip(" :-–—"), rest
    return "", block


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs with hard wraps undone; list items, table rows and speaker turns each on their own."""
    prose: list[str] = []
    columns: list[str] = []
    for raw in [*text.splitlines(), ""]:
        line = _BOLD.sub(r"\1", raw.strip())
        is_row = line.count("|") >= 2
        if not is_row:
            columns = []
        if line and not is_row and not _OWN_LINE.match(line):
            prose.append(line)
            continue
        if line and prose and _FENCE.match(line):
            line = ""
        if prose:
            yield " ".join(prose)
            prose = []
        if is_row:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if all(re.fullmatch(r":?-*:?", cell) for cell in cells):
                continue
            if not columns:
                columns = cells
                continue
            pairs = zip(columns + [""] * len(cells), cells, strict=False)
            yield "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs if cell)
        elif line and not _FENCE.match(line):
            if _ITEM.match(line) or _SPEAKER.match(line):
                prose.append(_ITEM.sub("", line))  # its wrapped continuation lines follow
            else:
                yield line


def _pieces(block: str) -> Iterator[str]:
    """The sentences of one paragraph, none longer than MAX_CHARS."""
    ends = _ends(block)
    start = 0
    for end in ends:
        piece = block[start:end].strip()
        start = end
        while len(piece) > MAX_CHARS:
            cut = max(piece.rfind(mark, 1, MAX_CHARS) for mark in ("; ", " ", "，", "、"))
            cut = cut + 1 if cut > 0 else MAX_CHARS
            yield piece[:cut].strip()
            piece = piece[cut:].strip()
        if any(character.isalnum() for character in piece):
            yield piece


def _ends(block: str) -> list[int]:
    """Where sentences end. Stops of other scripts are unmistakable; for Latin full stops syntok knows abbreviations."""
    ends = {match.end() for stop in (_FOREIGN_STOP, _DECIMAL_STOP) for match in stop.finditer(block)} | {len(block)}
    if _LATIN_STOP.search(block):
        from syntok import segmenter

        for paragraph in segmenter.process(block):
            for tokens in paragraph:
                ends.update(token.offset + len(token.value) for token in tokens[-1:] if token.value)
    return sorted(ends)


_HEADING = re.compile(r"^(?:#{1,6}\s+(?P<text>.+))$")
_ITEM = re.compile(r"^(?:[QA]:\s+|[-*+•‣▪–]\s+|\(?\d{1,2}[.)]\s+|\(?[a-z]\)\s+)")
_SPEAKER = re.compile(r"^(?:\[[\d:.]+\]\s*)?[^\W\d_a-z][\w.'-]*(?: [^\W\d_a-z][\w.'-]*){0,3}(?: \([^)]{1,40}\))?:\s")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_DATELINE = re.compile(
    r"^[^\W\d_a-z][^\d\Wa-z]*(?:[ .'-]+[^\d\Wa-z]+)*,? \(?[^()]{0,9}\d{1,2} \w{3,9}\.? \d{4}\)? [-–—] "
)
_FENCE = re.compile(r"^(?:```|~~~|-{3,}$|={3,}$|\*{3,}$)")
_OWN_LINE = re.compile(
    "|".join((_HEADING.pattern.replace("?P<text>", "?:"), _ITEM.pattern, _SPEAKER.pattern, _FENCE.pattern))
)
_FOREIGN_STOP = re.compile(r"[。！？｡؟۔।]+[」』”’）)]*")
_DECIMAL_STOP = re.compile(r"\d[.,]\d+\.(?=\s+[^\W\d_a-z])")  # "release 6.16. If": syntok reads on
_LATIN_STOP = re.compile(r"[.!?…]\W")
