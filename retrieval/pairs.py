"""Words of the model engine: a batch of token sequences, what runs it, and what a cross-encoder is to the engine.

A runtime knows arrays, a pair model knows texts, the engine knows requests; each can be replaced without the others.
Nothing here knows torch, ONNX Runtime or OpenVINO.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

PASSAGE_TOKENS = 512  # kept of a passage, when a version is built or a text is cut: no pair model of ours reads more

Ids = NDArray[np.int32]  # [n_tokens]
Values = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class TokenBatch:
    """Sequences of like length, padded at their ends."""

    ids: NDArray[np.int64]  # [b, t]
    types: NDArray[np.int64]  # [b, t] 0 for the question and its specials, 1 for the passage; all 0 for one text
    lengths: NDArray[np.int64]  # [b] tokens that are not padding, 1 to t


class Runtime(Protocol):
    """A compiled model. A sequence's values do not depend on the batch beyond the number format's rounding."""

    name: str  # such as "openvino-bfloat16": it stands in tags, figures and /readyz
    pads: bool  # padding is computed like anything else; otherwise the tokens of a batch are packed end to end
    room: int  # the tokens of a packed batch are computed in multiples of this; 1 where nothing is added

    def __call__(self, batch: TokenBatch) -> Values:
        """float32 [b, ...]: one vector or one logit a sequence. Safe to call from one thread at a time."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class JoinedPair:
    """Question and passage as one sequence with its special tokens; `truncated` when the passage lost its end."""

    ids: Ids
    types: Ids
    truncated: bool


class PairModel(Protocol):
    """A cross-encoder: its tokenizer, how it joins a pair, and its runtime."""

    tag: str
    stamp: str  # names the tokenizer; equal stamps cut equal texts into equal ids
    max_tokens: int  # longest joined sequence, special tokens included
    pads: bool  # as its runtime: a pair costs its padded length, otherwise its tokens
    room: int  # as its runtime

    def cut(self, text: str) -> Ids:
        """The token ids of a text, without special ones and not truncated. No text fails, lone surrogates included."""
        ...

    def join(self, question: Ids, passage: Ids) -> JoinedPair:
        """One sequence of at most `max_tokens`: the longer side loses its end first."""
        ...

    def logits(self, pairs: Sequence[JoinedPair]) -> Values:
        """float32 [len(pairs)], in their order: one batch, padded to its longest."""
        ...
