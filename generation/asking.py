"""What a question wants: its subjects, what qualifies them, the words of what is asked, and the kind of fact expected.

terms.py finds the terms; this file tells their roles apart. Nothing here has seen the evidence.
"""

import re
from dataclasses import dataclass

from generation.terms import Kind, Term, entities, key, terms


@dataclass(frozen=True, slots=True)
class Cue:
    """The kind of fact that answers, recognised by its form; `weight` says how telling that form is."""

    asks: re.Pattern[str]
    fact: re.Pattern[str] | None  # None: a name that the question does not mention
    weight: float

    def met(self, text: str, known: frozenset[str]) -> bool:
        """True when a text holds such a fact; `known` are the keys of the question."""
        if self.fact is None:
            return bool(entities(text) - known)
        return any(key(match.group()) not in known for match in self.fact.finditer(text))


@dataclass(frozen=True, slots=True)
class Asked:
    """A question taken apart. `subjects` must be what an answer is about, `qualifiers` (years, amounts) must hold for
    it, `words` say what is asked about them. `freshness` is how much a newer source is to be preferred, negative for
    an older one.
    """

    subjects: tuple[Term, ...]
    qualifiers: tuple[Term, ...]
    words: tuple[Term, ...]
    cue: Cue | None
    freshness: float

    def weight(self, term: Term) -> float:
        """How much a term counts in what is asked: what only says of which type the answer is counts little."""
        return 0.4 if term.keys[0] in _TYPES else 1.0

    @property
    def known(self) -> frozenset[str]:
        """All keys of the question: what an answer has to go beyond."""
        return frozenset(key for term in (*self.subjects, *self.qualifiers, *self.words) for key in term.keys)


def asked(question: str) -> Asked:
    """The parts of a question. The word before a subject (pump P3) belongs to it and is not asked for."""
    found = terms(_IDIOM.sub(" ", question))
    subjects = tuple(t for t in found if t.kind in (Kind.NAME, Kind.IDENTIFIER))
    qualifiers = tuple(t for t in found if t.kind is Kind.NUMBER)
    labels = {label.group(1) for subject in subjects for label in _label(subject).finditer(question)}
    words = [t for t in found if t.kind is Kind.WORD and t.shown not in labels and t.keys[0] not in _FORM]
    cue = next((cue for cue in CUES if cue.asks.search(question)), None)
    freshness = 0.5 if _NOW.search(question) else -0.5 if _THEN.search(question) else 0.03
    return Asked(subjects, qualifiers, tuple(words), cue, freshness)


def innermost(question: str, subject: Term) -> str:
    """The noun phrase that leads to the subject first: `the site hit by P3` in a question about its operator.

    What a chain of several passages begins with. Empty where the subject stands in no such phrase.
    """
    before, found, after = question.partition(subject.shown)
    articles = list(_ARTICLE.finditer(before)) if found else []
    if articles and not before[articles[-1].end() :].strip():  # the subject's own article
        articles.pop()
    if not articles:
        return ""
    lead = before[articles[-1].start() :]
    verb = _VERB.match(after) if _CLAUSE.search(lead) else None
    return f"{lead}{subject.shown}{verb.group() if verb else ''}"


def _label(subject: Term) -> re.Pattern[str]:
    """The noun before an identifier (pump P3); after a question word or `I` it is a verb (who makes P3)."""
    verb = r"(?<!\bwho )(?<!\bwhat )(?<!\bthat )(?<!\bwhich )(?<!\bI )(?<!\byou )(?<!\bwe )(?<!\bto )"
    named = re.escape(subject.shown) if subject.kind is Kind.IDENTIFIER else r"(?!)"
    return re.compile(rf"{verb}\b(\w+) {named}", re.IGNORECASE)


def _cue(asks: str, fact: str | None, weight: float, flags: re.RegexFlag = re.IGNORECASE) -> Cue:
    return Cue(re.compile(asks, re.IGNORECASE), None if fact is None else re.compile(fact, flags), weight)


_ARTICLE = re.compile(r"\bthe (?=\w)", re.IGNORECASE)
_CLAUSE = re.compile(r"\b(?:where|that|which|who|when)\b", re.IGNORECASE)
_VERB = re.compile(r"(?: (?:is|was|are|were))? \w+(?: out)?")
_NUMERAL = r"(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a dozen)"
_MONTHS = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DATE = (
    rf"\b(?:1[5-9]|20)\d\d\b|\b\d{{1,2}}\.? {_MONTHS}\b|\b{_MONTHS} \d{{1,2}}\b|\d年|\d月|[周週星]期?[一二三四五六日]"
)
_SPAN = rf"\b{_NUMERAL}[ -](?:[a-z]+ )?(?:second|minute|hour|day|week|month|year|decade)s?\b|\d(?:分|小时|天|年)"
_AMOUNT = rf"\b(?!(?:1[5-9]|20)\d\d\b){_NUMERAL}\b(?! {_MONTHS})"  # neither a year nor the day of a date
_MASS = rf"\b{_NUMERAL} ?(?:kilograms?|kg|grams?|g|tonnes?|tons?|pounds?|lbs?)\b"
_LENGTH = rf"\b{_NUMERAL} ?(?:kilomet|met|millimet|centimet|km\b|m\b|mm\b|cm\b|miles?|feet|inch)"
_REASON = r"\b(?:because|due to|caus\w+|reasons?|as a result|so that|owing to|in order to|led to)\b|因为"
_TYPES = frozenset(
    [
        "compani",
        "firm",
        "group",
        "organis",
        "site",
        "place",
        "town",
        "citi",
        "devic",
        "equip",
        "servic",
        "person",
        "main",
    ]
)
_FORM_STEMS = """
    date day month year number often long far larg big high old back
    now today current latest newest recent new origin initi first came
    earlier later longer shorter bigger smaller larger lower higher fewer faster slower sooner quick
"""
_FORM = frozenset(_FORM_STEMS.split())  # what only says which kind of fact is wanted, or how new: cue and freshness
_IDIOM = re.compile(r"\b(?:found|thought|said|known|believed|supposed) to be\b", re.IGNORECASE)
_THEN = re.compile(r"\b(?:original(?:ly)?|initial(?:ly)?|at first|when it (?:began|started))\b", re.IGNORECASE)
_NOW = re.compile(
    r"\b(?:now|today|current|currently|latest|newest|most recent|at present|still|these days)\b", re.IGNORECASE
)

CUES = (  # the first that fits; exact forms before vague ones
    _cue(
        r"\bwhen\b|\b(?:what|which|on which|in which) (?:date|day|year|month)\b|\bhow far back\b|什么时候|いつ",
        _DATE,
        1,
        re.NOFLAG,
    ),
    _cue(r"\b(?:earlier|more recent(?:ly)?|first|before|older|younger|newer)\b.*\bor\b", _DATE, 0.5, re.NOFLAG),
    _cue(r"\bhow (?:heavy|much does .* weigh)\b|\bweigh|\bweight\b", _MASS, 2),
    _cue(r"\bhow (?:long|often|old)\b|\btook (?:longer|less)|多久", _SPAN, 1),
    _cue(r"\bhow (?:far|tall|wide|deep|high is the (?:tower|wall|building))\b", _LENGTH, 1),
    _cue(
        r"\bhow (?:many|much|large|big|fast|high|low|powerful)\b|\bwhat (?:share|percentage|number)\b|多少",
        _AMOUNT,
        0.5,
    ),
    _cue(
        r"\b(?:more|less|fewer|smaller|larger|higher|lower|bigger)\b.*\bor\b|\bprice\b|\bcost\b|\brevenue\b|\bowe\b",
        _AMOUNT,
        0.5,
    ),
    _cue(r"\bwhos?e?\b|\bwhom\b|\bwhere\b|\bwhich (?:company|town|city|group|person|place)\b|谁|哪", None, 0.5),
    _cue(r"\bwhy\b|\bcauses?d?\b|为什么", _REASON, 0.5),
)
