"""Mail (EML): what it is about, who wrote it when, its text, and the attachments that can be read themselves."""

import codecs
import email
from collections.abc import Callable, Iterator
from datetime import UTC
from email.message import EmailMessage, Message, MIMEPart
from email.policy import default
from email.utils import parsedate_to_datetime
from pathlib import PurePath

from retrieval.parsing import web_pages
from retrieval.parsing.decoding import text_of
from retrieval.parsing.parsed import Draft, Limits, Parsed, Refused, one_line, plain
from retrieval.records import has_words

Attached = Callable[[bytes, str], Parsed | None]  # by the ending of its name; None when nothing here reads that

SHOWN = ("From", "To", "Cc", "Date")
ATTACHMENTS = 50


def parse(content: bytes, limits: Limits, attached: Attached = lambda _content, _ending: None) -> Parsed:
    """The message with a mark a part: the text is part 1, the attachments follow."""
    message = email.message_from_bytes(_as_bytes(content), _class=EmailMessage, policy=default)
    if not message.keys():
        raise Refused("damaged", "is no mail: it has no header lines")
    draft, remarks = Draft(limits), []
    draft.mark("part 1")
    body = _body(message, limits)
    if body or message.is_multipart():
        draft.block("\n".join(f"{name}: {_header(message, name)}" for name in SHOWN if _header(message, name)))
    draft.block(body)
    for number, part in enumerate(_attachments(message), 2):
        name = one_line(part.get_filename() or f"attachment {number}")
        if number > ATTACHMENTS:
            remarks.append(f"only the first {ATTACHMENTS} attachments were read")
            break
        draft.mark(f"part {number}")
        remarks += _attach(draft, part, name, attached)
    if not body and not draft.has_text:
        raise Refused("no_text", "has no text in it")
    fields = {"title": _header(message, "Subject"), "published": _date(message)}
    return draft.parsed(fields, tuple(remarks))


def _as_bytes(content: bytes) -> bytes:
    """Mail saved by a text editor may be UTF-16; inside, mail is bytes of its own."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace").encode()
    return content.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")


def _body(message: EmailMessage, limits: Limits) -> str:
    """The text of a message: as plain text, and as HTML where there is no plain text or nothing in it."""
    for kind in ("plain", "html"):
        part = message.get_body(preferencelist=(kind,))
        if part is None:
            continue
        text = _text(part)
        if kind == "html":
            try:
                text = web_pages.page(text, limits).text
            except Refused:
                continue
        if has_words(text):
            return plain(text).strip()
    return ""


def _text(part: MIMEPart) -> str:
    content = part.get_payload(decode=True)
    return text_of(content, part.get_content_charset() or "")[0] if isinstance(content, bytes) else ""


def _attachments(message: EmailMessage) -> Iterator[EmailMessage]:
    """Everything that is not the text itself: attachments, and messages that were forwarded whole."""
    bodies = [id(part) for kind in ("plain", "html") if (part := message.get_body(preferencelist=(kind,))) is not None]
    pending: list[EmailMessage] = [message]
    while pending:  # not recursion: parts may be nested as deep as somebody likes
        at = pending.pop()
        if at.get_content_type() == "message/rfc822" and at is not message:
            yield at
        elif at.is_multipart():
            pending += reversed([part for part in at.iter_parts() if isinstance(part, EmailMessage)])
        elif id(at) not in bodies and (at.get_filename() or at.is_attachment()):
            yield at


def _attach(draft: Draft, part: EmailMessage, name: str, attached: Attached) -> list[str]:
    """Writes an attachment under its name; what was left out comes back."""
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        first = inner[0] if isinstance(inner, list) and inner else None
        content, ending = (first.as_bytes() if isinstance(first, Message) else b""), ".eml"
    else:
        payload = part.get_payload(decode=True)
        content, ending = payload if isinstance(payload, bytes) else b"", PurePath(name).suffix.lower()
    try:
        parsed = attached(content, ending)
    except Refused as problem:
        return [f"attachment {name} left out: {problem.reason}"]
    if parsed is None:
        return [f"attachment {name} left out: its kind is not read here"]
    draft.heading(2, name)
    draft.block(parsed.text)
    return [f"attachment {name}: {remark}" for remark in parsed.remarks]


def _header(message: EmailMessage, name: str) -> str:
    try:
        return one_line(str(message.get(name) or ""))
    except (ValueError, TypeError, AttributeError, IndexError, LookupError):  # its grammar trips over what people send
        return ""


def _date(message: EmailMessage) -> str:
    try:
        sent = parsedate_to_datetime(str(message.get("Date") or ""))
    except (ValueError, TypeError, IndexError):
        return ""
    return (sent.astimezone(UTC) if sent.tzinfo else sent).date().isoformat()
