"""One record of a corpus as a document: decoding, cleaning, and fields that are refused rather than guessed.

Access groups come from the record itself; a record that states them in a way we do not understand is refused, never
widened. Text stays as its author wrote it, apart from line ends and control characters.
"""

import codecs
import re
import reprlib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import sha256

from domain.ingestion import FileStatus
from domain.types import Document, Mark


@dataclass(frozen=True, slots=True)
class Raw:
    """A record as a reader found it: where, its fields by name (see `document_of`), and remarks on the way.

    `marks` and `first_line` are those of a Document; the text they are about must have been cleaned.
    """

    place: str
    fields: Mapping[str, object]
    remarks: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    first_line: int = 0


class Unreadable(Exception):
    """One record or file cannot become a document. Caught by Corpus, which turns it into an outcome."""

    def __init__(self, code: str, reason: str, status: FileStatus = FileStatus.FAILED, place: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason, self.status, self.place = code, reason, status, place


def document_of(raw: Raw, default_groups: frozenset[str], tenant: str) -> tuple[Document, list[str]]:
    """The document of a record and remarks about it. Raises Unreadable with all that is wrong, or when it is blank.

    Fields: id, title, text, uri, source, published, groups (a name or a list of names), tenant. Absent and null mean
    not stated; an empty list of groups means that nobody may read it.
    """
    wrong: list[str] = []
    remarks = list(raw.remarks)

    def text_of(name: str) -> str:
        value = raw.fields.get(name)
        if value is None:
            return ""
        if isinstance(value, str | int | float | date) and not isinstance(value, bool):
            return clean(str(value))
        wrong.append(f"{name} must be text, not {type(value).__name__}")
        return ""

    if not isinstance(raw.fields.get("text"), str):
        wrong.append("text must be a string" if "text" in raw.fields else "text is missing")
    doc_id = unicodedata.normalize("NFC", text_of("id").strip())
    if not doc_id:
        wrong.append("id is missing")
    title, text, uri, source = (text_of(name) for name in ("title", "text", "uri", "source"))
    published = text_of("published").strip()[:10]
    groups = _groups(raw.fields.get("groups"), default_groups, wrong)
    owner = text_of("tenant").strip() or tenant
    if wrong:
        raise Unreadable("bad_record", "; ".join(wrong))
    if not has_words(text):
        raise Unreadable("blank", "has no letter or digit to search for", FileStatus.SKIPPED)
    if published and not _is_date(published):
        remarks.append(f"published '{published}' is not an ISO date such as 2026-01-31, left empty")
        published = ""
    if not groups:
        remarks.append("nobody may read it: it has no groups, and there are no default groups")
    title = " ".join(title.split())
    digest = sha256(f"{title}\0{text}".encode()).hexdigest()
    about = (uri.strip(), source.strip(), published, groups, owner, digest)
    return Document(doc_id, title, text, *about, raw.marks, raw.first_line), remarks


def _groups(value: object, default: frozenset[str], wrong: list[str]) -> frozenset[str]:
    """Names exactly as written: a value that is not understood is an error, because guessing would widen access."""
    if value is None:
        return default
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        shown = reprlib.repr(value)[:80]  # one line of YAML can stand for gigabytes
        wrong.append(f"groups must be a name or a list of names, not {shown}")
        return frozenset()
    return frozenset(names)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


# ---------------------------------------------------------------------------------------------- text


def clean(text: str) -> str:
    """The text with plain line ends and without control characters or halves of surrogate pairs."""
    text = re.sub(r"\r\n?|[\x0b\x0c\x85]", "\n", text.removeprefix("\ufeff"))
    text = re.sub(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]", "", text)
    return re.sub(r"[\ud800-\udfff]", "\ufffd", text)


def has_words(text: str) -> bool:
    """True when there is a letter or a digit in any script: without one no search can ever find the text."""
    return any(character.isalnum() for character in text)


def is_encoded(text: str) -> bool:
    """True for text that is hardly anything but encoded bytes (base64): nobody can find or read that."""
    encoded = sum(len(run) for run in re.findall(r"[A-Za-z0-9+/=_-]{500,}", text))
    return encoded > 0.8 * len(text)


def decode(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file and, when its encoding had to be guessed, a remark that says which was taken.

    Raises Unreadable for what is no text: stray NULs in UTF-8 are cleaned away later, any other encoding has none.
    """
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if raw.startswith(mark):
            return raw.decode(encoding, "replace"), ()
    try:
        return raw.decode("utf-8"), ()
    except UnicodeDecodeError as error:
        first = error.start
    if b"\0" in raw:
        if encoding := _wide(raw):
            return raw.decode(encoding, "replace"), (f"has no byte order mark, read as {encoding.upper()}",)
        raise Unreadable("not_text", "holds binary data, not text: save it as UTF-8 text")
    mended = raw.decode("utf-8", "replace")
    broken = mended.count("\ufffd")
    if broken < sum(character > "\x7f" for character in mended) - broken:  # UTF-8 with a few bytes gone wrong
        return mended, (f"{broken} bytes are not UTF-8, the first at offset {first}, and shown as \ufffd",)
    encoding = _guess(raw)
    return raw.decode(encoding, "replace"), (
        f"is not UTF-8 (offset {first}), read as {encoding}: save it as UTF-8 to be sure",
    )


def _wide(raw: bytes) -> str:
    """UTF-16 without a mark: of plain letters every other byte is NUL. Empty for everything else."""
    pairs = len(raw) // 2
    for encoding, first in (("utf-16-le", 1), ("utf-16-be", 0)):
        nul, other = raw[first::2].count(0), raw[1 - first :: 2].count(0)
        if len(raw) % 2 == 0 and nul > 0.6 * pairs and other == 0:
            return encoding
    return ""


def _guess(raw: bytes) -> str:
    """Western text has few bytes above 127; a script of its own has mostly those, and only then is guessing reliable.

    On short Western files every detector prefers some Cyrillic or Central European page, hence the rule.
    """
    if sum(byte > 127 for byte in raw) < 0.3 * len(raw):
        return "cp1252"
    from charset_normalizer import from_bytes

    pages = [
        "cp1251",
        "koi8_r",
        "shift_jis",
        "euc_jp",
        "gb18030",
        "big5",
        "euc_kr",
        "cp874",
        "cp1253",
        "cp1255",
        "cp1256",
    ]
    guess = from_bytes(raw[:65536], cp_isolation=pages).best()
    return guess.encoding if guess else "cp1252"
