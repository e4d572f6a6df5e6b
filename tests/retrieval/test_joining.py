"""What is cut at the request and what is not."""

from dataclasses import replace

from domain.types import PassageTokens
from retrieval.joining import Joiner, as_bytes
from retrieval.pairs import PASSAGE_TOKENS
from retrieval.reranking import passage
from tests.fakes import FakePairModel, chunk, hits

HITS = hits(chunk("a#0", "the kiln", title="Kilns"), chunk("b#0", "blue", title="Glaze"))


def test_passages_cut_with_the_version_are_not_cut_again() -> None:
    model = FakePairModel()
    stored = tuple(
        replace(
            hit, tokens=PassageTokens(model.stamp, as_bytes(model.cut(f"{hit.chunk.source.title}\n{hit.chunk.text}")))
        )
        for hit in HITS
    )
    model.cuts.clear()
    from_store = Joiner(model)("hot", stored)
    assert model.cuts == ["hot"]
    from_text = Joiner(model)("hot", HITS)
    assert [p.key for p in from_store] == [p.key for p in from_text]
    assert [p.joined.ids.tolist() for p in from_store] == [p.joined.ids.tolist() for p in from_text]


def test_tokens_of_another_tokenizer_are_not_read() -> None:
    model = FakePairModel()
    foreign = tuple(replace(hit, tokens=PassageTokens("other", b"\x00" * 8)) for hit in HITS)
    assert [p.key for p in Joiner(model)("hot", foreign)] == [p.key for p in Joiner(model)("hot", HITS)]


def test_a_text_is_cut_once_and_forgotten_when_others_were_used_since() -> None:
    model = FakePairModel()
    join = Joiner(model, remembered=1)
    for _ in range(2):
        join("q", HITS[:1])
    assert model.cuts == ["q", "Kilns\nthe kiln", "q"]
    join("q", HITS)
    join("q", HITS[:1])
    assert model.cuts.count("Kilns\nthe kiln") == 2


def test_a_long_passage_is_the_same_pair_cut_here_or_with_its_version() -> None:
    model = FakePairModel()
    (here,) = hits(chunk("a#0", " ".join(f"w{i}" for i in range(PASSAGE_TOKENS + 88))))
    ids = model.cut(passage(here.chunk))[:PASSAGE_TOKENS]
    stored = replace(here, tokens=PassageTokens(model.stamp, as_bytes(ids)))
    join = Joiner(model)
    assert join("q", [here])[0].key == join("q", [stored])[0].key
    assert join("q", [here])[0].joined.truncated
    assert len(join.tokens_of(here).ids) == 4 * PASSAGE_TOKENS


def test_keys_differ_by_question_and_by_passage() -> None:
    model = FakePairModel()
    join = Joiner(model)
    assert len({pair.key for question in ("hot", "cold") for pair in join(question, HITS)}) == 4


def test_one_id_with_two_texts_is_two_passages() -> None:
    model = FakePairModel()
    one, two = hits(chunk("a#0", "old")), hits(chunk("a#0", "new"))
    join = Joiner(model)
    assert join("q", one)[0].key != join("q", two)[0].key
