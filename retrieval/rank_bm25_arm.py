"""BM25 on the rank-bm25 package: the slow twin of lexical.py, selectable, and its oracle in tests.

rank-bm25 divides by zero on an empty corpus and gives words in half of the rows or more an idf of zero or below, so
that a match can score less than a miss; both are mended here. It knows no subsets and no updates: statistics of what
the reader may see take a model per visible set, rebuilt from the tokens. Not kept on disk.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.errors import ConfigError
from retrieval.analysis import analyse, weigh
from retrieval.arms import Ranking, Rows, Scores, Visible, WordStatistics, best

_MODELS_KEPT = 4  # a model repeats the tokens of its rows, so only a few readers' are kept


class RankBm25Arm:
    """Finds chunks by words. Scores are those of Bm25Arm times k1 + 1, a constant which never changes an order."""

    name = "rank_bm25"

    def __init__(self, tokens: Sequence[Sequence[str]], k1: float = 0.9, b: float = 0.4) -> None:
        self.k1, self.b = k1, b
        self._tokens = tokens
        self._models: OrderedDict[Visible, Any] = OrderedDict()  # latest used last

    @classmethod
    def build(cls, texts: Sequence[str], k1: float = 0.9, b: float = 0.4) -> "RankBm25Arm":
        """The arm over `texts` in row order; blank ones are rows that nothing finds."""
        return cls([analyse(text) for text in texts], k1, b)

    def statistics(self, text: str, visible: Visible) -> WordStatistics:
        """What the visible rows know about the tokens of `text`."""
        rows = [self._tokens[row] for row in visible.rows]
        holding = {token: sum(token in tokens for tokens in rows) for token in weigh(text, lambda _: False)}
        return WordStatistics(len(rows), sum(map(len, rows)), holding)

    def search(self, text: str, n: int, visible: Visible, statistics: WordStatistics | None = None) -> Ranking:
        """Visible chunks that share a token with `text`, best first, scores > 0; without any, an empty ranking.

        Raises ConfigError for `statistics` of a library beyond the visible rows.
        """
        scores = self._scores(text, visible, statistics)
        found = np.flatnonzero(scores)
        return best(visible.rows[found], scores[found].astype(np.float32), n)

    def score(self, text: str, rows: Rows, visible: Visible, statistics: WordStatistics | None = None) -> Scores:
        """The scores [n_rows] `search` gives to these visible rows, 0 for those that share no token with `text`."""
        return self._scores(text, visible, statistics)[np.searchsorted(visible.rows, rows)].astype(np.float32)

    def _scores(self, text: str, visible: Visible, statistics: WordStatistics | None) -> NDArray[np.float64]:
        """Scores [n_visible] of the visible rows."""
        if statistics is not None and statistics != self.statistics(text, visible):
            raise ConfigError(
                f"Lexical arm 'rank_bm25' holds {visible.rows.size} of the {statistics.chunks} chunks that this reader "
                "may see and cannot score with the statistics of all: set retrieval.lexical to bm25, or use one shard."
            )
        scores = np.zeros(visible.rows.size)
        if any(self._tokens[row] for row in visible.rows):
            model = self._model(visible)
            for token, weight in weigh(text, model.idf.__contains__).items():
                scores += weight * model.get_scores([token])
        return scores

    def _model(self, visible: Visible) -> Any:  # rank_bm25 has no types
        model = self._models.pop(visible, None)
        if model is None:
            model = _model_over([self._tokens[row] for row in visible.rows], self.k1, self.b)
        self._models[visible] = model
        while len(self._models) > _MODELS_KEPT:
            self._models.popitem(last=False)
        return model


def _model_over(tokens: Sequence[Sequence[str]], k1: float, b: float) -> Any:
    """A BM25Okapi with Lucene's idf, which is above zero for every word, in the place of its own."""
    from rank_bm25 import BM25Okapi

    model = BM25Okapi(tokens, k1=k1, b=b)
    model.idf = _lucene_idf(model.doc_freqs, len(tokens))
    return model


def _lucene_idf(rows: Iterable[dict[str, int]], n_rows: int) -> dict[str, float]:
    df = Counter(word for row in rows for word in row)
    return {word: math.log1p((n_rows - n + 0.5) / (n + 0.5)) for word, n in df.items()}
