"""A question and its hits as token sequences: what the engine reads. Cuts a passage only where nobody has cut it yet.

A version keeps its passages as tokens (`Hit.tokens`), so a request cuts its question alone; a passage that comes
without them, or cut by another tokenizer, is cut once and remembered. Batches and deadlines are pair_engine.py.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from domain.types import Chunk, Hit, PassageTokens
from retrieval.pairs import PASSAGE_TOKENS, Ids, JoinedPair, PairModel
from retrieval.reranking import passage


@dataclass(frozen=True, slots=True, eq=False)
class KeyedPair:
    """A joined pair under a key that two pairs share only when question and passage are the same tokens."""

    key: bytes
    joined: JoinedPair


class Joiner:
    """Joins questions with passages for one model. Safe to call from several threads.

    The `remembered` most recently used passages that had to be cut here are kept, of each at most PASSAGE_TOKENS, as a
    version keeps them: a pair is the same whoever cut its passage.
    """

    def __init__(self, model: PairModel, remembered: int = 20_000) -> None:
        self._model, self._remembered = model, remembered
        self._cut: OrderedDict[bytes, bytes] = OrderedDict()  # digest of the text -> its ids, little-endian int32
        self._lock = threading.Lock()

    def __call__(self, question: str, hits: Sequence[Hit]) -> list[KeyedPair]:
        """One pair per hit, in their order. No text fails; one that is too long loses its end."""
        asked = self._model.cut(question)
        prefix = blake2b(asked.tobytes(), digest_size=16).digest()
        pairs = []
        for hit in hits:
            ids = self.tokens_of(hit).ids
            key = blake2b(ids, key=prefix, digest_size=16).digest()
            pairs.append(KeyedPair(key, self._model.join(asked, np.frombuffer(ids, "<i4"))))
        return pairs

    def tokens_of(self, hit: Hit) -> PassageTokens:
        """Those the hit brings, when this model's tokenizer made them; otherwise made here."""
        if hit.tokens is not None and hit.tokens.stamp == self._model.stamp:
            return hit.tokens
        return PassageTokens(self._model.stamp, self._cut_here(hit.chunk))

    def _cut_here(self, chunk: Chunk) -> bytes:
        text = passage(chunk)
        # Lone surrogates reach this place in hits that were not built from files.
        digest = blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
        with self._lock:
            if (known := self._cut.get(digest)) is not None:
                self._cut.move_to_end(digest)
                return known
        ids = as_bytes(self._model.cut(text)[:PASSAGE_TOKENS])
        with self._lock:
            self._cut[digest] = ids
            while len(self._cut) > self._remembered:
                self._cut.popitem(last=False)
        return ids


def as_bytes(ids: Ids) -> bytes:
    """Token ids as `PassageTokens` holds them."""
    return np.ascontiguousarray(ids, "<i4").tobytes()
