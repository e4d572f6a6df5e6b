"""Bytes of a document as text: by its byte order mark, by what it declares, by what its bytes look like."""

import codecs
import re

from retrieval.parsing.parsed import Refused
from retrieval.records import Unreadable, decode

_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DECLARED = re.compile(
    rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]*?encoding=["']([\w.:-]+)""", re.I
)
_LATIN = re.compile(r"(us-?)?ascii|iso-?8859-?1|latin-?1", re.I)
# What stands before the first element: libxml2 refuses the first in decoded text, and shows the end of the second.
_PROLOGUE = re.compile(r"^\s*(<\?xml[^>]*\?>)?\s*(<!DOCTYPE[^>\[]*\[[^\]]*\]\s*>)?", re.I)
SEARCHED = 65_536  # bytes in which a page may say how it is encoded; browsers look at 1,024, mail programs write more


def text_of(content: bytes, declared: str = "") -> tuple[str, tuple[str, ...]]:
    """The text and remarks. Raises Refused for what is no text.

    What is declared counts only when the bytes agree: a page that says iso-8859-1 and is UTF-8 is UTF-8.
    """
    if declared and not content.startswith(_MARKS) and not _is_utf8(content):
        try:
            # Strictly: where a byte does not exist in that encoding, it is not the encoding. Latin-1 means this one.
            return content.decode("cp1252" if _LATIN.fullmatch(declared) else declared), ()
        except (LookupError, ValueError):
            pass  # unknown, no encoding of text, or another one: the bytes decide
    try:
        return decode(content)
    except Unreadable as problem:
        raise Refused("encoding", problem.reason) from None


def markup_of(content: bytes) -> tuple[str, tuple[str, ...]]:
    """The same for HTML and XML, which may say inside how they are encoded."""
    found = _DECLARED.search(content[:SEARCHED])
    declared = (found[1] or found[2]).decode("ascii") if found else ""
    text, remarks = text_of(content, declared)
    return _PROLOGUE.sub("", text, count=1), remarks


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
