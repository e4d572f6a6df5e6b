"""The strategy that cuts where the subject changes: where the vectors of neighbouring sentences differ most.

Its price is the encoder. Every sentence of every document is embedded to find the cuts, before the passages are: a
build takes several times as long, also where no document changed, because the vectors of sentences are not kept.
Another encoder cuts elsewhere. The same encoder on the same runtime always cuts alike.
"""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from domain.packing import cost
from domain.ports import Embedder
from domain.types import Document
from retrieval.chunkers_plain import sentence_units
from retrieval.cutting import Span
from retrieval.headings import sections
from retrieval.pieces import Piece, Shape, pieces

Floats = NDArray[np.float64]

SIDE = 3  # sentences on each side of a gap that are compared: one alone says too little, many blur the change
BATCH = 256  # sentences embedded at a time
DIGITS = 4  # of a distance: what differs less is a tie, and the earlier gap wins
NEVER = -1.0  # below any distance


def semantic(document: Document, shape: Shape) -> list[Piece]:
    """Sentences together until the subject changes, or until `size` is reached.

    A text above `size` is halved at its widest gap until all fits; a part that fits is halved too where a gap is wider
    than most in this document. No half is below a quarter of `size` while another gap can be had, and a heading stays
    with what follows it. Overlap repeats whole sentences.
    """
    text, encoder = document.text, shape.encoder("semantic")
    units = sentence_units(text, shape.size)
    if not units:
        return []
    costs = np.array([cost(text[slice(*unit)]) for unit in units])
    ends = np.concatenate([[0.0], np.cumsum(costs)])  # [n_units + 1]: cost of all units before
    # What fits twice into a part that may not be halved again needs no vectors.
    gaps = _distances(text, units, encoder) if ends[-1] >= shape.size / 2 else np.full(len(units) - 1, NEVER)
    groups = _halved(ends, gaps, shape.size)
    return pieces(text, [_span(units, costs, group, shape) for group in groups])


def _distances(text: str, units: list[Span], encoder: Embedder) -> Floats:
    """float64 [n_units - 1]: how unlike the sentences before and after each gap are, 0 to 2; NEVER under a heading."""
    said = [text[slice(*unit)].strip() for unit in units]
    made = [encoder.embed_documents(said[start : start + BATCH]) for start in range(0, len(said), BATCH)]
    running = np.cumsum(np.concatenate(made, dtype=np.float64), axis=0)
    sums = np.concatenate([np.zeros((1, encoder.dimensions)), running])  # [n_units + 1, dimensions]
    at = np.arange(1, len(units))  # [n_gaps]: the unit after each gap
    before = sums[at] - sums[np.maximum(at - SIDE, 0)]
    after = sums[np.minimum(at + SIDE, len(units))] - sums[at]
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    cosines = np.einsum("ij,ij->i", before, after) / np.maximum(lengths, 1e-12)
    distances = np.round(1 - cosines, DIGITS)
    distances[_under_headings(text, units)] = NEVER
    return np.asarray(distances, np.float64)


def _under_headings(text: str, units: list[Span]) -> NDArray[np.bool_]:
    """bool [n_units - 1]: True for gaps between a heading line and the first text below it."""
    lines = [(section.start, section.body) for section in sections(text) if section.body > section.start]
    starts, bodies = [start for start, _ in lines], [body for _, body in lines]

    def is_heading(start: int, end: int) -> bool:
        written = text[start:end]
        begins = start + len(written) - len(written.lstrip())
        owner = bisect_right(starts, begins) - 1
        return owner >= 0 and start + len(written.rstrip()) <= bodies[owner]

    return np.array([is_heading(*unit) for unit in units[:-1]], np.bool_)


def _halved(ends: Floats, gaps: Floats, size: int) -> list[tuple[int, int]]:
    """Runs of units [first, after), in order and covering all of them."""
    real = gaps[gaps > NEVER]
    wide = float(real.mean() + real.std()) if real.size else np.inf
    done: list[tuple[int, int]] = []
    waiting = [(0, len(ends) - 1)]  # a stack, not a recursion: a text may have any number of parts
    while waiting:
        first, after = waiting.pop()
        gap = _gap(ends, gaps, first, after, size, wide)
        if gap is None:
            done.append((first, after))
        else:
            waiting += [(gap, after), (first, gap)]  # the left one is looked at first
    return done


def _gap(ends: Floats, gaps: Floats, first: int, after: int, size: int, wide: float) -> int | None:
    """The unit before which units [first, after) are halved; None where they stay together."""
    if after - first < 2:
        return None
    at = np.arange(first + 1, after)
    left, right = ends[at] - ends[first], ends[after] - ends[at]
    fair = np.minimum(left, right) >= size / 4
    fits = ends[after] - ends[first] <= size
    if fits and not fair.any():
        return None
    allowed = at[fair] if fair.any() else at
    best = int(allowed[np.argmax(gaps[allowed - 1])])  # the first of equals
    return best if not fits or gaps[best - 1] > wide else None


def _span(units: list[Span], costs: Floats, group: tuple[int, int], shape: Shape) -> Span:
    """The span of a run of units, begun earlier by as many whole units as overlap and size allow."""
    first, after = group
    room = min(float(shape.overlap), shape.size - float(costs[first:after].sum()))
    while first > 0 and costs[first - 1] <= room:
        first -= 1
        room -= float(costs[first])
    return units[first][0], units[after - 1][1]
