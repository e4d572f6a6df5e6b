"""The strategy of parent and child: passages are those of `heading`, and what is searched are their small parts.

A short part matches a question better than a long passage does, and a long passage answers it better. So a hit on a
part is a hit on its passage: how the parts of a version are folded into passages is retrieval/families.py.
"""

from dataclasses import replace
from math import ceil

from domain.packing import cost
from domain.types import Document
from retrieval.chunkers_plain import heading
from retrieval.cutting import Span
from retrieval.pieces import Piece, Shape, passages

MOST_PARTS = 8  # of a passage, so that 8 n parts always hold n passages; part of the version, see building.py
SHARE = 4  # a part aims for a quarter of its passage


def hierarchical(document: Document, shape: Shape) -> list[Piece]:
    """The pieces of `heading`, each with the parts that join up to it. Overlap is between passages, never parts."""
    return [replace(piece, parts=parts_of(piece.text, shape.size)) for piece in heading(document, shape)]


def parts_of(text: str, size: int) -> tuple[str, ...]:
    """At most MOST_PARTS texts that join up to `text`, none of them blank."""
    aim = max(2, size // SHARE, ceil(cost(text) / MOST_PARTS))
    found = _tiles(text, aim)
    while len(found) > MOST_PARTS:
        aim += max(1, aim // 4)
        found = _tiles(text, aim)
    return tuple(text[slice(*span)] for span in found)


def _tiles(text: str, aim: int) -> list[Span]:
    """Adjacent spans that cover a text which begins with no blank; a blank one belongs to the one before it."""
    tiles: list[Span] = []
    for start, end in passages(text, 0, len(text), aim, 0):
        if tiles and not text[start:end].strip():
            tiles[-1] = (tiles[-1][0], end)
        else:
            tiles.append((start, end))
    return tiles
