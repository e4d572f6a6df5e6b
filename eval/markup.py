"""HTML out of Python, where text cannot become markup: a str is escaped, and only what was built here is not."""

import re
from dataclasses import dataclass
from html import escape

VOID = frozenset({"meta", "br"})
# What a page may not hold: control characters, half characters (which UTF-8 cannot carry either), and the marks that
# turn the direction of all that follows them.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Markup:
    """Text that is HTML already. Made by `element` and `joined`, and from a plot or a style of our own."""

    html: str


Part = Markup | str | None


def element(name: str, /, *parts: Part, **attributes: str | bool) -> Markup:
    """An element around its parts; None is left out. `class_` is the attribute class, `_` within a name a hyphen.

    An attribute that is True stands without a value, one that is False does not stand at all.
    """
    told = "".join(_attribute(key.strip("_").replace("_", "-"), value) for key, value in attributes.items())
    return Markup(f"<{name}{told}>" + ("" if name in VOID else f"{joined(*parts).html}</{name}>"))


def joined(*parts: Part) -> Markup:
    """The parts one after the other."""
    return Markup("".join(part.html if isinstance(part, Markup) else escaped(part or "") for part in parts))


def escaped(text: str) -> str:
    """The text as HTML shows it, in an element as well as in an attribute."""
    return escape(_UNFIT.sub("\ufffd", text), quote=True)


def _attribute(name: str, value: str | bool) -> str:
    if isinstance(value, bool):
        return f" {name}" if value else ""
    return f' {name}="{escaped(value)}"'
