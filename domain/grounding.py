"""Which claims of an answer rest on what they cite, and what that makes of the whole: by rule, without a model.

A claim is a sentence that says something. It *rests* on its sources when it carries a marker and the passages behind
its markers state its numbers, dates, identifiers and names (support.py). Whether they mean the same nobody checks here.
"""

import re
from collections.abc import Mapping, Sequence

from domain.injection import guarded
from domain.support import unstated
from domain.types import Citation, Evidence, Grounding, StopReason, Unsupported

MARKERS = re.compile(r" ?\[(S\d+)\]")
MASK = "\0"  # stands for a character of code or of a heading: no blank, no letter
_FENCE = re.compile(r"(`{3,}|~{3,})[^`]*$")
_SPAN = re.compile(r"(?<!`)(`{1,4})(?!`)[^\n]*?(?<!`)\1(?!`)")
# A sentence ends with its stop, the quotes that close it and the markers that follow it. A full stop before a small
# letter or a digit, after a single letter or after a common title is an abbreviation; a line that goes on in small
# letters was only wrapped.
_SENTENCE_END = re.compile(
    r"(?<![\s.(]\w)(?<!\b(?:Dr|Mr|Ms|St|vs|Co))(?<!\b(?:Mrs|Inc|Ltd|Fig|Vol))"
    r"[.!?\u2026]+[\"'\u201d\u2019)*_]*(?:\s*\[S\d+\])*(?=\s+[^\sa-z0-9]|\s*$)"
    r"|[\u3002\uff01\uff1f]+[\"'\u201d\u2019\u300d\uff09)]*(?:\s*\[S\d+\])*"
    r"|\n+(?![a-z])"
)
_ENDED = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\]][\"'\u201d\u2019)*_\s]*$")
_CUT = frozenset({StopReason.LENGTH, StopReason.CONTEXT_FULL, StopReason.TOOL, StopReason.UNKNOWN})


def ground(
    text: str,
    citations: Sequence[Citation],
    packed: Sequence[Evidence],
    stop: StopReason,
    unsupported: Sequence[Unsupported] = (),
) -> Grounding:
    """How much of the visible `text` rests on cited evidence, given the sentences that `check` found unsupported.

    UNGROUNDED: no evidence, no marker that resolved, text that a filter put there, or no claim that rests on what it
    cites. GROUNDED: every claim does. PARTIAL: some do not. Headings, questions, code and lead-ins that end with a
    colon claim nothing; a sentence cut off by a limit is not held against the others.
    """
    if not packed or not citations or stop is StopReason.FILTERED:
        return Grounding.UNGROUNDED
    sids, wrong = {citation.sid for citation in citations}, {one.text for one in unsupported}
    claims = [sentence for sentence in prose_sentences(text) if claims_something(sentence)]
    if stop in _CUT and claims and not _ENDED.search(claims[-1]):
        claims.pop()
    rests = [not sids.isdisjoint(MARKERS.findall(claim)) and unmarked(claim) not in wrong for claim in claims]
    if all(rests) and not wrong:
        return Grounding.GROUNDED
    return Grounding.PARTIAL if any(rests) or not wrong else Grounding.UNGROUNDED


def check(text: str, packed: Sequence[Evidence]) -> tuple[Unsupported, ...]:
    """The sentences of `text` that cite, and state something which none of the passages that they cite states."""
    passages = {evidence.sid: passage(evidence) for evidence in packed}
    found = (unsupported(sentence, passages) for sentence in prose_sentences(text))
    return tuple(one for one in found if one is not None)


def unsupported(sentence: str, passages: Mapping[str, str]) -> Unsupported | None:
    """What the sentence states beyond the passages (by marker) that it cites; None without, or without a marker."""
    sids = tuple(sid for sid in dict.fromkeys(MARKERS.findall(sentence)) if sid in passages)
    if not sids:
        return None
    claim = unmarked(sentence)
    lacking = unstated([passages[sid] for sid in sids], claim)
    return Unsupported(claim, sids, lacking) if lacking else None


def passage(evidence: Evidence) -> str:
    """What a reader of the passage is told: how it is called, from when it is, where it stands, and its text.

    Without what only speaks to a model: a claim that rests on such a sentence was dictated, not found.
    """
    chunk = guarded(evidence).chunk
    told = (chunk.source.title, chunk.source.published, chunk.heading, chunk.text)
    return "\n\n".join(part for part in told if part)


def unmarked(sentence: str) -> str:
    """The sentence without its markers."""
    return MARKERS.sub("", sentence).strip()


def claims_something(sentence: str) -> bool:
    """False for a sentence without a word, for a question, and for a lead-in that ends with a colon."""
    words = unmarked(sentence).strip("*_ ")
    return any(char.isalpha() for char in words) and not words.endswith(("?", ":", "\uff1f", "\uff1a"))


# ---------------------------------------------------------------------------------------------- sentences


def prose_sentences(text: str) -> list[str]:
    """The sentences outside of code and headings, each with the markers that follow it; blank ones are left out."""
    prose = masked(text)
    pieces = (prose[start:end].replace(MASK, "") for start, end in sentence_spans(prose))
    return [piece for piece in pieces if piece.strip()]


def sentence_spans(prose: str, start: int = 0) -> list[tuple[int, int]]:
    """Where the sentences of `prose` from `start` on begin and end; together they cover it."""
    ends = [match.end() for match in _SENTENCE_END.finditer(prose, start)]
    if len(prose) > max([start, *ends[-1:]]):
        ends.append(len(prose))
    return list(zip([start, *ends[:-1]], ends, strict=True)) if ends else []


def masked(text: str, fence: str = "", mid_line: bool = False) -> str:
    """`text` with MASK in place of code and headings, every other character where it was.

    `fence` is the fence that is open where it begins, `mid_line` says that it begins within a line of prose.
    """
    lines = []
    for place, line in enumerate(text.split("\n")):
        bare = line.strip(" \t>")
        before, fence = fence, fence if mid_line and not place else fence_after(bare, fence)
        is_prose = not before and not fence and (not bare.startswith("#") or (mid_line and not place))
        lines.append(_SPAN.sub(lambda span: MASK * len(span[0]), line) if is_prose else MASK * len(line))
    return "\n".join(lines)


def fence_after(line: str, fence: str) -> str:
    """The fence that is open after `line`, before which `fence` was; empty where none is."""
    if fence:
        return "" if line.startswith(fence) and not line.strip(fence[0]) else fence
    opened = _FENCE.match(line)
    return opened[1] if opened else ""
