"""Text to the tokens that the lexical arms count; the same function for passages and for queries.

Three kinds of text, three treatments: ordinary words are folded and stemmed, identifiers (`ERR_CONN_RESET`, `C++`,
`v2.6.0`) stay findable whole and in parts, and scripts without spaces become overlapping character pairs.
It knows no index and no passage: lexical.py counts what comes out here.
"""

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

# Built into every index version. Change it with the output: a test pins the two together.
STAMP = "tidegate-1"

_LONGEST = 128  # characters of one token; base64 blobs must not fill the vocabulary (a SHA-512 in hex just fits)
_CACHED_PIECES = 1 << 17
_PART_SHARE = 0.25  # between .1 and 1 it moved nDCG@10 by .0003 on hotpotqa-mini dev, canard and mtrag together


def analyse(text: str) -> list[str]:
    """The tokens of `text`, in reading order; an identifier stands before its parts. Blank text gives none.

    Composed and decomposed, full-width, accented and differently cased spellings of a word give the same token;
    `é` is `e` here, because people leave accents out when they ask and an English stemmer knows none. English stop
    words are dropped, so a text of nothing else has no tokens either.
    """
    tokens: list[str] = []
    for word in _words(text):
        tokens += word
    return tokens


def weigh(query: str, known: Callable[[str], bool]) -> dict[str, float]:
    """The tokens of a query in reading order and how much each counts: 1 for every time it stands there.

    The parts of an identifier which is `known` whole count a quarter only. Otherwise a passage that says conn, err
    and reset all over would outdo the long one with the ERR_CONN_RESET that was asked for; and without parts nobody
    who writes COVID-19 would find COVID. Hyphenated words are no identifiers: open-source and open source are one
    thing.
    """
    weights: dict[str, float] = {}
    for word in _words(query):
        exact = len(word) > 1 and _IDENTIFIER.search(word[0]) is not None and known(word[0])
        for place, token in enumerate(word):
            weights[token] = weights.get(token, 0.0) + (_PART_SHARE if exact and place > 0 else 1.0)
    return weights


def _words(text: str) -> Iterator[tuple[str, ...]]:
    """The tokens of each word of `text`; none for a stop word."""
    for piece in _PIECES.findall(_normalised(text)):
        # Runs of a spaceless script hardly repeat: they would only push the words out of the cache.
        if len(piece) > _LONGEST or piece[0] >= FIRST_SPACELESS:
            yield _tokens(piece)
        else:
            yield _cached_tokens(piece)


def _normalised(text: str) -> str:
    """NFKC text without invisible characters. They go first, as one between a letter and its accent blocks NFKC."""
    if text.isascii():
        return text
    # NFKC would glue what stands beside a word to it: "Foo™" to "FooTM", "3½" to "31⁄2", "10²" to "102".
    visible = _TRADE_MARKS.sub(" ", _INVISIBLE.sub("", text))
    return unicodedata.normalize("NFKC", _RAISED_AFTER_DIGIT.sub(r" \g<0>", visible))


def _tokens(piece: str) -> tuple[str, ...]:
    """What one piece, as cut by `_PIECES`, is findable by."""
    if _SPACELESS_RUN.match(piece):
        return _pairs(piece)
    whole = _folded(piece)
    if whole[0] == "'" or whole.endswith("n't"):  # "pump 's" in tokenised text; "don't"
        return ()
    if _THOUSANDS.fullmatch(whole):
        return (whole.replace(",", ""),)
    whole = _CLITIC_AT_END.sub("", whole)
    if whole in _STOP_WORDS:
        return ()
    if not _JOINTS.search(whole):
        return (_stem(whole[:_LONGEST]),)
    return (whole[:_LONGEST], *(_stem(part[:_LONGEST]) for part in _parts(whole) if part not in _STOP_WORDS))


def _parts(whole: str) -> Iterator[str]:
    """The parts of an identifier that people search for by themselves.

    A dotted number is a path: `v2.6.0` is found by 2.6 and by 2, never by 6. Single letters are no parts, or
    "C++", "C#" and "C" would be one thing and "U.S." would find every list that has an item U.
    """
    for segment in re.split(r"[-_'&+#]+", whole):
        if len(segment) <= _LONGEST and _DOTTED_NUMBER.fullmatch(segment):
            number = segment.removeprefix("v")
            if number != whole:
                yield number
            while "." in number:
                number = number.rpartition(".")[0]
                yield number
            continue
        names = segment.split(".")
        if len(names) > 1 and max(map(len, names)) == 1:
            yield "".join(names)  # U.S. is found by US
        yield from (name for name in names if len(name) > 1 or name.isdigit())


def _pairs(run: str) -> tuple[str, ...]:
    """Overlapping pairs of characters; a character that stands alone is its own token."""
    return tuple(run[i : i + 2] for i in range(len(run) - 1)) or (run,)


def _folded(piece: str) -> str:
    """Case, accents on Latin and Greek letters, and the many hyphens and apostrophes made one.

    Other scripts keep their marks: in Cyrillic, Indic and Semitic writing they tell words apart.
    """
    word = piece.casefold()
    if word.isascii():
        return word
    bare = _ACCENTED.sub(r"\1", unicodedata.normalize("NFKD", word))
    return unicodedata.normalize("NFC", bare).translate(_LOOK_ALIKES)


def _stem(word: str) -> str:
    """The English Snowball stem; words with digits or letters beyond ASCII stay as they are."""
    if not (word.isascii() and word.isalpha()):
        return word
    with _STEMMING:  # one stemmer must not be used by two threads at a time; misses of the cache are rare
        stem: str = _stemmer().stemWord(word)
    return stem


_STEMMING = threading.Lock()


@lru_cache(maxsize=1)
def _stemmer() -> Any:  # PyStemmer has no types
    import Stemmer

    return Stemmer.Stemmer("english", 0)  # 0: no cache of its own, `_cached_tokens` already is one


_cached_tokens = lru_cache(maxsize=_CACHED_PIECES)(_tokens)

# ------------------------------------------------------------------------------------------------------ characters

# Thai, Lao, Burmese, Khmer, kana, Han and Hangul, without their digits and punctuation. Korean has spaces, but glues
# particles to its words: pairs find the word all the same.
_SPACELESS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\uaa60-\uaa7f"
    "\u1780-\u17d3\u17dc\u17dd\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u309f\u30a1-\u30fa\u30fc-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
FIRST_SPACELESS = "\u0e01"  # Latin, Greek, Cyrillic, Arabic and the scripts of India lie below

# Combining marks inside words, which `\w` does not know: Latin, Cyrillic, Hebrew, Arabic and the scripts of India.
_WORD_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0971-\u0dff"
)

_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_TRADE_MARKS = re.compile("[©®℠™]")
_RAISED_AFTER_DIGIT = re.compile(r"(?<=\d)[²³¹⁰⁴-⁹¼-¾⅐-⅞]")

_HYPHENS = "-‐‑–−"  # the dash of ranges (1990–1995) joins as well, the dash between clauses does not
_APOSTROPHES = "'’ʼ"
_ACCENTED = re.compile("([a-z\u0370-\u03ff])[\u0300-\u036f]+")
_LOOK_ALIKES = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
    | dict.fromkeys(_HYPHENS, "-")
    | dict.fromkeys(_APOSTROPHES, "'")
)

# ---------------------------------------------------------------------------------------------------------- pieces

# Possessive quantifiers (`++`, `*+`): Indian letters stand in both classes, and backtracking over them would explode.
_LETTERS = rf"[^\W_{_SPACELESS}]++(?:[{_WORD_MARKS}]++[^\W_{_SPACELESS}]*+)*+"
_JOINT = rf"(?:_+|[{_HYPHENS}{_APOSTROPHES}.&])"  # hyphens first: elsewhere in the class they would mean a range
_WORD = rf"{_LETTERS}(?:{_JOINT}{_LETTERS})*(?:\+\+|\#(?![A-Za-z0-9]))?"  # pump, AR-7, node.js, ERR_CONN_RESET, C++, C#
_CLITIC = "(?:s|re|ve|ll|d|m)"

_PIECES = re.compile(
    rf"(?!\d){_WORD}"  # first, being by far the most frequent
    rf"|(?<![\w.,])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?!,?\d)"  # 1,200 and 1,200.50
    rf"|(?<!\w)[{_APOSTROPHES}](?:{_CLITIC}|t)(?!\w)"  # 's that lost its word
    rf"|(?<![\w.])\.(?!\d){_WORD}"  # .NET
    rf"|{_WORD}"  # those that begin with a digit
    rf"|[{_SPACELESS}]+"
)
_SPACELESS_RUN = re.compile(rf"[{_SPACELESS}]")
_JOINTS = re.compile(r"[-_'&+#.]")
_IDENTIFIER = re.compile(r"[\d_+#]|\.\w\w|\w\w\.")  # U.S. is none: it is US as well
_THOUSANDS = re.compile(r"\d+(?:,\d+)+(?:\.\d+)?")
_DOTTED_NUMBER = re.compile(r"v?\d+(?:\.\d+)+")
_CLITIC_AT_END = re.compile(rf"'{_CLITIC}$")

# English function words. Lucene's 33 first; the question words, auxiliaries and pronouns after them raised nDCG@10 of
# BM25 from .637 to .669 on mtrag's rewritten questions and from .759 to .765 on hotpotqa-mini dev. Words that tell
# procedures apart (before, after, off, over, under, all, only) stay; so do "us" and "may", being U.S. and May as well.
_FUNCTION_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was
will with
what which who whom whose when where why how
am been being were do does did doing done have has had having can could would should might must shall cannot
i me my you your yours he him his she her hers its we our ours them theirs those
about from some any each other so than too very just also please tell e.g i.e
"""
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
