from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from retrieval.embedding import CachedQueries, HashingEmbedder


class Counting:
    """Remembers what it was asked; a text's vector holds its length."""

    tag, runtime, dimensions = "counting", "abacus", 2

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([[len(text), 1] for text in texts], np.float32).reshape(-1, 2)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        self.asked.append(list(texts))
        return self.embed_documents(texts)


def cosine(a: str, b: str) -> float:
    left, right = HashingEmbedder().embed_documents([a, b])
    return float(left @ right)


def test_texts_that_share_words_are_nearer_than_texts_that_share_none() -> None:
    assert cosine("the kiln reaches 900 degrees", "how hot is the kiln") > 0.2
    assert abs(cosine("kiln temperature", "quarterly budget")) < 0.1


def test_a_misspelt_word_is_near_the_right_one() -> None:
    assert cosine("temperature", "temprature") > 0.3


def test_case_and_width_do_not_matter() -> None:
    assert cosine("Kiln ＡＢＣ", "kiln abc") == pytest.approx(1)


def test_blank_texts_get_one_unit_vector() -> None:
    rows = HashingEmbedder().embed_documents(["", " \n", "?!"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1])
    assert (rows == rows[0]).all()


def test_the_hashes_are_the_same_in_every_process() -> None:
    # "a" has the two features "a" and "<a>", of weight 1 each: two entries of 1 / sqrt(2), at places pinned here.
    row = HashingEmbedder(8).embed_documents(["a"])[0]
    assert np.flatnonzero(row).tolist() == [0, 5]


def test_the_cache_asks_once_for_each_text_and_forgets_the_least_recent() -> None:
    inner = Counting()
    cached = CachedQueries(inner, 2)
    assert (cached.tag, cached.runtime) == ("counting", "abacus")
    assert cached.embed_queries(["a", "bb", "a"])[:, 0].tolist() == [1, 2, 1]
    cached.embed_queries(["a"])  # now bb is the least recent
    cached.embed_queries(["ccc"])
    cached.embed_queries(["a"])
    cached.embed_queries(["bb"])
    assert inner.asked == [["a", "bb"], ["ccc"], ["bb"]]
    assert cached.embed_queries([]).shape == (0, 2)


def test_a_caller_who_changes_a_cached_vector_changes_only_his_own() -> None:
    cached = CachedQueries(Counting(), 4)
    cached.embed_queries(["a"])[:] = 7
    assert cached.embed_queries(["a"])[0, 0] == 1


def test_many_threads_get_the_right_vectors() -> None:
    cached = CachedQueries(Counting(), 3)
    texts = ["x" * (i % 9 + 1) for i in range(400)]
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda text: cached.embed_queries([text])[0, 0], texts))
    assert rows == [len(text) for text in texts]
