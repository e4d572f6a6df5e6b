"""Slides (PPTX) by python-pptx: each slide under its title, shapes as they are read, tables, speaker's notes."""

import io
from collections.abc import Iterable, Iterator
from typing import Any

import pptx

from retrieval.parsing.archives import checked
from retrieval.parsing.parsed import Draft, Limits, Parsed, listed
from retrieval.parsing.tables import as_text

Shape = Any  # python-pptx has a class a kind
NESTED = 20  # groups within groups that are looked into; people make two or three


def parse(content: bytes, limits: Limits) -> Parsed:
    """The presentation with a mark a slide."""
    checked(content, limits).close()
    presentation = pptx.Presentation(io.BytesIO(content))
    draft, blank = Draft(limits), []
    for number, slide in enumerate(presentation.slides, 1):
        draft.mark(f"slide {number}")
        before = draft.size
        title = slide.shapes.title
        if title is not None and title.has_text_frame:
            draft.heading(2, title.text_frame.text)
        for shape in _in_order(slide.shapes, NESTED):
            if title is None or shape.shape_id != title.shape_id:
                draft.block(_text(shape))
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if notes is not None and notes.text.strip():
            draft.block(f"Notes: {notes.text}")
        if draft.size == before:
            blank.append(number)
    told = f"slide {listed(blank)} has no text: pictures are not read"
    return draft.parsed({"title": presentation.core_properties.title or ""}, (told,) if blank else ())


def _in_order(shapes: Iterable[Shape], deeper: int) -> Iterator[Shape]:
    """Shapes from top to bottom, then from left to right; those of a group together."""
    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        if hasattr(shape, "shapes"):
            if deeper:
                yield from _in_order(shape.shapes, deeper - 1)
        else:
            yield shape


def _text(shape: Shape) -> str:
    if getattr(shape, "has_table", False):
        return as_text([[cell.text for cell in row.cells] for row in shape.table.rows])
    if not shape.has_text_frame:
        return ""
    lines = []
    for paragraph in shape.text_frame.paragraphs:
        text = paragraph.text.replace("\v", "\n").strip()
        lines.append("  " * paragraph.level + text if text else "")
    return "\n".join(line for line in lines if line)
