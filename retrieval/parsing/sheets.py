"""Spreadsheets (XLSX) by openpyxl: row after row with the names of its columns, "sheet Prices, row 5" as a place.

Values are those that Excel stored; nothing is calculated, and a formula without a stored value is remarked.
"""

import io
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

import openpyxl

from retrieval.parsing.archives import checked
from retrieval.parsing.parsed import Draft, Limits, Parsed, counted, one_line
from retrieval.parsing.tables import names_columns, row_text

Row = list[str]


def parse(content: bytes, limits: Limits) -> Parsed:
    """The workbook, a heading a sheet and a mark a row."""
    with checked(content, limits) as archive:
        formulas = sum(archive.read(name).count(b"<f") for name in archive.namelist() if "worksheets/sheet" in name)
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    try:
        draft, missing = Draft(limits), 0
        for sheet in book.worksheets:
            draft.mark(f"sheet {one_line(sheet.title)}")
            draft.heading(2, sheet.title)
            sheet.reset_dimensions()  # what a file says of its own size may be a lie, and costs memory
            write(draft, ([_told(cell) for cell in row] for row in sheet.iter_rows(values_only=True)), sheet.title)
        if formulas:
            missing = _unknown_formulas(content)
        title = book.properties.title or ""
    finally:
        book.close()
    told = f"{counted(missing, 'formula')} without a stored value: open it in Excel and save it"
    return draft.parsed({"title": title}, (told,) if missing else ())


def write(draft: Draft, rows: Iterator[Row], sheet: str = "") -> None:
    """Rows as lines, the first as a header where it looks like one. Blank rows part tables."""
    where = f"sheet {one_line(sheet)}, row " if sheet else "row "
    header: Row | None = None
    begins, held = True, (0, Row())
    apart = "\n\n"
    for number, row in enumerate(rows, 1):
        tidy = [" ".join(cell.split()) for cell in row]  # the line is cleaned as a whole: cells come by the million
        if held[1]:  # the first row of a table waits until the second one shows what it is
            header = held[1] if names_columns(held[1], tidy if any(tidy) else None) else None
            if header is None:
                apart = _line(draft, where, *held, None, apart)
            held = (0, Row())
        if not any(tidy):
            begins, header, apart = True, None, "\n\n"
        elif begins:
            begins, held = False, (number, tidy)
        else:
            apart = _line(draft, where, number, tidy, header, apart)
    if held[1]:
        _line(draft, where, *held, None, apart)


def _line(draft: Draft, where: str, number: int, row: Row, header: Row | None, apart: str) -> str:
    draft.mark(f"{where}{number}")
    draft.block(row_text(row, header), apart)
    return "\n"


def _told(value: Any) -> str:  # whatever a cell may hold
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes").removesuffix(" 00:00")
    if isinstance(value, date | time):
        return value.isoformat()
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _unknown_formulas(content: bytes) -> int:
    """How many cells hold a formula for which no value was stored."""
    as_written = openpyxl.load_workbook(io.BytesIO(content), read_only=True)
    as_stored = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    try:
        return sum(
            written.data_type == "f" and stored.value is None
            for one, other in zip(as_written.worksheets, as_stored.worksheets, strict=True)
            for row, stored_row in zip(one.iter_rows(), other.iter_rows(), strict=False)
            for written, stored in zip(row, stored_row, strict=False)
        )
    finally:
        as_written.close()
        as_stored.close()
