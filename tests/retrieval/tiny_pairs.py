"""A pair model of two narrow layers over the bundled tokenizer, and a few lists that it can learn."""

from functools import lru_cache

import numpy as np

from retrieval.bert_weights import EMBEDDINGS, LAYER, BertWeights
from retrieval.model_folder import minilm_folder
from retrieval.pair_lists import DevList, LearnList
from retrieval.pair_looks import Texts
from retrieval.pooled_pair import PooledPair
from retrieval.tokenizing import Tokenizer

WIDTH, LAYERS, MAX_TOKENS = 16, 2, 48
THINGS = ("crane", "gate", "pump", "bell", "channel", "lantern", "anchor", "rope", "buoy", "ferry")


def tiny_model(first_layer: int = 0, seed: int = 0) -> PooledPair:
    """Random small weights: the same for the same seed."""
    rng = np.random.default_rng(seed)
    shapes = {
        "word_embeddings.weight": (30_522, WIDTH), "position_embeddings.weight": (64, WIDTH),
        "token_type_embeddings.weight": (2, WIDTH), "intermediate.dense.weight": (4 * WIDTH, WIDTH),
        "intermediate.dense.bias": (4 * WIDTH,), "output.dense.weight": (WIDTH, 4 * WIDTH),
        "attention.output.dense.weight": (WIDTH, WIDTH),
    }  # fmt: skip
    tensors = {}
    for name in (*EMBEDDINGS, *(f"encoder.layer.{i}.{part}" for i in range(LAYERS) for part in LAYER)):
        ending = max((end for end in shapes if name.endswith(end)), key=len, default="")
        shape = shapes.get(ending, (WIDTH, WIDTH) if name.endswith("weight") and "Norm" not in name else (WIDTH,))
        tensor = rng.normal(0, 0.5, shape).astype(np.float32)
        tensors[name] = np.ones(shape, np.float32) if name.endswith("LayerNorm.weight") else tensor
    weights = BertWeights(tensors, LAYERS, 2, 1e-12, 0, "mean")
    return PooledPair(weights, tokenizer(), first_layer)


@lru_cache
def tokenizer() -> Tokenizer:
    """The bundled one; it keeps nothing of what it cuts."""
    return Tokenizer(minilm_folder(), MAX_TOKENS)


def tiny_lists(model: PooledPair) -> tuple[list[LearnList], list[DevList], Texts]:
    """A question about each thing; right is the passage with the next thing, which no untrained model can know."""
    passages = [f"It stands beside the {thing}." for thing in THINGS]
    questions = [f"What stands near the {thing}?" for thing in THINGS]
    n = len(THINGS)
    learn = [
        LearnList("harbour", question, (i + 1) % n, tuple((i + 1 + k) % n for k in range(1, 7)), ())
        for i, question in enumerate(questions)
    ]
    dev = [
        DevList("harbour", one.question, (one.wrong[0], one.wrong[1], one.right), (3.0, 2.0, 1.0), (one.right,))
        for one in learn[:4]
    ]
    cut = model.cut([*questions, *passages])
    texts = Texts(
        dict(zip(questions, cut[:n], strict=True)), {("harbour", row): ids for row, ids in enumerate(cut[n:])}
    )
    return learn, dev, texts
