"""The encoder: texts to unit vectors, over a local folder of weights and whatever runs it best.

Nothing is ever fetched. A folder that cannot be used is refused when it is loaded, with the way out. Which runtime
computes is runtimes.py, what a batch is batching.py; the cross-encoder on the same machinery is cross_encoder.py.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from retrieval.batching import CPU_BUDGET, GPU_BUDGET, run
from retrieval.dense import Vectors
from retrieval.model_folder import (
    MINILM,
    MINILM_SHA256,
    minilm_folder,
    pooling_of,
    read_json,
    room_for,
    sha256,
    weight_files,
)
from retrieval.runtimes import BEST, Choice, open_runtime
from retrieval.tokenizing import Tokenizer

__all__ = ["MINILM", "MINILM_SHA256", "SentenceEncoder", "minilm_folder"]


class SentenceEncoder:
    """Embedder over any sentence-transformers folder: a transformer, mean or cls pooling, unit length.

    `tag` pins name, weights, tokenizer, pooling, prompts and `max_tokens`; longer texts are cut there. `runtime` names
    what computes and its number format: vectors of one tag and several runtimes are comparable, but not the same bits.
    A text's vector does not depend on its batch beyond the rounding of its number format.
    """

    def __init__(
        self,
        folder: Path,
        choice: Choice = BEST,
        *,
        max_tokens: int = 256,
        batch_tokens: int | None = None,
        name: str = "",
    ) -> None:
        config = read_json(folder / "config.json")
        pooling = pooling_of(folder)
        self._prompts = read_json(folder / "config_sentence_transformers.json", {}).get("prompts") or {}
        self.tokenizer = Tokenizer(folder, room_for(config, max_tokens, folder))
        self._runtime = open_runtime(folder, pooling, choice)
        self._batch_tokens = batch_tokens or (CPU_BUDGET if choice.device == "cpu" else GPU_BUDGET)
        self.runtime, self.dimensions = self._runtime.name, int(config["hidden_size"])
        facts = [sha256(weight_files(folder)), sha256([folder / "tokenizer.json"]), repr(self._prompts)]
        digest = hashlib.sha256(" ".join(facts).encode()).hexdigest()
        self.tag = f"{name or folder.name}-{digest[:12]}-{pooling}-{max_tokens}"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [len(texts), dimensions], unit rows; an empty list gives shape [0, dimensions]."""
        return self._embed(self._prompts.get("document") or self._prompts.get("passage") or "", texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """As `embed_documents`, with the query prompt of the model, if it has one."""
        return self._embed(self._prompts.get("query") or "", texts)

    def count_tokens(self, texts: Sequence[str]) -> int:
        """The tokens of all texts together, as far as they are read, special ones included, the prompt not."""
        return sum(len(self.tokenizer.alone(ids)) for ids in self.tokenizer.cut_all(list(texts)))

    def _embed(self, prompt: str, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        once = {text: place for place, text in enumerate(dict.fromkeys(texts))}  # the same text is computed once
        cut = self.tokenizer.cut_all([prompt + text for text in once])
        vectors = run(
            self._runtime, [self.tokenizer.alone(ids) for ids in cut], None, self.tokenizer.pad, self._batch_tokens
        )
        return vectors if len(once) == len(texts) else vectors[[once[text] for text in texts]]
