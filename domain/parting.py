"""A question taken apart by rules: the things it compares, the time it names, the passages it names.

Deliberately shallow, and in English: what no rule recognises stays whole, which is always right and only slower. The
rules add searches and never take the whole question away.
"""

import re
from dataclasses import dataclass

MONTHS = tuple("january february march april may june july august september october november december".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Dates:
    """A time from `since` to `until`, both ISO dates and inclusive; empty is open."""

    since: str = ""
    until: str = ""

    def __contains__(self, published: str) -> bool:
        """True for a day in it. What has no date is in no time."""
        day = published[:10]
        return bool(day) and (not self.since or day >= self.since) and (not self.until or day <= self.until)

    def __str__(self) -> str:
        return f"{self.since or '...'} to {self.until or '...'}"


def parts_of(question: str) -> tuple[str, ...]:
    """The questions inside of a question, each with the words that they share; empty when it is one.

    `Which is older, A or B?` is `Which is older A` and `Which is older B`; so are `between A and B`, `A or B` with a
    comparative, and a second question after the first.
    """
    text = " ".join(question.split())
    sentences = [part.strip() for part in re.split(r"(?<=[?])\s+(?=\S)", text) if part.strip()]
    if len(sentences) > 1:
        return tuple(dict.fromkeys(part for sentence in sentences for part in parts_of(sentence) or (sentence,)))
    for pattern in _SIDES:
        if match := pattern.search(text):
            before, after = text[: match.start()], text[match.end() :]
            sides = (_bare(match["a"]), _bare(match["b"]))
            if all(sides) and sides[0].casefold() != sides[1].casefold():
                shared = " ".join(f"{_LINKS.sub(' ', before)} {{}} {after}".rstrip("?!. ").split())
                return tuple(" ".join(shared.replace("{}", side, 1).split()).strip(" ,") for side in sides)
    return ()


def dates_in(question: str) -> Dates:
    """The time that a question keeps to; open on both sides when it names none.

    `after`, `since` and `from` open it, `before`, `until` and `by` close it, both ends belong to it. `in` and `as of`
    close it as well, and only that: what held in May may have been written long before.
    """
    since = until = ""
    for match in _WHEN.finditer(question):
        first, last = _span(match)
        word = match["word"].lower()
        if word in ("after", "since", "from", "between"):
            since = first
            if match["to"]:
                until = _span(match, "to_")[1]
        else:
            until = last
    return Dates(since, until)


def ids_in(question: str) -> tuple[str, ...]:
    """The chunk ids that a question names, in its order, each once."""
    return tuple(dict.fromkeys(match.rstrip(".,;:?!)'\"") for match in _ID.findall(question)))


def _span(match: re.Match[str], group: str = "") -> tuple[str, str]:
    """First and last day of a year, a month or a day."""
    year, month, day = match[f"{group}year"], match[f"{group}month"], match[f"{group}day"]
    if name := match[f"{group}name"]:
        month = f"{next(i for i, each in enumerate(MONTHS, 1) if each.startswith(name.lower()[:3])):02d}"
        year = match[f"{group}named_year"]
    if not month:
        return f"{year}-01-01", f"{year}-12-31"
    return f"{year}-{month}-{day or '01'}", f"{year}-{month}-{day or '31'}"  # compared as text: no month has a 32nd


def _bare(side: str) -> str:
    return side.strip(" ,?.!")


def _date(group: str) -> str:
    names = "|".join([*MONTHS, *(month[:3] for month in MONTHS)])
    return (
        rf"(?:(?P<{group}name>{names})\.? (?P<{group}named_year>[12]\d{{3}})"
        rf"|(?P<{group}year>[12]\d{{3}})(?:-(?P<{group}month>0[1-9]|1[0-2])(?:-(?P<{group}day>[0-3]\d))?)?)\b"
    )


_WHEN = re.compile(
    rf"\b(?P<word>after|since|from|between|before|until|by|in|as of|during) (?:the end of |early |late )?{_date('')}"
    rf"(?P<to> (?:and|to|until|-) {_date('to_')})?",
    re.I,
)
_ID = re.compile(r"(?<!\S)[\"'(]?([^\s\"'(]+#\d+-[0-9a-f]{2,}\S*)")
_THING = r"(?:(?!\b(?:and|or|than|between|versus|vs)\b)[^?,;]){1,80}?"
_OPENERS = "Did|Does|Do|Is|Are|Was|Were|Has|Have|Had|Can|Which|What|Who|When|Where|How"
_SIDES = (
    re.compile(rf"\bbetween (?P<a>{_THING}) and (?P<b>{_THING})(?=[?,.]|$)", re.I),
    re.compile(rf"(?P<a>(?<=[,:] )(?:the )?{_THING}) or (?P<b>{_THING})(?=[?.]|$)", re.I),
    re.compile(rf"(?<=\bcompare )(?P<a>{_THING}) (?:and|with|to|versus|vs\.?) (?P<b>{_THING})(?=[?.]|$)", re.I),
    re.compile(rf"(?<=\bis )(?P<a>{_THING}) \w+(?:er|re \w+) than (?P<b>{_THING})(?=[?.]|$)", re.I),
    re.compile(
        rf"(?P<a>(?!(?:{_OPENERS})\b)[A-Z][\w-]*(?: [A-Z0-9][\w-]*){{0,4}}) or "
        r"(?P<b>(?:the )?[A-Z][\w-]*(?: [A-Z0-9][\w-]*){0,4})"
    ),
)
_LINKS = re.compile(r"\b(?:difference|compare|comparison)\b", re.I)
