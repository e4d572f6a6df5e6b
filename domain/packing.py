"""Hits and pool to numbered evidence under a token cap: whole chunks only, dropped by rank, never cut.

The pool is memory, the pack is spend. What the chunks say and how a vendor wants them written is not looked at here.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from domain.types import Chunk, Evidence, Hit

# Characters per token, by script, as common subword vocabularies spend them on running text.
LATIN_CHARS = 4.0
OTHER_CHARS = 2.5  # Cyrillic, Greek, Arabic, Devanagari and the rest
DENSE_CHARS = 1.5  # scripts of syllables and ideographs: Chinese, Japanese, Korean, Thai, Lao, Khmer

_DENSE = re.compile(
    "[\u0e00-\u0eff\u1100-\u11ff\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_LATIN = re.compile("[\x00-\u024f\u1e00-\u1eff\u2010-\u2027]")


def cost(text: str) -> float:
    """Estimated tokens, as a sum over characters: the cost of neighbours together is the sum of their costs."""
    if text.isascii():
        return len(text) / LATIN_CHARS
    dense, latin = len(_DENSE.findall(text)), len(_LATIN.findall(text))
    return latin / LATIN_CHARS + (len(text) - dense - latin) / OTHER_CHARS + dense / DENSE_CHARS


def estimate_tokens(text: str) -> int:
    """About how many tokens `text` costs, rounded up; 0 only for an empty text. An estimate, not a tokenizer."""
    return math.ceil(cost(text))


def evidence_tokens(chunk: Chunk) -> int:
    """What a chunk costs in the prompt: its text, and the title, heading and date written above it."""
    source = chunk.source
    return estimate_tokens(f"{source.title}\n{chunk.heading}\n{source.published}\n{chunk.text}")


def pack(
    pool_chunks: Sequence[tuple[Chunk, int]],
    hits: Sequence[Hit],
    turn: int,
    token_cap: int,
    *,
    order: str = "score",
    per_document: int | None = None,
) -> tuple[Evidence, ...]:
    """Evidence S1..Sn of at most `token_cap` estimated tokens: the hits by rank, then the pool, newest first.

    A chunk comes once; one that is in the pool keeps the turn it joined, others have joined in `turn`. A chunk that
    does not fit is left out whole and smaller ones after it may still come in. `order` is a name in ORDERS;
    `per_document` limits how many chunks one document may have.
    """
    joined = {chunk.id: joined_turn for chunk, joined_turn in reversed(pool_chunks)}
    taken: dict[str, tuple[Chunk, int]] = {}
    per_source: Counter[str] = Counter()
    left = token_cap
    for chunk in _by_rank(pool_chunks, hits):
        tokens = evidence_tokens(chunk)
        full = per_document is not None and per_source[chunk.source.doc_id] >= per_document
        if chunk.id in taken or tokens > left or full:
            continue
        taken[chunk.id] = (chunk, tokens)
        per_source[chunk.source.doc_id] += 1
        left -= tokens
    ranked = ORDERS[order](list(taken.values()))
    return tuple(
        Evidence(f"S{number}", chunk, joined.get(chunk.id, turn), tokens)
        for number, (chunk, tokens) in enumerate(ranked, 1)
    )


def _by_rank(pool_chunks: Sequence[tuple[Chunk, int]], hits: Sequence[Hit]) -> Iterator[Chunk]:
    yield from (hit.chunk for hit in sorted(hits, key=lambda hit: (hit.rank, hit.chunk.id)))
    newest = sorted(pool_chunks, key=lambda entry: -entry[1])  # stable: within a turn the better one joined first
    yield from (chunk for chunk, _ in newest)


def _edges(ranked: list[tuple[Chunk, int]]) -> list[tuple[Chunk, int]]:
    """The best at both ends, the weakest in the middle, where long prompts are read least (Liu et al., TACL 2024)."""
    return ranked[::2] + ranked[1::2][::-1]


ORDERS: dict[str, Callable[[list[tuple[Chunk, int]]], list[tuple[Chunk, int]]]] = {
    "score": lambda ranked: ranked,
    "edges": _edges,
}
