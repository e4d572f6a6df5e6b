"""Notebooks (ipynb): what people wrote, their code, and what it printed, cell by cell."""

import json
import re
from collections.abc import Iterator
from typing import Any

from retrieval.parsing.decoding import text_of
from retrieval.parsing.parsed import Draft, Limits, Parsed, Refused

Json = Any  # whatever a file holds
PRINTED = 4000  # characters of an output that are kept: logs go on for megabytes
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TAGS = re.compile(r"<(?:a|img|/a|br|div|/div|p|/p|span|/span)\b[^>]*>", re.I)


def parse(content: bytes, limits: Limits) -> Parsed:
    """The notebook with a mark a cell. Pictures, errors and progress on stderr are left out."""
    text, remarks = text_of(content)
    try:
        notebook = json.loads(text)
        cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
        language = str(notebook.get("metadata", {}).get("kernelspec", {}).get("language", "python"))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise Refused("damaged", "is no notebook: JSON with cells is wanted") from None
    draft = Draft(limits)
    for number, cell in enumerate(cells if isinstance(cells, list) else [], 1):
        if isinstance(cell, dict):
            draft.mark(f"cell {number}")
            _write(cell, draft, re.sub(r"\W", "", language))
    return draft.parsed({"title": _title(cells)}, remarks)


def _write(cell: Json, draft: Draft, language: str) -> None:
    source = _joined(cell.get("source", cell.get("input")))
    if cell.get("cell_type") != "code":
        draft.block(_TAGS.sub("", source))
        return
    if source.strip():
        draft.block(f"```{language}\n{source.strip(chr(10))}\n```")
    for printed in _outputs(cell.get("outputs")):
        text = _ESCAPES.sub("", printed).strip("\n")
        if text.strip():
            more = "\n..." if len(text) > PRINTED else ""
            draft.block(f"```\n{text[:PRINTED]}{more}\n```")


def _outputs(outputs: Json) -> Iterator[str]:
    for output in outputs if isinstance(outputs, list) else []:
        if not isinstance(output, dict):
            continue
        kind = output.get("output_type")
        if kind == "stream" and output.get("name") != "stderr":
            yield _joined(output.get("text"))
        elif kind in ("execute_result", "display_data"):
            shown: Json = output.get("data") if isinstance(output.get("data"), dict) else {}
            if not any(name.startswith(("image/", "application/vnd")) for name in shown):
                yield _joined(shown.get("text/markdown", shown.get("text/plain")))


def _joined(value: Json) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _title(cells: Json) -> str:
    written = (_joined(c.get("source")) for c in cells if isinstance(c, dict) and c.get("cell_type") == "markdown")
    found = re.search(r"^#[ \t]+(.+)$", "\n".join(written), re.MULTILINE)
    return found[1].strip("# ") if found else ""
