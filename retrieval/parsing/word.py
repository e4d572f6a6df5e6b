"""Word documents (DOCX) by python-docx: headings by their styles, lists, tables, foot- and endnotes.

Word knows no pages before it lays them out, so a place is a paragraph or a table. Comments of reviewers and deleted
text are left out; inserted text is in.
"""

import io
import re
from collections.abc import Iterator
from typing import Any

import docx
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml.ns import qn
from docx.oxml.parser import parse_xml
from docx.table import Table
from docx.text.paragraph import Paragraph

from retrieval.parsing.archives import checked
from retrieval.parsing.parsed import Draft, Limits, Parsed, counted
from retrieval.parsing.tables import as_text

Element = Any  # lxml, as python-docx has it
_SKIPPED = {qn("w:del"), qn("w:moveFrom"), "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"}
_BREAKS = {qn("w:br"), qn("w:cr")}


def parse(content: bytes, limits: Limits) -> Parsed:
    """The document with a mark a paragraph and a table."""
    checked(content, limits).close()
    document = docx.Document(io.BytesIO(content))
    draft = Draft(limits)
    paragraphs = tables = 0
    in_list = False
    for item in document.iter_inner_content():
        if isinstance(item, Table):
            tables += 1
            draft.mark(f"table {tables}")
            draft.block(as_text(list(_rows(item))))
            in_list = False
        elif text := words(item._p).strip():
            paragraphs += 1
            draft.mark(f"paragraph {paragraphs}")
            in_list = _write(item, text, draft, in_list)
    for kind, name in ((RELATIONSHIP_TYPE.FOOTNOTES, "footnote"), (RELATIONSHIP_TYPE.ENDNOTES, "endnote")):
        for number, text in enumerate(_notes(document, kind), 1):
            draft.mark(f"{name} {number}")
            draft.block(text)
    return draft.parsed({"title": _title(document)}, _remarks(document))


def _write(paragraph: Paragraph, text: str, draft: Draft, in_list: bool) -> bool:
    """Writes a paragraph; True when it was an item of a list."""
    style = paragraph.style.name or "" if paragraph.style is not None else ""
    heading = re.fullmatch(r"Heading ([1-9])", style)
    if heading or style == "Title":
        draft.heading(int(heading[1]) if heading else 1, text)
        return False
    properties = paragraph._p.pPr
    if style.startswith("List") or (properties is not None and properties.numPr is not None):
        draft.block(f"- {text}", "\n" if in_list else "\n\n")
        return True
    draft.block(text)
    return False


def words(element: Element) -> str:
    """The text of an element as Word shows it: with what was inserted, without what was deleted."""
    told: list[str] = []
    stack = [element]
    while stack:  # not recursion: a file may nest as deep as it likes
        at = stack.pop()
        if isinstance(at, str):
            told.append(at)
        elif at.tag == qn("w:t"):
            told.append(at.text or "")
        elif at.tag == qn("w:tab"):
            told.append(" ")
        elif at.tag in _BREAKS:
            told.append("\n")
        elif at.tag == qn("w:noBreakHyphen"):
            told.append("-")
        elif at.tag not in _SKIPPED and isinstance(at.tag, str) and at.tag != qn("w:pPr"):
            if at.tag == qn("w:p") and at is not element:  # of a text box
                stack.append("\n")
            stack += reversed(at)
    return re.sub(r"\n{2,}", "\n", "".join(told))


def _rows(table: Table) -> Iterator[list[str]]:
    """The cells of each row; one that spans columns is told once, what is nested in it after its own text."""
    for row in table._tbl.tr_lst:
        cells: list[str] = []
        for cell in row.tc_lst:
            cells += ["" if cell.vMerge == "continue" else words(cell).strip()] + [""] * (cell.grid_span - 1)
        yield cells


def _notes(document: Any, kind: str) -> Iterator[str]:  # python-docx's Document
    for relation in document.part.rels.values():
        if relation.reltype == kind and not relation.is_external:
            for note in parse_xml(relation.target_part.blob):
                if note.get(qn("w:type")) is None and (text := words(note).strip()):
                    yield text


def _title(document: Any) -> str:  # python-docx's Document
    styled = (p.text for p in document.paragraphs[:20] if p.style is not None and p.style.name == "Title")
    return str(document.core_properties.title or next(styled, ""))


def _remarks(document: Any) -> tuple[str, ...]:  # python-docx's Document
    comments = len(list(document.comments))
    return (f"{counted(comments, 'comment')} of reviewers left out",) if comments else ()
