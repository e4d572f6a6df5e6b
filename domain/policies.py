"""The rules of an answer as pure functions: question, trigger, pool, citation, status.

Every number arrives in `Rules`; nothing here reads settings, clocks or networks. The name guard has a file of its own
(naming.py), and so have grounding (grounding.py) and the work on a stream (streaming.py).
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from domain.errors import BadRequest, TooLong
from domain.grounding import MARKERS
from domain.naming import Naming
from domain.types import Citation, Evidence, Hit, PoolEntry, Rules, Status, StopReason

# ---------------------------------------------------------------------------------------------- the question

FILLERS = "\u115f\u1160\u3164\uffa0\u2800"  # blanks that Unicode calls letters or symbols


def check_question(text: str, rules: Rules) -> str:
    """The question without the blanks, control and zero-width characters around it.

    Raises BadRequest when nothing is left, TooLong above `rules.max_question_chars`; both name the field.
    """
    first = next((i for i, char in enumerate(text) if not unseen(char)), None)
    if first is None:
        raise BadRequest("The question is blank: send at least one visible character.", field="question")
    last = next(i for i in range(len(text) - 1, -1, -1) if not unseen(text[i]))
    question = text[first : last + 1]
    if len(question) > rules.max_question_chars:
        raise TooLong(
            f"The question has {len(question)} characters, at most {rules.max_question_chars} are read: "
            "ask a shorter question or split it.",
            field="question",
        )
    return question


def unseen(char: str) -> bool:
    """True for what nobody can see and no search can find: blanks, control and zero-width characters, fillers."""
    return char.isspace() or char in FILLERS or unicodedata.category(char) in ("Cc", "Cf", "Cs", "Cn", "Co")


# ---------------------------------------------------------------------------------------------- a second round


def trigger(hits: Sequence[Hit], rules: Rules, round_number: int, deeper: bool) -> str:
    """Why another, wider round should follow round `round_number` (from 1), or "" when none should.

    Thin means: too few chunks, or a best cosine under the bar. Without any cosine (a purely lexical search) only the
    count is judged: not measured is not thin. The bar decides about searching again, never about abstaining.
    """
    if round_number >= rules.max_rounds:
        return ""
    if deeper:
        return "asked to go deeper"
    cosines = [hit.cosine for hit in hits if hit.cosine is not None]
    if cosines and max(cosines) < rules.trigger_cosine:
        return f"best cosine {max(cosines):.2f} is under {rules.trigger_cosine:.2f}"
    chunks = len({hit.chunk.id for hit in hits})
    if chunks < rules.trigger_min_chunks:
        return f"{_count(chunks)} fewer than {rules.trigger_min_chunks}"
    return ""


def _count(chunks: int) -> str:
    return "1 chunk is" if chunks == 1 else f"{chunks} chunks are"


# ---------------------------------------------------------------------------------------------- coverage

# One character is one word where words are not set apart by blanks, and in Hangul, whose words carry their endings.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(f"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\\W_])+")
_ACCENTS = re.compile("[\u0300-\u036f]")
# Words that any passage has. A short list on purpose: what is missing counts alike for both sides of a comparison.
_ANYWHERE = (
    "a about an and any are as at be been but by can could did do does for from had has have how i if in into is it "
    "its me my no not of on or our please s should so some t tell than that the their them then there these they this "
    "to was we were what when where which who whom whose why will with would you your"
)
_STOP_WORDS = frozenset(_ANYWHERE.split())


def coverage(question: str, texts: Sequence[str]) -> float | None:
    """Share of the question's distinct content words that occur in `texts`; None for a question without one.

    A sign that evidence speaks about what was asked, with nobody to judge it: good for comparing two sets of evidence
    on one question, never as a measure of its own. Case, accents and width are folded away, inflection is not.
    """
    asked = _content_words(question) - _STOP_WORDS
    if not asked:
        return None
    there = frozenset[str]().union(*map(_content_words, texts))
    return len(asked & there) / len(asked)


def _content_words(text: str) -> frozenset[str]:
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return frozenset(_WORD.findall(unicodedata.normalize("NFC", plain)))


# ---------------------------------------------------------------------------------------------- the pool


@dataclass(frozen=True, slots=True)
class PoolJoin:
    """A pool after new chunks joined, and the ids that had to leave. Any that left means one prompt cache reset."""

    pool: tuple[PoolEntry, ...]
    evicted: tuple[str, ...]


def join_pool(pool: Sequence[PoolEntry], chunk_ids: Sequence[str], turn: int, cap: int) -> PoolJoin:
    """The pool with the chunks that are not in it yet appended as joined in `turn`; above `cap` the oldest leave.

    A chunk found again keeps its place and its turn. Of more new chunks than the cap holds the first ones, which
    are the best, join.
    """
    known = {entry.chunk_id for entry in pool}
    new = [id_ for id_ in dict.fromkeys(chunk_ids) if id_ not in known][: max(cap, 0)]
    joined = (*pool, *(PoolEntry(id_, turn) for id_ in new))
    over = max(len(joined) - max(cap, 0), 0)
    return PoolJoin(joined[over:], tuple(entry.chunk_id for entry in joined[:over]))


def revalidate(pool: Sequence[PoolEntry], visible_ids: Collection[str], cap: int) -> tuple[PoolEntry, ...]:
    """A client's pool made trustworthy: without chunks that are unknown or forbidden, each chunk once.

    Order is kept, of duplicates the first stays, and above `cap` the oldest leave.
    """
    unique: dict[str, PoolEntry] = {}
    for entry in pool:
        unique.setdefault(entry.chunk_id, entry)
    known = [entry for entry in unique.values() if entry.chunk_id in visible_ids]
    return tuple(known[max(len(known) - max(cap, 0), 0) :])


# ---------------------------------------------------------------------------------------------- citation


def cite(evidence: Evidence, naming: Naming) -> Citation:
    """The citation of packed evidence, every visible string scrubbed. The only place where citations are made.

    The label is the title, or the document id where there is none. Ids with a forbidden term in them are scrubbed
    as well: such a chunk can be read but not asked for again.
    """
    chunk = evidence.chunk
    return Citation(
        sid=evidence.sid,
        chunk_id=naming.scrub(chunk.id),
        doc_id=naming.scrub(chunk.source.doc_id),
        label=naming.scrub(chunk.source.title.strip() or chunk.source.doc_id),
        uri=safe_uri(chunk.source.uri, naming),
        quote=naming.scrub(chunk.text),
        joined_turn=evidence.joined_turn,
        source=naming.scrub(chunk.source.source),
        published=naming.scrub(chunk.source.published),
        place=naming.scrub(chunk.source.place),
    )


def safe_uri(uri: str, naming: Naming) -> str:
    """`uri` when a browser may follow it (http, https, or relative to this server) and it names nobody; else ""."""
    uri = uri.strip()
    if any(unseen(char) or char == "\\" for char in uri) or naming.contains(uri) or naming.contains(unquote(uri)):
        return ""
    try:
        parts = urlsplit(uri)
    except ValueError:  # an unbalanced "[" where a host should be
        return ""
    absolute = parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc
    relative = not parts.scheme and not parts.netloc and not uri.startswith("//")
    return uri if absolute or relative else ""


# ---------------------------------------------------------------------------------------------- status

_STATUS = {
    StopReason.END: Status.COMPLETE,
    StopReason.LENGTH: Status.TRUNCATED,
    StopReason.CONTEXT_FULL: Status.TRUNCATED,
    StopReason.FILTERED: Status.BLOCKED,
    StopReason.NOT_COVERED: Status.NO_SOURCES,
    StopReason.TOOL: Status.INTERRUPTED,
    StopReason.UNKNOWN: Status.INTERRUPTED,
}


def status(stop: StopReason, text: str) -> Status:
    """How the answer ended. A normal end with nothing to show is REFUSED: a blank answer is never a success."""
    ended = _STATUS[stop]
    if ended is Status.COMPLETE and all(unseen(char) for char in MARKERS.sub("", text)):
        return Status.REFUSED
    return ended
