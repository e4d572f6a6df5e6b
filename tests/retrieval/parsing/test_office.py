"""Word, PowerPoint and Excel files as the libraries write them."""

import io
from datetime import date

import docx
import openpyxl
import pptx
import pytest
from pptx.util import Inches

from retrieval.parsing import sheets, slides, word
from retrieval.parsing.archives import OLE
from retrieval.parsing.parsed import Limits, Refused
from tests.retrieval.parsing.made import unzipped, zipped

LIMITS = Limits()


def saved(document: object) -> bytes:
    held = io.BytesIO()
    document.save(held)  # type: ignore[attr-defined]  # each library's own class
    return held.getvalue()


# ---------------------------------------------------------------------------------------------- Word


def test_word_headings_lists_and_tables_keep_their_shape() -> None:
    document = docx.Document()
    document.add_heading("Pumps", 1)
    document.add_paragraph("P3 stands below.")
    document.add_paragraph("Seal", style="List Bullet")
    document.add_paragraph("Belt", style="List Bullet")
    table = document.add_table(2, 2)
    for cell, text in zip(table._cells, ["Pump", "Limit", "P3", "40 bar"], strict=True):
        cell.text = text
    parsed = word.parse(saved(document), LIMITS)
    assert parsed.text == "# Pumps\n\nP3 stands below.\n\n- Seal\n- Belt\n\nPump: P3; Limit: 40 bar"
    assert [mark.name for mark in parsed.marks] == [
        "paragraph 1",
        "paragraph 2",
        "paragraph 3",
        "paragraph 4",
        "table 1",
    ]


def test_word_text_that_was_inserted_counts_and_deleted_text_does_not() -> None:
    document = docx.Document()
    document.add_paragraph("MARK")
    entries = unzipped(saved(document))
    body = entries["word/document.xml"]
    assert isinstance(body, bytes)
    run = b"<w:r><w:t>MARK</w:t></w:r>"
    assert run in body
    changed = (
        b'<w:ins w:id="1" w:author="a"><w:r><w:t>new </w:t></w:r></w:ins>'
        b'<w:del w:id="2" w:author="a"><w:r><w:delText>old</w:delText></w:r></w:del><w:r><w:t>text</w:t></w:r>'
    )
    entries["word/document.xml"] = body.replace(run, changed)
    assert word.parse(zipped(entries), LIMITS).text == "new text"


def test_word_comments_are_counted_and_left_out() -> None:
    document = docx.Document()
    run = document.add_paragraph("Text.").runs[0]
    document.add_comment(run, "not for readers", author="a")
    parsed = word.parse(saved(document), LIMITS)
    assert parsed.text == "Text."
    assert parsed.remarks == ("1 comment of reviewers left out",)


def test_entities_that_unfold_without_end_are_refused() -> None:
    document = docx.Document()
    document.add_paragraph("MARK")
    entries = unzipped(saved(document))
    body = entries["word/document.xml"]
    assert isinstance(body, bytes)
    bomb = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    head, rest = body.split(b"?>", 1)
    doctype = f'?><!DOCTYPE w [<!ENTITY a0 "lol">{bomb}]>'.encode()
    entries["word/document.xml"] = head + doctype + rest.replace(b"MARK", b"&a11;")
    try:
        text = word.parse(zipped(entries), LIMITS).text
    except Exception:
        text = ""
    assert len(text) < 100


# ---------------------------------------------------------------------------------------------- slides


def test_slides_have_titles_shapes_in_reading_order_tables_and_notes() -> None:
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "Pumps"
    below = slide.shapes.add_textbox(0, Inches(4), Inches(2), Inches(1))
    below.text_frame.text = "below"
    above = slide.shapes.add_textbox(0, Inches(2), Inches(2), Inches(1))
    above.text_frame.text = "above"
    table = slide.shapes.add_table(2, 2, 0, Inches(5), Inches(4), Inches(1)).table
    for row, cells in enumerate([["Pump", "Limit"], ["P3", "40 bar"]]):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    slide.notes_slide.notes_text_frame.text = "say it slowly"
    show.slides.add_slide(show.slide_layouts[6])
    parsed = slides.parse(saved(show), LIMITS)
    assert parsed.text == "## Pumps\n\nabove\n\nbelow\n\nPump: P3; Limit: 40 bar\n\nNotes: say it slowly"
    assert [mark.name for mark in parsed.marks] == ["slide 1"]
    assert "slide 2 has no text" in parsed.remarks[0]


# ---------------------------------------------------------------------------------------------- sheets


def test_sheets_name_their_columns_in_every_row() -> None:
    book = openpyxl.Workbook()
    book.active.title = "Prices"
    for row in (["Pump", "Price", "Since"], ["P3", 1250.5, date(2026, 1, 31)], ["P4", 90, None]):
        book.active.append(row)
    book.create_sheet("Notes").append(["only words"])
    parsed = sheets.parse(saved(book), LIMITS)
    assert parsed.text == (
        "## Prices\n\nPump: P3; Price: 1250.5; Since: 2026-01-31\nPump: P4; Price: 90\n\n## Notes\n\nonly words"
    )
    assert [mark.name for mark in parsed.marks] == [
        "sheet Prices", "sheet Prices, row 2", "sheet Prices, row 3", "sheet Notes", "sheet Notes, row 1",
    ]  # fmt: skip


def test_a_formula_without_a_stored_value_is_remarked() -> None:
    book = openpyxl.Workbook()
    book.active.append(["total", "=1+1"])
    parsed = sheets.parse(saved(book), LIMITS)
    assert parsed.remarks == ("1 formula without a stored value: open it in Excel and save it",)


def test_a_cell_at_the_far_end_of_a_sheet_costs_nothing_between() -> None:
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD9000"] = "near", "far"
    assert sheets.parse(saved(book), LIMITS).text.endswith("near\n\nfar")


# ---------------------------------------------------------------------------------------------- archives


@pytest.mark.parametrize("parse", [word.parse, slides.parse, sheets.parse])
def test_archives_that_unpack_to_more_than_memory_holds_are_refused_unopened(parse: object) -> None:
    content = zipped({"word/document.xml": b"\0" * 300_000_000})
    assert len(content) < 1_000_000
    with pytest.raises(Refused) as refused:
        parse(content, LIMITS)  # type: ignore[operator]  # one of three functions
    assert refused.value.code == "too_big"


def test_locked_and_old_office_files_say_which_they_are() -> None:
    for content, code in (
        (OLE + "EncryptedPackage".encode("utf-16-le"), "password_required"),
        (OLE + b"WordDocument", "damaged"),
        (b"no archive", "damaged"),
    ):
        with pytest.raises(Refused) as refused:
            word.parse(content, LIMITS)
        assert refused.value.code == code


def test_an_archive_of_a_version_that_nobody_knows_is_not_said_to_be_damaged_content() -> None:
    content = bytearray(zipped({"word/document.xml": b"<w/>"}))
    content[content.index(b"PK\x01\x02") + 6] = 99  # the version needed, in the list of entries
    with pytest.raises(Refused, match=r"of a kind that is not read here .*9\.9.*save it anew") as refused:
        word.parse(bytes(content), LIMITS)
    assert refused.value.code == "damaged"
