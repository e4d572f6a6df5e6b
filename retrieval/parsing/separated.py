"""Tables in text files (CSV, TSV): whatever separates the cells, row after row with the names of its columns."""

import csv
import io

from retrieval.parsing.decoding import text_of
from retrieval.parsing.parsed import Draft, Limits, Parsed, Refused
from retrieval.parsing.sheets import write

SEPARATORS = ",;\t|"
SAMPLED = 64  # lines that decide what separates cells


def parse(content: bytes, limits: Limits) -> Parsed:
    """The table with a mark a row; rows count as a spreadsheet counts them, the header is row 1."""
    text, remarks = text_of(content)
    csv.field_size_limit(limits.text_chars)
    draft = Draft(limits)
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator(text))
    try:
        write(draft, (list(row) for row in reader))
    except csv.Error as error:
        raise Refused("damaged", f"line {reader.line_num} cannot be taken apart as a table: {error}") from None
    return draft.parsed(remarks=remarks)


def separator(text: str) -> str:
    """What parts the cells: the one that gives most rows the same number of cells, and more than one."""
    lines = text.splitlines()[:SAMPLED]

    def agreement(candidate: str) -> tuple[int, int]:
        widths = [len(row) for row in csv.reader(lines, delimiter=candidate) if row]
        usual = max(set(widths), key=lambda width: (widths.count(width), width), default=1)
        return (widths.count(usual) if usual > 1 else 0, usual)

    try:
        return max(SEPARATORS, key=agreement)
    except csv.Error:
        return ","
