"""Books and mail: parts in their order, with what belongs to them."""

from email.message import EmailMessage

import pytest

from retrieval.parsing import epub
from retrieval.parsing.formats import parse
from retrieval.parsing.parsed import Limits, Refused
from tests.retrieval.parsing import made

LIMITS = Limits()


def message(text: str | None = "The pump is late.", subject: str = "Pump") -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Ana <ana@mill.example>", "ben@mill.example", subject
    mail["Date"] = "Fri, 16 Jan 2026 23:30:00 -0500"
    if text is not None:
        mail.set_content(text)
    return mail


def test_a_book_has_its_parts_in_the_order_of_its_spine() -> None:
    book = made.epub({"z.html": "<h1>First</h1><p>one</p>", "cover.html": "<img src=x>", "a.html": "<h1>Second</h1>"})
    parsed = epub.parse(book, LIMITS)
    assert parsed.text == "# First\n\none\n\n# Second"
    assert [(mark.start, mark.name) for mark in parsed.marks] == [(0, "part 1"), (14, "part 2")]
    assert parsed.fields["title"] == "Pumps"


def test_a_table_of_contents_is_left_out() -> None:
    contents = "<h3>Contents</h3>" + "".join(f"<p><a href=c{i}.html>Chapter {i} on pumps</a></p>" for i in range(9))
    assert epub.parse(made.epub({"toc.html": contents, "c.html": "<p>Text.</p>"}), LIMITS).text == "Text."


def test_a_part_that_is_missing_is_named() -> None:
    entries = made.unzipped(made.epub({"a.html": "<p>Text.</p>", "b.html": "<p>More.</p>"}))
    del entries["OPS/b.html"]
    assert epub.parse(made.zipped(entries), LIMITS).remarks == ("b.html is named and not there",)


def test_an_archive_that_is_no_book_is_damaged() -> None:
    with pytest.raises(Refused) as refused:
        epub.parse(made.zipped({"a.txt": "x"}), LIMITS)
    assert refused.value.code == "damaged"


def test_mail_says_who_wrote_when_and_what_about() -> None:
    parsed = parse(message().as_bytes(), ".eml", LIMITS)
    assert parsed.fields == {"title": "Pump", "published": "2026-01-17"}  # in UTC
    assert "From: Ana <ana@mill.example>" in parsed.text
    assert parsed.text.endswith("The pump is late.")
    assert [mark.name for mark in parsed.marks] == ["part 1"]


def test_attachments_that_can_be_read_are_parts_and_others_are_named() -> None:
    mail = message()
    mail.add_attachment("Seal 3 mm.", filename="seal.txt")
    mail.add_attachment(made.pdf(["Forty bar at most."]), maintype="application", subtype="pdf", filename="limits.pdf")
    mail.add_attachment(b"\0\1", maintype="application", subtype="octet-stream", filename="firmware.bin")
    parsed = parse(mail.as_bytes(), ".eml", LIMITS)
    assert [mark.name for mark in parsed.marks] == ["part 1", "part 2", "part 3"]
    assert parsed.text.endswith("## seal.txt\n\nSeal 3 mm.\n\n## limits.pdf\n\nForty bar at most.")
    assert parsed.remarks == ("attachment firmware.bin left out: its kind is not read here",)


def test_plain_text_is_preferred_and_html_read_where_there_is_none() -> None:
    mail = message()
    mail.add_alternative("<p>Another <b>text</b></p>", subtype="html")
    assert "Another" not in parse(mail.as_bytes(), ".eml", LIMITS).text
    only = message(None)
    only.add_alternative("<p>Wipe it &amp; dry it</p><style>x{}</style>", subtype="html")
    assert parse(only.as_bytes(), ".eml", LIMITS).text.endswith("Wipe it & dry it")


def test_mail_saved_as_utf_16_is_read() -> None:
    assert "The pump is late." in parse(message().as_string().encode("utf-16"), ".eml", LIMITS).text


def test_a_message_within_a_message_is_a_part() -> None:
    outer = message("See below.")
    outer.add_attachment(message("The seal is worn.", "Seal"))
    parsed = parse(outer.as_bytes(), ".eml", LIMITS)
    assert "The seal is worn." in parsed.text
    assert [mark.name for mark in parsed.marks] == ["part 1", "part 2"]


@pytest.mark.parametrize(
    "content",
    [
        "".join(f"Subject: {i}\nContent-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n" for i in range(3000)),
        "Subject: s\nContent-Type: message/rfc822\n\n" * 3000,
    ],
)
def test_mail_nested_without_end_is_refused(content: str) -> None:
    with pytest.raises(Refused) as refused:
        parse((content + "\n\ntext").encode(), ".eml", LIMITS)
    assert refused.value.code in ("damaged", "no_text")


def test_what_is_no_mail_is_damaged() -> None:
    with pytest.raises(Refused) as refused:
        parse(b"just words without a header", ".eml", LIMITS)
    assert refused.value.code == "damaged"
