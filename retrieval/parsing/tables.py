"""Rows of a table as text that stands on its own line by line, because a long table is cut between its lines.

A row repeats the names of its columns: "Pump: P3; Limit: 40 bar". Where the first row names no columns, cells are told
as they stand, between bars.
"""

import re
from collections.abc import Iterator, Sequence

WIDE = 1500  # characters of a row above which every cell gets a line of its own

Row = Sequence[str]
_NUMBER = re.compile(r"[-+(]?[.,]?\d[\d.,\s]*[%)]?")


def names_columns(first: Row, second: Row | None) -> bool:
    """True when a row looks like a header: a name for every column that has cells, none twice, and none a number."""
    names = [cell for cell in first if cell]
    if second is None or len(names) < 2 or len(set(names)) < len(names):
        return False
    if any(cell and not (i < len(first) and first[i]) for i, cell in enumerate(second)):
        return False
    return not any(_NUMBER.fullmatch(name) or len(name) > 120 for name in names)


def told(rows: Sequence[Row]) -> Iterator[tuple[int, str]]:
    """The number of each row that says something, from 1, and its line."""
    tidy = [[" ".join(cell.split()) for cell in row] for row in rows]
    header = tidy[0] if tidy and names_columns(tidy[0], tidy[1] if len(tidy) > 1 else None) else None
    for number, row in enumerate(tidy, 1):
        if not any(row) or (header is not None and number == 1):
            continue
        yield number, row_text(row, header)


def row_text(row: Row, header: Row | None) -> str:
    """One row as a line, or as a line a cell when it is very wide."""
    if header is None:
        return " | ".join(row).strip(" |") if sum(map(len, row)) < WIDE else "\n".join(filter(None, row))
    cells = [f"{header[i]}: {cell}" if i < len(header) and header[i] else cell for i, cell in enumerate(row) if cell]
    return ("; " if sum(map(len, cells)) < WIDE else "\n").join(cells)


def as_text(rows: Sequence[Row]) -> str:
    """A table as lines; the header of one without rows is told as it stands."""
    lines = [line for _, line in told(rows)]
    if not lines and rows:
        lines = [row_text([" ".join(cell.split()) for cell in row], None) for row in rows]
    return "\n".join(line for line in lines if line)
