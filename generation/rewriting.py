"""Follow-ups made to stand alone by rules, and the checks any rewrite must pass before it replaces a question.

`standalone` is the whole of the rules, `accept` the whole of the checks; bedrock_rewriter.py uses the checks on what
a model says. A rewrite is only ever searched for, never shown as an answer.
"""

import json
import re
from collections.abc import Sequence
from unicodedata import category

from domain.types import Query, Rewrite, RewriteStatus, Role, Turn, Usage
from generation.terms import Kind, Term, terms

# ---------------------------------------------------------------------------------------------- rules

# Measured on conversations of people (docs/benchmarks.md): more of the replies finds more where a conversation stays
# with its subject, and less where it does not.
REPLIES, READ_CHARS, NAMES, WORDS = 2, 600, 4, 4


class RulesRewriter:
    """The Rewriter that needs no model: carries the subject of earlier questions into a follow-up. Deterministic.

    `lookback` is how many of the user's earlier turns may name the subject.
    """

    def __init__(self, lookback: int = 3) -> None:
        if lookback < 1:
            raise ValueError(f"A rewriter looks back at least one turn, got lookback={lookback}.")
        self._lookback = lookback

    async def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """NOT_NEEDED on a first turn, USED when the subject of an earlier turn was carried in, else UNCHANGED."""
        if not any(turn.role is Role.USER for turn in history):
            return Rewrite(Query(question), RewriteStatus.NOT_NEEDED)
        text = standalone(question, history, self._lookback)
        status = RewriteStatus.UNCHANGED if text == question else RewriteStatus.USED
        return Rewrite(Query(text), status)

    async def paraphrase(self, query: Query) -> Rewrite:
        """With the keywords of the query as one more variant; UNCHANGED when they say nothing new."""
        return widened(query, with_keywords(query))


class AsTyped:
    """Rewriter that leaves every question alone."""

    async def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """The question as typed, said to be so."""
        return Rewrite(Query(question), RewriteStatus.UNCHANGED if history else RewriteStatus.NOT_NEEDED)

    async def paraphrase(self, query: Query) -> Rewrite:
        """The same query."""
        return widened(query, query)


def widened(query: Query, wider: Query, usage: Usage | None = None) -> Rewrite:
    """What became of `query` when another wording was looked for, and what that took."""
    status = RewriteStatus.UNCHANGED if wider == query else RewriteStatus.USED
    return Rewrite(wider, status, "", usage or Usage())


def standalone(question: str, history: Sequence[Turn], lookback: int = 3) -> str:
    """The question with what it leaves unsaid: `and its oil?` after `What about pump P3?` is `pump P3 oil?`.

    A question that has a subject of its own and refers to nothing comes back as it is, and so does one whose subject
    cannot be found. `What about P4?` keeps what was asked about P3. Where no question named anything, what the replies
    spoke of is added. Identifiers of the question are always in what comes back.
    """
    own = terms(question)
    if not _depends(question, own):
        return question
    text = _carried_in(question, own, [turn for turn in reversed(history) if turn.role is Role.USER][:lookback])
    return text if any(term.entity for term in terms(text)) else " ".join([text, *_told(text, history)])


def _carried_in(question: str, own: Sequence[Term], asked: Sequence[Turn]) -> str:
    """The question with the subject of the latest of these questions that has one."""
    for turn in asked:
        earlier = terms(turn.text)
        has_entity = any(term.entity for term in own) and not _PRONOUN.search(question)
        carried = [term for term in earlier if term.entity != has_entity and term not in own]
        if not has_entity:
            carried = _with_class(earlier) or ([] if _depends(turn.text, earlier) else list(earlier))
        known = {key for term in own for key in term.keys}
        phrase = " ".join(dict.fromkeys(term.shown for term in carried if not known.issuperset(term.keys)))
        if phrase:
            return _insert(question, phrase)
    return question


def _told(text: str, history: Sequence[Turn]) -> list[str]:
    """What the latest replies spoke of and `text` does not: a few names first, then a few words of the last reply."""
    latest = [turn.text for turn in reversed(history) if turn.role is Role.ASSISTANT][:REPLIES]
    replies = [terms(_MARKER.sub("", reply[:READ_CHARS])) for reply in latest]
    known = {key for term in terms(text) for key in term.keys}
    new = [[term for term in reply if not known.issuperset(term.keys)] for reply in replies]
    names = dict.fromkeys(term.shown for reply in new for term in reply if term.entity)
    words = dict.fromkeys(term.shown for reply in new[:1] for term in reply)
    return list(dict.fromkeys([*list(names)[:NAMES], *list(words)[:WORDS]]))


def with_keywords(query: Query) -> Query:
    """`query` with its keywords as one more variant; unchanged when there are none or they are already searched."""
    found = terms(query.text)
    apart = [_parts(term.shown) for term in found if term.kind is Kind.IDENTIFIER]
    words = " ".join(dict.fromkeys(term.shown for term in found))
    variant = " ".join([words, *(parts for parts in apart if parts not in words)]).strip()
    known = {text.casefold().strip(" ?.!") for text in (query.text, *query.variants)}
    return query if not variant or variant.casefold() in known else Query(query.text, (*query.variants, variant))


def _depends(question: str, own: Sequence[Term]) -> bool:
    """True when the question points back, opens like a continuation, or names no subject at all."""
    if any(pattern.search(question) for pattern in (_CONTINUES, _PRONOUN, _POINTS_BACK)) or _FRAGMENT.fullmatch(
        question.strip()
    ):
        return True
    return len(own) < 2 and not any(term.entity for term in own)


def _with_class(earlier: Sequence[Term]) -> list[Term]:
    """The entities of an earlier question, each with the word before it when that says what it is (pump P3)."""
    carried: list[Term] = []
    for i, term in enumerate(earlier):
        if term.entity:
            before = earlier[i - 1] if i else None
            if before and not before.entity and term.kind is Kind.IDENTIFIER:
                carried.append(before)
            carried.append(term)
    return carried


def _insert(question: str, phrase: str) -> str:
    """The phrase in the place of the pronoun that stands for it, else at the end."""
    core = _CONTINUES.sub("", question).strip() or question.strip()
    replaced, n = _PRONOUN.subn(lambda _: phrase, core, count=1)
    if n:
        return replaced
    body = core.rstrip(" ?.!？")
    return f"{body} {phrase}{core[len(body) :].strip()}"


def _parts(identifier: str) -> str:
    """An identifier with its parts apart, as another source may write it: AR-7 as AR 7, ERR_CONN as ERR CONN."""
    return re.sub(r"[-_/.]", " ", identifier).strip()


# ---------------------------------------------------------------------------------------------- checks


def accept(question: str, history: Sequence[Turn], raw: str, max_chars: int = 300, same_words: bool = True) -> Rewrite:
    """What becomes of a model's rewrite: USED, UNCHANGED when it repeats the question, or FALLBACK with the reason.

    `same_words` False is for paraphrases: other ordinary words are the point there, new names still are not.

    Quotes around it are taken off. An identifier or a number of the question that got lost is appended: it is often
    the only word that finds the passage.
    """
    text = _unwrap(raw)
    reason = _malformed(text, max_chars) or _astray(question, history, text, same_words)
    if reason:
        return Rewrite(Query(question), RewriteStatus.FALLBACK, reason)
    if text.casefold() == question.strip().casefold():
        return Rewrite(Query(question), RewriteStatus.UNCHANGED)
    kept = {key for term in terms(text) for key in term.keys}
    lost = [t.shown for t in terms(question) if t.kind in _LITERAL and not kept.issuperset(t.keys)]
    return Rewrite(Query(" ".join([text, *lost])), RewriteStatus.USED)


def _unwrap(raw: str) -> str:
    text = raw.strip()
    if text.startswith("{"):
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):  # nested deeper than anybody means it
            return text
        inner = next(iter(said.values()), "") if isinstance(said, dict) and len(said) == 1 else ""
        text = inner.strip() if isinstance(inner, str) else text
    while len(text) > 1 and (text[0], text[-1]) in _QUOTES:
        text = text[1:-1].strip()
    return text


def _malformed(text: str, max_chars: int) -> str:
    """What is wrong with the form of a rewrite, or nothing."""
    if not text:
        return "the rewrite is empty"
    if text[0] in "{[<`*" or any(category(char) in ("Cc", "Cf", "Cs", "Cn", "Co") for char in text.replace("\n", " ")):
        return "the rewrite is not plain text"
    if _REFUSES.match(text):
        return "the rewriter refused"
    if _LEADS_IN.match(text) or "\n" in text:
        return "the rewrite is wrapped in other words"
    if len(text) > max_chars:
        return f"the rewrite has {len(text)} characters, at most {max_chars} are used"
    return ""


def _astray(question: str, history: Sequence[Turn], text: str, same_words: bool) -> str:
    """Why a well-formed rewrite does not ask what was asked, or nothing."""
    if text.endswith((".", "!", "。")) and not _ASKS.match(text):
        return "the rewrite is a statement, not a question"
    said = [term for term in terms(text) if term.keys]
    asked = {key for term in terms(question) for key in term.keys}
    known = asked | {key for turn in history for term in terms(turn.text) for key in term.keys}
    new = [term for term in said if known.isdisjoint(term.keys)]
    if any(term.entity for term in new):
        return "the rewrite names what nobody spoke of"
    strayed = 2 * len(new) > len(said) or (asked and asked.isdisjoint(k for term in said for k in term.keys))
    return "the rewrite is about something else" if not said or (same_words and strayed) else ""


_MARKER = re.compile(r"\[S\d+\]")
_LITERAL = (Kind.IDENTIFIER, Kind.NUMBER)
# A word that is a part of an identifier (IT-7, so.py) is no word.
_ALONE = r"(?![\w#+]|[-./@:]\w)"
_CONTINUES = re.compile(rf"^\s*(?:(?:and|but|so|okay|ok|also|then|or|what about|how about){_ALONE}[\s,]*)+", re.I)
_PRONOUN = re.compile(
    rf"(?<![\w#+])(?<!\w[-./@:])(?:its|it|their|theirs|they|them|his|him|he|hers|her|she){_ALONE}|[它他她]们?", re.I
)
_POINTS_BACK = re.compile(
    r"\b(?:the (?:same|other|former|latter)|this|these|those|that one|ones?)\b|那个|"
    r"^(?:why|when|where|who|how|since when|how (?:much|many|long|often))\s*\?*$",
    re.I,
)
_FRAGMENT = re.compile(r"(?!(?:what|which|who|when|where|why|how|is|are|do|does)\b)\S+(?:\s+\S+){0,2}\?", re.I)
_QUOTES = {('"', '"'), ("'", "'"), ("“", "”"), ("„", "“"), ("«", "»"), ("`", "`"), ("「", "」"), ("‘", "’")}
_REFUSES = re.compile(
    r"(?:i'?m (?:very )?sorry|i am sorry|sorry|apolog|unfortunately|as an? (?:ai|language)|"
    r"i (?:cannot|can't|won'?t|am unable))",
    re.I,
)
_LEADS_IN = re.compile(
    r"(?:sure|certainly|of course|okay|here(?:'s| is| are)|the (?:rewritten|standalone)|"
    r"rewritten|standalone|rewrite|query|question)\b[^?]{0,60}[:!\n]",
    re.I,
)
_ASKS = re.compile(
    r"(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|can|could|should|will|would|has|have|"
    r"list|name|find|show|tell|describe|explain|compare|give)\b",
    re.I,
)
