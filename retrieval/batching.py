"""Sequences of like length to batches: what is padded, and how far. No tensor library.

For a runtime that pads, a sequence is padded to the next multiple of `STEP` of its own length and stands only beside
sequences of that padded length. So its padding, and with it every bit of its result, does not depend on its company,
and a runtime that prepares itself for each shape meets few of them.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.pairs import Runtime, TokenBatch, Values

STEP = 8  # tokens; on average 3.5 of padding, 3 % of a passage

CPU_BUDGET = 1024  # padded tokens a batch: a core's caches like small batches (8 x 128 tokens)
GPU_BUDGET = 32_768  # a GPU is idle under small ones

Tokens = Sequence[int] | NDArray[np.int32]


def padded(length: int) -> int:
    """The length a sequence of `length` tokens is padded to."""
    return max(-(-length // STEP), 1) * STEP


def batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Positions in the order of their lengths, longest first: the tokens of a batch stay within `batch_tokens`.

    For a runtime that packs. Every position comes once; a text longer than the budget is a batch of its own. Ties keep
    their order, so equal inputs make equal batches.
    """
    batch: list[int] = []
    room = batch_tokens
    for position in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and lengths[position] > room:
            yield batch
            batch, room = [], batch_tokens
        batch.append(position)
        room -= lengths[position]
    if batch:
        yield batch


def alike(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """As `batches` for a runtime that pads: a batch holds one padded length only, so that nothing is padded to its
    neighbour's, and count times that length stays within `batch_tokens`."""
    groups: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        groups.setdefault(padded(length), []).append(position)
    for width in sorted(groups, reverse=True):
        group, size = groups[width], max(1, batch_tokens // width)
        yield from (group[start : start + size] for start in range(0, len(group), size))


def run(runtime: Runtime, ids: Sequence[Tokens], types: Sequence[Tokens] | None, pad: int, batch_tokens: int) -> Values:
    """float32 [len(ids), ...]: what `runtime` makes of each sequence, in the order given; there is at least one."""
    lengths = [len(row) for row in ids]
    values: Values | None = None
    for batch in (alike if runtime.pads else batches)(lengths, batch_tokens):
        chosen = [types[i] for i in batch] if types is not None else None
        made = runtime(token_batch([ids[i] for i in batch], chosen, pad))
        if values is None:
            values = np.empty((len(ids), *made.shape[1:]), np.float32)
        values[batch] = made
    if values is None:
        raise ValueError("no sequences: the shape of nothing is not known, this is a bug of the caller")
    return values


def token_batch(ids: Sequence[Tokens], types: Sequence[Tokens] | None = None, pad: int = 0) -> TokenBatch:
    """The sequences as arrays, padded with `pad` to the padded length of the longest; without `types` all are 0."""
    lengths = np.array([len(row) for row in ids], np.int64)
    shape = len(ids), padded(int(lengths.max(initial=0)))
    batch = TokenBatch(np.full(shape, pad, np.int64), np.zeros(shape, np.int64), lengths)
    for at, row in enumerate(ids):
        batch.ids[at, : len(row)] = row
    for at, row in enumerate(types or ()):
        batch.types[at, : len(row)] = row
    return batch
