"""What becomes of a model's hidden states: a vector or a logit, in float32 whatever the layers below computed in.

A logit near 8 has only steps of .03 in bfloat16, which would make ties of fifty passages. So every runtime gives the
pooled states, a few numbers a sequence, and the head is computed here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensors = Mapping[str, Floats]

FIRST, MEAN, PAIR = "first", "mean", "pair"  # pooled [b, width], [b, width] and [b, 3 * width]


def unit(rows: Floats) -> Floats:
    """Rows of length one; a row of zeros stays one."""
    scaled: Floats = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), np.float32(1e-12))
    return scaled


def dots(rows: Floats, vector: Floats) -> Floats:
    """[b]: each row times a vector. Row by row, for a matrix product rounds by how many rows there are."""
    products: Floats = (rows * vector).sum(-1)
    return products


def vector(_tensors: Tensors, pooled: Floats) -> Floats:
    """An encoder's vector [b, width]; the length of what was pooled does not matter."""
    return unit(pooled)


def classified(dense: str, out: str) -> Callable[[Tensors, Floats], Floats]:
    """The logit [b] of a classifier with one hidden layer over the first token's state."""

    def logits(tensors: Tensors, pooled: Floats) -> Floats:
        hidden = np.stack([tensors[dense + ".weight"] @ row for row in pooled]) + tensors[dense + ".bias"]
        return dots(np.tanh(hidden), tensors[out + ".weight"][0]) + tensors[out + ".bias"]

    return logits


def pair_score(tensors: Tensors, pooled: Floats) -> Floats:
    """10 · scale · cos(q, p) + 10 · (q̂ ∘ p̂) · product + cls · w + bias: [b] of the first token's state, q and p."""
    first, question, passage = np.split(pooled, 3, axis=1)
    product = 10 * (tensors["head.product"] + tensors["head.scale"])
    return dots(unit(question) * unit(passage), product) + dots(first, tensors["head.cls"]) + tensors["head.bias"]


def linear(*names: str) -> tuple[str, ...]:
    """The names of the tensors of linear layers."""
    return tuple(f"{name}.{part}" for name in names for part in ("weight", "bias"))


@dataclass(frozen=True, slots=True)
class Head:
    """One kind of head."""

    pooled: str  # FIRST: the first token's state; MEAN: the sum of all; PAIR: the first, and sums of either side
    tensors: tuple[str, ...]  # that it needs
    compute: Callable[[Tensors, Floats], Floats]


HEADS = {
    "mean": Head(MEAN, (), vector),
    "cls": Head(FIRST, (), vector),
    "bert_classifier": Head(FIRST, linear("pooler.dense", "classifier"), classified("pooler.dense", "classifier")),
    "roberta_classifier": Head(
        FIRST,
        linear("classifier.dense", "classifier.out_proj"),
        classified("classifier.dense", "classifier.out_proj"),
    ),
    "pooled_pair": Head(PAIR, ("head.product", "head.cls", "head.bias", "head.scale"), pair_score),
}
