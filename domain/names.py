"""The names in a sentence, and whether a text has them: people, places, firms, products, told by their capitals.

A name is told from a word by its form alone: no list of names, no model. Where a capital says nothing, at the head of
a sentence, a word counts as a name unless it is one that opens sentences or has the ending of a common noun. German,
whose nouns all have capitals, is left alone; scripts without capitals count where they stand in a text with some.
Numbers, dates and identifiers are specifics.py.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from domain.specifics import veiled

NEAR = 3  # words between the words of one name, at most less one: a first name, a title


@dataclass(frozen=True, slots=True)
class Written:
    """The places of every word of a text, by its key, and the first letters of its capitalised words, in runs."""

    places: Mapping[str, tuple[int, ...]]
    initials: str


def names(sentence: str) -> tuple[str, ...]:
    """The names of `sentence` as it spells them, each once; of several words where they stand side by side."""
    plain = veiled(sentence)
    words = list(_WORD.finditer(plain))
    spelled = {word.group() for word in words}
    if not spelled & _OPENERS and not _GERMAN.isdisjoint(word.casefold() for word in spelled):
        return ()
    cased = sum(char.lower() != char.upper() for char in plain) * 2 >= sum(char.isalpha() for char in plain)
    spans: list[tuple[int, int]] = []
    for place, word in enumerate(words):
        if not _is_name(plain, words, place, cased):
            continue
        begin = word.start()
        if spans and plain[spans[-1][1] : begin] in (" ", "-"):
            begin, _ = spans.pop()
        spans.append((begin, word.end()))
    return tuple(dict.fromkeys(plain[begin:end] for begin, end in spans))


def missing(sentence: str, texts: Iterable[str]) -> tuple[str, ...]:
    """The names of `sentence` that none of `texts` has."""
    there = [written(text) for text in texts]
    return tuple(name for name in names(sentence) if not any(has(one, name) for one in there))


@lru_cache(maxsize=2048)  # a passage is cited by many answers
def written(text: str) -> Written:
    """What `text` has of names, whatever stands for a name in it."""
    plain = unicodedata.normalize("NFKC", text)
    words = [match.group() for match in _WORD.finditer(plain)]
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        for key in _keys(word):
            places.setdefault(key, []).append(place)
    initials = "".join(w[0] if w[0].isupper() else "" if w in _JOINING else " " for w in words)
    return Written({key: tuple(found) for key, found in places.items()}, initials)


def has(there: Written, name: str) -> bool:
    """True when the text has every word of the name, and each not far from the one before it.

    A plural or adjective of a word will do, and for capitals the words that they abbreviate: `President Moon` is in
    "President Jae-in Moon", while two names of which each has one of the words are not this one.
    """
    words = [match.group() for match in _WORD.finditer(name)]
    found = [_places(there, word) for word in words]
    if not all(found):
        return len(words) == 1 and name.isupper() and len(name) > 1 and name in there.initials
    return all(_near(before, after) for before, after in pairwise(found))


def _places(there: Written, word: str) -> tuple[int, ...]:
    key = _key(word)
    stems = [key, *(key + ending for ending in _ENDINGS)]
    stems += [key.removesuffix(ending) for ending in _ENDINGS if len(key) > 4 and key.endswith(ending)]
    return tuple(place for stem in stems for place in there.places.get(stem, ()))


def _near(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    return any(abs(one - other) <= NEAR for one in before for other in after)


# ---------------------------------------------------------------------------------------------- what is a name


def _is_name(text: str, words: list["re.Match[str]"], place: int, cased: bool) -> bool:
    word = words[place].group()
    if not word[0].isupper():
        return cased and word[0].lower() == word[0].upper()
    if len(word) == 1 or word.casefold() in _OPENERS:
        return False
    if not _AT_HEAD.search(text[: words[place].start()]):
        return True
    followed = words[place + 1].group() if place + 1 < len(words) else ""
    joined = followed[:1].isupper() and text[words[place].end() : words[place + 1].start()] == " "
    return joined or not _COMMON_ENDING.search(word)


def _keys(word: str) -> Iterator[str]:
    """The word, and every cut of it where its script sets no blanks: nobody knows where a name begins there."""
    key = _key(word)
    yield key
    if word[0].lower() == word[0].upper():
        yield from (key[i:j] for i in range(len(key)) for j in range(i + 2, min(i + 9, len(key) + 1)))


def _key(word: str) -> str:
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", _POSSESSIVE.sub("", word).casefold()))
    return unicodedata.normalize("NFC", bare)


# ---------------------------------------------------------------------------------------------- tables

_WORD = re.compile(r"(?<![\d_])[^\W\d_]+(?:['\u2019][^\W\d_]+)*(?![\d_])")
_AT_HEAD = re.compile('(?:^|[.!?:;\u2026\u2022|]|["\u201c\u201e\u00ab(\\[*#>])[\\s*_"\'\u2018\u201c(\\[-]*$|^\\W*$')
_POSSESSIVE = re.compile(r"['\u2019](?:s|S)?$")
_ACCENTS = re.compile("[\u0300-\u036f]")
_COMMON_ENDING = re.compile(r"(?:ing|ings|ly|tions?|sions?|ments?|ness|ity|ities|ances?|ences?|ers|ors|ies|ists?)$")
_ENDINGS = ("s", "es", "n", "an", "ian", "ish", "ese")
_JOINING = frozenset(("of", "and", "for", "the", "on", "in"))
_GERMAN_WORDS = "der die das und ist ein eine nicht mit von auf wird werden dem den des im zu"
_GERMAN = frozenset(_GERMAN_WORDS.split())
# Words that open a sentence or are written large for emphasis; never a name by themselves.
_OPENING = (
    "a about above according across actually additional additionally after again against all almost along already "
    "also although always among an and another any anybody anyone anything apart are around as aside at available "
    "back based be because been before behind below beside besides between beyond both but by can capital chief "
    "clearly common compared considering contrary could current currently daily dear depending despite did do "
    "does don't down due during each early earlier either else employees end even eventually every everybody "
    "everyone everything evidence except few finally first five following for former formerly four from further "
    "furthermore general generally given had half has have having he hence her here hers him his how however i "
    "i'd i'll i'm i've if in indeed initial initially inside instead into is it it's its itself just key last "
    "late later latest least less let like likewise located long made main mainly major many may maybe me "
    "meanwhile members might more moreover most mostly much must my near nearly neither never nevertheless new "
    "next nine no nobody none nonetheless nor not note nothing notably now of off often old on once one only onto "
    "opened or original originally other others otherwise our out outside over overall part people per perhaps "
    "please plus previous previously prior probably rather recent recently regarding regular right same second "
    "set several shall she should similar similarly since six small so some somebody someone something sometimes "
    "soon staff still such ten than thanks that that's the their them then there there's thereafter therefore "
    "these they third this those though three through throughout thus to today together tomorrow too total "
    "toward towards two typical under unfortunately unless unlike until up upon us use used using usually various "
    "very via was we we'll we're we've well were what whatever when whenever where whereas wherever whether which "
    "while who whole whom whose why will with within without would year yes yesterday yet you your"
)
_OPENERS = frozenset(_OPENING.split())
