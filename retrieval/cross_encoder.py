"""The cross-encoder: reads question and passage as one sequence and gives a logit, over whatever runs it best.

A folder is any Hugging Face sequence classifier with one label, or a "pooled pair" reranker that was trained here. How
many pairs make a batch, and when, is pair_engine.py; which runtime computes is runtimes.py.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from domain.errors import ConfigError
from domain.types import Hit
from retrieval.batching import CPU_BUDGET, GPU_BUDGET, run
from retrieval.model_folder import POOLED_PAIR, minilm_folder, places_of, read_json, room_for, sha256, weight_files
from retrieval.pairs import Ids, JoinedPair, Values
from retrieval.reranking import passage
from retrieval.runtimes import BEST, Choice, open_runtime
from retrieval.tokenizing import Tokenizer

LONGEST = 512  # tokens of a pair, where neither the folder nor the caller says less


class CrossEncoder:
    """PairModel over a folder of weights; scores are raw logits.

    A pair above `max_tokens` loses the end of its longer side, so that no length can fail a batch. A score does not
    depend on its batch beyond the rounding of the number format. `tag` pins weights, runtime and `max_tokens`.
    """

    listwise = False

    def __init__(
        self,
        folder: Path,
        choice: Choice = BEST,
        *,
        max_tokens: int | None = None,  # None: what the folder was trained with, at most 512
        batch_tokens: int | None = None,
    ) -> None:
        self._tokenizer = tokenizer_of(folder, max_tokens)
        self.max_tokens = self._tokenizer.max_tokens
        self.stamp = self._tokenizer.stamp
        self._runtime = open_runtime(folder, "classifier", choice)
        self.runtime, self.pads, self.room = self._runtime.name, self._runtime.pads, self._runtime.room
        self._batch_tokens = batch_tokens or (CPU_BUDGET if choice.device == "cpu" else GPU_BUDGET)
        self.tag = f"{folder.name}-{sha256(weight_files(folder))[:12]}-{self.runtime}-{self.max_tokens}"

    def cut(self, text: str) -> Ids:
        """The token ids of a text, without special ones and not truncated. No text fails, lone surrogates included."""
        return self._tokenizer.cut(text)

    def join(self, question: Ids, passage: Ids) -> JoinedPair:
        """One sequence of at most `max_tokens`: the longer side loses its end first."""
        return self._tokenizer.join(question, passage)

    def logits(self, pairs: Sequence[JoinedPair]) -> Values:
        """float32 [len(pairs)], in their order."""
        if not pairs:
            return np.empty(0, np.float32)
        ids, types = [pair.ids for pair in pairs], [pair.types for pair in pairs]
        return run(self._runtime, ids, types, self._tokenizer.pad, self._batch_tokens)

    def score(self, query: str, hits: Sequence[Hit]) -> Sequence[float]:
        """One logit per hit, in the order given: as a PairScorer, for a single list."""
        question = self.cut(query)
        passages = self._tokenizer.cut_all([passage(hit.chunk) for hit in hits])
        return [float(score) for score in self.logits([self.join(question, read) for read in passages])]


def tokenizer_of(folder: Path, max_tokens: int | None = None) -> Tokenizer:
    """The tokenizer of the cross-encoder in `folder`. Raises ConfigError for a model that does not rank."""
    config = read_json(folder / "config.json")
    trained_here = config.get("model_type") == POOLED_PAIR
    base = minilm_folder() if trained_here else folder
    if not trained_here:
        _check_one_label(config, folder)
    architecture = read_json(base / "config.json")
    limit = (
        int(config.get("max_tokens") or LONGEST) if trained_here else min(LONGEST, places_of(architecture) or LONGEST)
    )
    return Tokenizer(base, room_for(architecture, max_tokens or limit, folder))


def _check_one_label(config: dict[str, object], folder: Path) -> None:
    named = config.get("id2label")
    labels = len(named) if isinstance(named, dict) and named else int(str(config.get("num_labels", 2)))
    if labels != 1:
        raise ConfigError(
            f"The model in {folder} has {labels} labels, a reranker needs exactly one (a relevance logit): choose a "
            "cross-encoder trained for ranking, such as bge-reranker-v2-m3 or ms-marco-MiniLM-L-6-v2."
        )
