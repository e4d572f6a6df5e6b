"""What a text states exactly: its numbers, dates and identifiers, in a form in which spellings do not matter.

`1,200 kg`, `1 200 kilograms` and `1200kg` are one number, `3 March 2024` and `2024-03-03` one date, `vx-33` and `VX33`
one identifier. English names of months and numbers are read, digits everywhere. The other words come along as keys.
Nothing here compares a claim with a source; support.py does.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from domain.spellings import MONTHS, ONES, SPELLED, TEENS, TENS, TIMES, UNITS

Day = tuple[int | None, int | None, int | None]  # year, month, day; None is not stated


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it may be read (`1.200` is 1.2 or 1200) with its unit, empty where none was recognised."""

    readings: frozenset[Decimal]
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Date:
    """A date, or the part of it that was stated, as it may be read: 03/04/2024 is in March or in April."""

    readings: frozenset[Day]


@dataclass(frozen=True, slots=True)
class Identifier:
    """A name with digits, underscores or signs in it, its case folded; separators count only between digits."""

    key: str


Specific = Number | Date | Identifier


@dataclass(frozen=True, slots=True)
class Stated:
    """The specifics of a text, its other words as keys, and the units that occur in it anywhere."""

    specifics: tuple[Specific, ...]
    words: frozenset[str]
    units: frozenset[str]


@lru_cache(maxsize=4096)  # a passage is cited by many answers, and read for every sentence that cites it
def stated(text: str) -> Stated:
    """What `text` states: the specifics in reading order, each once."""
    plain = _HYPHENS.sub("-", unicodedata.normalize("NFKC", text))
    specifics: list[Specific] = []
    rest: list[str] = []
    end = 0
    for match in _SPECIFIC.finditer(plain):
        if found := _specifics(match):
            specifics += found
            rest.append(plain[end : match.start()])
            end = match.end()
    words = " ".join([*rest, plain[end:]])
    units = frozenset(UNITS[word] for word in _UNIT_WORD.findall(words.casefold()) if word in UNITS)
    return Stated(tuple(dict.fromkeys(specifics)), frozenset(_keys(words)), units)


def spelled(text: str) -> dict[Specific, str]:
    """The specifics of `text`, each with its first spelling there."""
    plain = _HYPHENS.sub("-", unicodedata.normalize("NFKC", text))
    found: dict[Specific, str] = {}
    for match in _SPECIFIC.finditer(plain):
        for specific in _specifics(match):
            found.setdefault(specific, match.group().strip())
    return found


def veiled(text: str) -> str:
    """`text` with zeros in place of its specifics: what is left are words."""
    plain = _HYPHENS.sub("-", unicodedata.normalize("NFKC", text))
    return _SPECIFIC.sub(lambda match: "0" * len(match[0]) if _specifics(match) else match[0], plain)


def states(there: Stated, specific: Specific) -> bool:
    """True when `there` states the same, or something of which it is a part: a whole date states its year.

    A number without a unit is stated by one with any unit; one with a unit also by a bare number, as a table has it,
    where that unit occurs nearby.
    """
    if isinstance(specific, Date):
        years = frozenset(year for year in _years(there))
        return any(_agree(specific, date, years) for date in there.specifics if isinstance(date, Date))
    if isinstance(specific, Identifier):
        return specific in there.specifics
    if not specific.unit and not specific.readings.isdisjoint(map(Decimal, _years(there))):
        return True
    return any(
        not specific.readings.isdisjoint(number.readings)
        and (specific.unit in ("", number.unit) or (not number.unit and specific.unit in there.units))
        for number in there.specifics
        if isinstance(number, Number)
    )


def rivals(one: Specific, other: Specific) -> bool:
    """True for two that could stand in each other's place: two numbers, two dates, two identifiers."""
    return type(one) is type(other)


def _agree(wanted: Date, there: Date, years: frozenset[int]) -> bool:
    """Every stated part of one reading is in one reading of the other; a missing year may stand elsewhere."""
    return any(
        all(
            part is None or part == found or (place == 0 and found is None and part in years)
            for place, (part, found) in enumerate(zip(reading, other, strict=True))
        )
        for reading in wanted.readings
        for other in there.readings
    )


def _years(there: Stated) -> Iterator[int]:
    for specific in there.specifics:
        if isinstance(specific, Date):
            yield from (year for year, _, _ in specific.readings if year is not None)
        elif isinstance(specific, Number) and not specific.unit:
            yield from (int(value) for value in specific.readings if value == int(value) and 1000 <= value <= 2999)


# ---------------------------------------------------------------------------------------------- reading


def _specifics(match: re.Match[str]) -> list[Specific]:
    """The specifics that were found; none for what only looked like one."""
    found = match.groupdict()
    if found["low"]:
        return [_number(found[end], found["range_unit"]) for end in ("low", "high")]
    if found["digits"]:
        return [_number(found["digits"], found["currency"] or found["unit"], found["times"], bool(found["minus"]))]
    if found["spelled"]:
        return _spelled(found["spelled"].casefold(), found["spelled_times"], found["spelled_unit"])
    if found["identifier"]:
        return _identifier(found["identifier"])
    real = [day for day in _days(found) if 1 <= (day[1] or 1) <= 12 and 1 <= (day[2] or 1) <= 31]
    return [Date(frozenset(real))] if real else []


def _days(found: dict[str, str | None]) -> list[Day]:
    """The days a date may mean; two for 03/04/2024, whose order nobody can know."""
    number = {name: int(value) for name, value in found.items() if value and name.startswith(("iso_", "num_", "day_"))}
    if found["iso"]:
        return [(number["iso_y"], number["iso_m"], number["iso_d"])]
    if found["numeric"]:
        return [(number["num_y"], number[m], number[d]) for m, d in (("num_1", "num_2"), ("num_2", "num_1"))]
    name = found["month_1"] or found["month_2"] or found["month_3"] or ""
    year = found["year_1"] or found["year_2"] or found["year_3"]
    day = number.get("day_1") or number.get("day_2")
    return [(int(year) if year else None, MONTHS.index(name[:3].casefold()) + 1, day)]


def _identifier(token: str) -> list[Specific]:
    """`AR-7-based` is about AR-7 and `20th` a number; two words with a hyphen between are no identifier."""
    token = _ADJECTIVE.sub("", token)
    if ordinal := _ORDINAL.fullmatch(token):
        return [_number(ordinal[1])]
    letters, digits = any(c.isalpha() for c in token), any(c.isdigit() for c in token)
    named = (letters and digits) or "_" in token.strip("_") or token[-1] in "+#" or (digits and ":" in token)
    if not named and not re.fullmatch(r"\d+(?:[-./]\d+){2,}", token):
        return []
    return [Identifier(_SEPARATOR.sub("", token.casefold()))]


def _spelled(name: str, times: str | None, unit: str | None) -> list[Specific]:
    """A number in words; a bare `one` is more often a pronoun."""
    if name == "one" and not times and not unit:
        return []
    value = sum(SPELLED[part] for part in re.split("[- ]", name))
    return [_number(str(value), unit, times)]


def _number(digits: str, unit: str | None = None, times: str | None = None, minus: bool = False) -> Number:
    factor = Decimal(TIMES[times.casefold()] if times else 1) * (-1 if minus else 1)
    known = UNITS.get((unit or "").strip().casefold(), "")
    return Number(frozenset(Decimal(reading) * factor for reading in _readings(digits)), known)


def _readings(digits: str) -> list[str]:
    """`1,200` is 1200, since English writes thousands so; `1.200` is 1.2 or 1200; `0,125` and `12,5` are fractions."""
    plain = re.sub("[ ']", "", digits)
    last = max(plain.rfind(","), plain.rfind("."))
    if last < 0:
        return [plain]
    mark, joined = plain[last], re.sub("[,.]", "", plain)
    whole, tail = re.sub("[,.]", "", plain[:last]), plain[last + 1 :]
    if plain.count(mark) > 1:
        return [joined]
    if len(tail) == 3 and whole.lstrip("0") and whole == plain[:last]:
        return [joined] if mark == "," else [f"{whole}.{tail}", joined]
    return [f"{whole}.{tail}"]


def _keys(text: str) -> Iterator[str]:
    """Content words without accents, cut to five letters, without a final s; pairs of characters of unspaced scripts.

    Cutting stems well enough in many languages at once: McNamee, Nicholas and Mayfield, SIGIR 2009.
    """
    plain = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", text.casefold()))
    for run in re.findall(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+", unicodedata.normalize("NFC", plain)):
        if re.match(f"[{_UNSPACED}]", run):
            yield from (run[i : i + 2] for i in range(max(1, len(run) - 1)))
        elif run not in STOP_WORDS and len(run) > 1:
            yield run[:5].rstrip("s") or run


# ---------------------------------------------------------------------------------------------- tables

# Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean: words stand without blanks between them, or take endings,
# so every character is a word of its own.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_COMMON = (
    "a about after all also an and any are as at be been before but by can could did do does for from had has have he "
    "her his how i if in into is it its may more most no not of on one or other our over she should so some such than "
    "that the their them then there these they this to under up was we were what when where which who will with would "
    "you your"
)
STOP_WORDS = frozenset(_COMMON.split())
_HYPHENS = re.compile("[\u2010-\u2015\u2212]")
_ADJECTIVE = re.compile(r"(?:-[a-z]{3,})+$")
_SEPARATOR = re.compile(r"(?<=[^\W\d_])[-_/]+(?=[^\W_])|(?<=\d)[-_/]+(?=[^\W\d_])")  # all but between two digits
_UNIT_WORD = re.compile(r"[^\W\d_]+|[%$€£¥]|°\w")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)", re.IGNORECASE)
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?)"
)
_WHOLE_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_UNIT = f"(?i:{'|'.join(sorted(map(re.escape, UNITS), key=len, reverse=True))})"
_TIMES = f"(?i:{'|'.join(TIMES)})"
_SPELLED = f"(?i:(?:{'|'.join(TENS)})(?:[- ](?:{'|'.join(ONES)}))?|{'|'.join(TEENS + ONES)})"
_PLAIN = r"\d+(?:[.,]\d+)?"
_GROUPED = r"\d{1,3}(?:(?P<group>[,.'\ ])\d{3})(?:(?P=group)\d{3})*(?:[.,]\d+)?"
_W = rf"[^\W{_UNSPACED}]"  # what a name or number is made of; characters of unspaced scripts are neighbours, not parts
_START = f"(?<!{_W})"
_END = f"(?!{_W})"
_ALONE = rf"(?<!{_W})(?<![.,/-])"  # not the tail of a longer number or name
_NO_MORE = rf"(?!{_W}|[-_/]{_W}*\d|[.,:]\d)"  # ... nor its head
# Tried in this order where several could begin. A name without digits or signs is matched as an identifier too, so
# that nothing inside it is; it is told apart afterwards.
_SPECIFIC = re.compile(
    rf"""
    {_ALONE}(?P<iso>(?P<iso_y>\d{{4}})[-/](?P<iso_m>\d\d)[-/](?P<iso_d>\d\d))(?![\d/-])
    |{_ALONE}(?P<numeric>(?P<num_1>\d\d?)(?P<sep>[./])(?P<num_2>\d\d?)(?P=sep)(?P<num_y>\d{{4}}))(?![\d/-])
    |{_ALONE}(?P<day_1>\d\d?)(?:st|nd|rd|th)?\ (?:of\ )?(?P<month_1>(?i:{_MONTH})){_END}
        (?:\.?,?\ (?P<year_1>\d{{4}}){_END})?
    |{_START}(?P<month_2>{_MONTH})\.?\ (?P<day_2>\d\d?)(?:st|nd|rd|th)?{_END}(?![.,:]?\d)
        (?:,?\ (?P<year_2>\d{{4}}){_END})?
    |{_START}(?P<month_3>{_MONTH}(?=\.?,?\ \d{{4}}{_END})|{_WHOLE_MONTH}{_END})(?:\.?,?\ (?P<year_3>\d{{4}}){_END})?
    |{_ALONE}(?P<low>{_PLAIN})(?:\ ?[-/]\ ?|\ (?:and|or|to)\ (?={_PLAIN}[\ -]?{_UNIT}{_END}))(?P<high>{_PLAIN})
        (?:[\ -]?(?P<range_unit>{_UNIT}))?{_NO_MORE}
    |(?P<currency>[$€£¥]\ ?)?{_START}(?P<minus>(?<![.)\]-])-)?(?P<digits>{_GROUPED}|{_PLAIN})
        (?:\ (?P<times>{_TIMES}))?(?:[\ -]?(?P<unit>{_UNIT}))?{_NO_MORE}
    |{_START}(?P<spelled>{_SPELLED})(?:[\ -](?P<spelled_times>{_TIMES}))?(?:[\ -](?P<spelled_unit>{_UNIT}))?{_END}
    |(?P<identifier>{_START}{_W}+(?:[-_./:]{_W}+)*(?:[+\#]+{_END})?)
    """,
    re.VERBOSE,
)
