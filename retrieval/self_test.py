"""A cross-encoder proves itself when it is loaded: what answers a question must beat what does not.

A model of the wrong kind, with a lost head or in a broken number format, gives scores like any other; nobody would
see it in a single answer. The check is not about quality: an evaluation is.
"""

import numpy as np
from numpy.typing import NDArray

from domain.errors import ConfigError
from retrieval.pairs import PairModel

# Question, a passage that answers it, one that does not.
KNOWN = (
    (
        "how hot is the kiln",
        "The kiln is hot: it fires at 900 degrees.",
        "The ferry to the islands leaves on Tuesday morning.",
    ),
    (
        "What is the capital of France?",
        "Paris is the capital and the largest city of France.",
        "Bread is made of flour, water, salt and yeast.",
    ),
    (
        "When did the first person walk on the moon?",
        "Neil Armstrong was the first person to walk on the moon, in July 1969.",
        "The recipe asks for two onions and a spoon of oil.",
    ),
)


def prove(model: PairModel, name: str) -> None:
    """Raises ConfigError, naming the model, for scores that are not finite, constant, or worse than a coin's."""
    pairs = [model.join(model.cut(question), model.cut(text)) for question, *passages in KNOWN for text in passages]
    logits = np.concatenate([model.logits([pair]) for pair in pairs])  # [2 * questions]
    if wrong := _wrong(logits.reshape(-1, 2)):
        raise ConfigError(
            f"The reranker {name} does not rank ({wrong}): name a folder with a cross-encoder that was trained for "
            "ranking, fetch it anew, or set rerank.dtype to float32."
        )


def _wrong(logits: NDArray[np.float32]) -> str:
    """What is wrong with logits [questions, right and wrong passage]; empty when nothing is."""
    if not np.isfinite(logits).all():
        return f"{int((~np.isfinite(logits)).sum())} of {logits.size} known pairs got a score that is not finite"
    if np.ptp(logits) <= 1e-6 * max(1.0, float(np.abs(logits).max())):
        return f"all {logits.size} known pairs got the score {float(logits[0, 0]):.4g}"
    beaten = int((logits[:, 0] > logits[:, 1]).sum())
    if 2 * beaten <= len(logits):
        return f"the right passage beat the wrong one for {beaten} of {len(logits)} known questions"
    return ""
