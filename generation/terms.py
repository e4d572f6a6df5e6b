"""What a text is about, as comparable keys: stems of words, identifiers, numbers and names; character pairs for scripts
without spaces.

Not the search analyser: that one decides what is found and is stamped into the index; this one only judges whether a
sentence speaks of the question, and what the question insists on (its entities).
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any

from generation.thesaurus import ideas


class Kind(StrEnum):
    """What a term is to a question. NAME, IDENTIFIER and NUMBER are entities: an answer must be about them."""

    WORD = "word"
    NAME = "name"
    IDENTIFIER = "identifier"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Term:
    """A thing the question speaks of. `keys` are its parts (one, or the words of a name); `shown` is as typed.

    `related` are the ideas an ordinary word may stand for; entities have none.
    """

    shown: str
    keys: tuple[str, ...]
    kind: Kind
    related: frozenset[str] = frozenset()

    @property
    def entity(self) -> bool:
        """True when an answer that is not about this is not an answer."""
        return self.kind is not Kind.WORD

    def within(self, keys: frozenset[str]) -> bool:
        """True when `keys` name it: all words of a name, side by side."""
        if len(self.keys) == 1:
            return self.keys[0] in keys
        return all(f"{first} {second}" in keys for first, second in pairwise(self.keys))


def terms(question: str) -> tuple[Term, ...]:
    """What a question asks about, in its order, each once; question words and stop words are left out.

    Capitals name things only where the question is typed with care: all-capitals and title case say nothing.
    """
    tokens = list(_tokens(question))
    careful = any(token[0].islower() and token not in _LOWER_IN_TITLES for token in tokens)
    found: list[Term] = []
    name: list[str] = []
    for i, token in enumerate(tokens):
        opens = i == 0 and not (len(tokens) > 1 and _names(tokens[1]))  # the first word is capital anyway
        if careful and _names(token) and not opens:
            name.append(token)
            continue
        found.extend(_named(name))
        name = []
        found.extend(_plain(token))
    found.extend(_named(name))
    return tuple({term.keys: term for term in found if all(term.keys)}.values())


def _named(name: list[str]) -> list[Term]:
    while len(name) > 1 and key(name[0]) in _TITLES:
        name = name[1:]
    while len(name) > 1 and key(name[-1]) in _LEGAL_FORMS:
        name = name[:-1]
    shown = re.sub(r"['’]s$", "", " ".join(name))
    return [Term(shown, tuple(key(part) for part in name), Kind.NAME)] if name else []


def _plain(token: str) -> list[Term]:
    """The terms of one token that is no name."""
    if _SPACELESS.match(token):
        runs = [run for run in _ASKING.split(token) if run]
        return [Term(run, (pair,), Kind.WORD) for run in runs for pair in _pairs(run)]  # half a word is not shown
    shown = re.sub(r"['’]s$", "", token)
    if not any(character.isalpha() for character in token):
        return [Term(shown, (key(token),), Kind.NUMBER if len(token) > 1 else Kind.WORD)]
    if _identifier(token):
        return [Term(shown, (key(token),), Kind.IDENTIFIER)]
    return [_word(part) for part in re.split(r"[-/]", shown) if not _light(part)]


def _word(shown: str) -> Term:
    stem = key(shown)
    return Term(shown, (stem,), Kind.WORD, ideas().get(stem, frozenset()))


def keys(text: str) -> frozenset[str]:
    """Everything a text can be matched on: stems, neighbours, ideas, identifiers whole and in parts, dates."""
    found: set[str] = set()
    before = ""
    for token in _tokens(text):
        if _SPACELESS.match(token):
            found.update(_pairs(token))
            continue
        stem = key(token)
        found.update((stem, f"{before} {stem}", *ideas().get(stem, ())))
        if len(stem) > 1 or not before:
            before = stem  # an initial does not part a name: Ada M. Holm is Ada Holm
        if match := _ISO_DATE.fullmatch(token):
            found.update((match[1], _MONTHS[int(match[2]) - 1], str(int(match[3]))))
        elif not token.isalnum():
            found.update(key(part) for part in re.split(r"\W|_", token) if part)
    for day, month, year in _WRITTEN_DATE.findall(text):
        found.add(f"{year}-{_MONTHS.index(month.lower()[:3]) + 1:02d}-{int(day):02d}")
    return frozenset(found - {""})


def entities(text: str) -> frozenset[str]:
    """Keys of the names, identifiers and long numbers a sentence mentions: what a second sentence may link to."""
    tokens = list(_tokens(text))
    return frozenset(
        key(token)
        for i, token in enumerate(tokens)
        if _identifier(token) or (i > 0 and _names(token)) or (len(token) > 2 and token[0].isdigit())
    )


@lru_cache(maxsize=65536)
def key(token: str) -> str:
    """The comparable form of one word: folded, without possessive, stemmed unless it carries digits or symbols."""
    folded = unicodedata.normalize("NFKD", token.replace("’", "'")).casefold().removesuffix("'s").strip("'")
    folded = "".join(character for character in folded if not unicodedata.combining(character))
    if folded.replace(",", "").replace(".", "").isdigit():
        return folded.replace(",", "")
    if folded[:3] in _MONTHS and folded in _MONTH_NAMES:
        return folded[:3]
    return str(_stemmer().stemWord(folded)) if folded.isalpha() else folded


def _tokens(text: str) -> Iterator[str]:
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return (match.group() for match in _TOKEN.finditer(plain))


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _names(word: str) -> bool:
    """True when a capital makes the token a name; a month names no thing, and an acronym may be written out."""
    acronym = len(word) > 1 and word.isupper()
    month = word.casefold() in _MONTH_NAMES
    return word[0].isupper() and not (acronym or month or _light(word) or _identifier(word))


def _light(word: str) -> bool:
    return word != "May" and key(word) in LIGHT


def _identifier(token: str) -> bool:
    """Letters with digits, underscores or symbols, or capitals inside: P3, ERR_CONN_RESET, C++, .NET, PyTorch.

    Not an acronym alone: the source may well write CEO or VPN out.
    """
    if not any(character.isalpha() for character in token):
        return False
    mixed = re.search(r"[a-z][A-Z]|[A-Z]{2,}-[A-Z]{2,}", token) is not None
    return mixed or token[0] == "." or any(character.isdigit() or character in "_+#" for character in token)


@lru_cache(maxsize=1)
def _stemmer() -> Any:  # PyStemmer
    import Stemmer

    return Stemmer.Stemmer("english")


_SPACES_NOT = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af"
_SPACELESS = re.compile(f"[{_SPACES_NOT}]")
_W = f"[^\\W_{_SPACES_NOT}]"
_TOKEN = re.compile(f"[{_SPACES_NOT}]+|(?<!\\w)\\.{_W}+|{_W}(?:{_W}|_)*(?:(?:[-./@:'’]|,(?=\\d))(?:{_W}|_)+)*[+#]*")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_ISO_DATE = re.compile(r"(\d{4})-(0[1-9]|1[0-2])-(\d{2})")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH_NAMES = [*_MONTHS, "january", "february", "march", "april", "june", "july", "august", "september", "sept"]
_MONTH_NAMES += ["october", "november", "december"]
_WRITTEN_DATE = re.compile(rf"\b(\d{{1,2}})\.? ({'|'.join(_MONTH_NAMES)})\.? (\d{{4}})\b", re.IGNORECASE)

_LOWER_IN_TITLES = frozenset(["a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"])
_ASKING = re.compile("为什么|什么时候|什么|多少|哪[个些里儿]?|怎么样?|谁|吗|呢|的|是|了|いつ|どこ|誰|何|ですか|ますか")

_TITLES = frozenset(
    ["dr", "mr", "mrs", "ms", "miss", "prof", "professor", "sir", "dame", "captain", "presid", "minist"]
)
_LEGAL_FORMS = frozenset(["inc", "ltd", "llc", "plc", "corp", "gmbh", "ag", "co"])
_LIGHT_STEMS = """
    a about after all also an and any anyone are as at be been before being between both but by can could describ
    did do doe done down each either explain for from give given had has have he her here his how i if in into is it
    it's list mani may me mean more most much my name need no nor not of off on or other our out over pleas say she
    should so some state such tell than that the their them then there these they this those to too under up us use
    was we were what when where whether which while who whom whose whi why will with would you your kind sort type
    exact exactli show find know get got rid one sinc around
"""
LIGHT = frozenset(_LIGHT_STEMS.split())  # as stems: what carries no subject in a question
