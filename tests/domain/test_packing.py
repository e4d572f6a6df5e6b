"""Evidence is whole, ranked, numbered, once each, and never over its cap."""

import random
from dataclasses import replace

import pytest

from domain.packing import ORDERS, cost, estimate_tokens, evidence_tokens, pack
from domain.types import Chunk, SourceRef
from tests.fakes import hits


def passage(name: str, letters: int = 40, document: str = "") -> Chunk:
    """A passage of `letters` letters and nothing above it: three line breaks more, so 40 letters are 11 tokens."""
    source = SourceRef(document or name, "", "", "kb", "")
    return Chunk(name, "x" * letters, 0, "", source, "harbour", frozenset({"public"}))


A, B, C, D = (passage(name) for name in "abcd")


def ids(evidence: tuple) -> list[str]:  # type: ignore[type-arg]
    return [e.chunk.id for e in evidence]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcdefgh", 2),  # 8 / 4
        ("abcdefghi", 3),
        ("冷却水", 2),  # 3 / 1.5
        ("ปิดวาล์ว", 6),  # 8 / 1.5 = 5.3
        ("Вода.", 2),  # 4 / 2.5 + 1 / 4 = 1.85
        ("abcd冷却水", 3),  # 4 / 4 + 3 / 1.5
    ],
)
def test_tokens_are_estimated_by_script(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_neighbours_together_cost_the_sum_of_their_costs() -> None:
    texts = ["abc", "冷却", "Вода.", "", "ปิด 𠀋"]
    assert cost("".join(texts)) == pytest.approx(sum(map(cost, texts)))


def test_what_stands_above_a_passage_counts_as_well() -> None:
    titled = replace(A, heading="y" * 40, source=replace(A.source, title="z" * 40))
    assert (evidence_tokens(A), evidence_tokens(titled)) == (11, 31)


def test_hits_come_by_rank_and_then_the_pool_newest_first() -> None:
    packed = pack([(A, 1), (B, 2), (D, 3)], hits(C, D), turn=4, token_cap=100)
    assert ids(packed) == ["c", "d", "b", "a"]
    assert [e.sid for e in packed] == ["S1", "S2", "S3", "S4"]


def test_a_hit_from_the_pool_keeps_the_turn_it_joined() -> None:
    packed = pack([(A, 1)], hits(B, A), turn=4, token_cap=100)
    assert [(e.chunk.id, e.joined_turn) for e in packed] == [("b", 4), ("a", 1)]


def test_a_chunk_that_does_not_fit_is_left_out_whole_and_smaller_ones_still_come() -> None:
    # 11 + 76 > 30, 11 + 11 <= 30, a third 11 is one too many.
    packed = pack([], hits(A, passage("big", 300), B, C), turn=1, token_cap=30)
    assert ids(packed) == ["a", "b"]
    assert all(e.chunk.text == "x" * 40 for e in packed)


def test_hits_are_taken_by_rank_whatever_their_order() -> None:
    assert ids(pack([], hits(A, B, C)[::-1], turn=1, token_cap=25)) == ["a", "b"]  # 11 + 11 <= 25


def test_the_edges_order_puts_the_best_at_both_ends() -> None:
    packed = pack([], hits(A, B, C, D), turn=1, token_cap=100, order="edges")
    assert ids(packed) == ["a", "c", "d", "b"]
    assert [e.sid for e in packed] == ["S1", "S2", "S3", "S4"]


def test_a_document_gets_no_more_than_its_quota() -> None:
    same = [passage(f"d{i}", document="d") for i in range(3)]
    assert ids(pack([], hits(*same, A), turn=1, token_cap=100, per_document=2)) == ["d0", "d1", "a"]


def test_nothing_to_pack_is_no_evidence() -> None:
    assert pack([], (), turn=1, token_cap=100) == ()
    assert pack([], hits(A), turn=1, token_cap=0) == ()


def test_evidence_never_exceeds_its_cap_and_never_repeats_or_cuts_a_chunk() -> None:
    rng = random.Random(5)
    for _ in range(300):
        chunks = [passage(str(i), rng.randint(1, 400)) for i in range(rng.randint(0, 20))]
        found = hits(*rng.sample(chunks, rng.randint(0, len(chunks))))
        pool = [(c, rng.randint(1, 5)) for c in rng.sample(chunks, rng.randint(0, len(chunks)))]
        cap = rng.randint(0, 500)
        packed = pack(pool, found, turn=6, token_cap=cap, order=rng.choice(sorted(ORDERS)))
        assert sum(e.tokens for e in packed) <= cap
        assert len(set(ids(packed))) == len(packed)
        assert [e.sid for e in packed] == [f"S{i + 1}" for i in range(len(packed))]
        assert all(e.chunk in chunks for e in packed)
        # Whatever was left out would not have fitted.
        left = cap - sum(e.tokens for e in packed)
        offered = {c.id: c for c in [*(h.chunk for h in found), *(c for c, _ in pool)]}
        assert all(evidence_tokens(c) > left for id_, c in offered.items() if id_ not in ids(packed))
