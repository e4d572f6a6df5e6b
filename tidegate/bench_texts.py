"""Short texts by the hundred thousand, for benches: sentences of the sample library with some words replaced.

Each text is two of its sentences, drawn at random; four words of it, drawn at random, are replaced by invented words
whose frequencies fall as those of a language do (Zipf), so that the vocabulary grows with the library. Seconds, where
the generator itself would take hours and run out of names. Nothing here is true: no question has an answer in it.
"""

import re
from collections.abc import Iterator
from itertools import product

SYLLABLES = ["ka", "lo", "mi", "ter", "van", "du", "shi", "pra", "ne", "gol", "ost", "ri", "bel", "tam", "wes", "qu"]
INVENTED = [a + b + c + d for a, b, c, d in product(SYLLABLES, repeat=4)]  # 65,536 words
REPLACED, STEEPNESS = 4, 1.3  # words a text; of the frequencies
AT_A_TIME = 10_000  # texts drawn together


def short_texts(n: int, seed: int = 7) -> Iterator[str]:
    """`n` texts of some thirty words, the same for the same seed; more of them begin with the fewer ones."""
    import numpy as np

    from eval.factgraph import generate

    sentences = [
        words
        for document in generate(seed, 600, 0).documents
        for sentence in re.split(r"(?<=[.!?])\s+", document.text)
        if 5 <= len(words := sentence.split()) <= 30
    ]
    rng = np.random.default_rng(seed)
    for first in range(0, n, AT_A_TIME):
        ones, others = rng.integers(0, len(sentences), (2, AT_A_TIME)).tolist()
        places = rng.random((AT_A_TIME, REPLACED)).tolist()
        words = ((rng.zipf(STEEPNESS, (AT_A_TIME, REPLACED)) - 1) % len(INVENTED)).tolist()
        for i in range(min(AT_A_TIME, n - first)):
            text = sentences[ones[i]] + sentences[others[i]]
            for place, word in zip(places[i], words[i], strict=True):
                text[int(place * len(text))] = INVENTED[word]
            yield " ".join(text)


def questions(n: int, seed: int = 7) -> list[str]:
    """At most `n` questions of the same library that stand alone, in its order."""
    from eval.factgraph import generate

    asked = [question.query for question in generate(seed, 600, 2 * n).questions if not question.history]
    return list(dict.fromkeys(asked))[:n]
