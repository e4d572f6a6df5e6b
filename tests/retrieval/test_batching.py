import numpy as np

from retrieval.batching import alike, batches, padded, run, token_batch
from retrieval.pairs import TokenBatch


class Lengths:
    """A runtime whose value of a sequence is its length, and which remembers the shapes it was given."""

    name, room = "lengths", 1

    def __init__(self, pads: bool) -> None:
        self.pads, self.shapes = pads, list[tuple[int, ...]]()

    def __call__(self, batch: TokenBatch) -> np.ndarray:
        self.shapes.append(batch.ids.shape)
        return batch.lengths.astype(np.float32)


def test_batches_keep_every_position_once_and_within_the_budget() -> None:
    for seed in range(30):
        lengths = np.random.default_rng(seed).integers(1, 300, size=70).tolist()
        for cut, cost in ((batches, int), (alike, padded)):
            groups = list(cut(lengths, 512))
            assert sorted(i for group in groups for i in group) == list(range(70))
            assert all(len(group) == 1 or sum(cost(lengths[i]) for i in group) <= 512 for group in groups)


def test_longer_texts_come_first_and_ties_keep_their_order() -> None:
    assert list(batches([3, 9, 3, 20], 32)) == [[3, 1, 0], [2]]  # 20 + 9 + 3, 3


def test_one_long_text_takes_no_room_from_the_short_ones_of_a_packed_batch() -> None:
    assert len(list(batches([400, *[100] * 6], 1000))) == 1


def test_a_batch_of_like_lengths_pads_nothing_to_its_neighbour() -> None:
    assert list(alike([3, 9, 8, 16], 1000)) == [[1, 3], [0, 2]]  # 16, 16 and 8, 8


def test_a_runtime_that_pads_sees_only_like_lengths_and_results_keep_their_order() -> None:
    rows = [[1] * n for n in (3, 17, 8, 30)]
    padding, packing = Lengths(True), Lengths(False)
    for runtime in (padding, packing):
        assert run(runtime, rows, None, 0, 1000).tolist() == [3, 17, 8, 30]
    assert padding.shapes == [(1, 32), (1, 24), (2, 8)]
    assert packing.shapes == [(4, 32)]


def test_padding_stands_at_the_ends_and_has_type_0() -> None:
    batch = token_batch([[5, 6, 7], [8]], [[0, 1, 1], [1]], pad=9)
    assert batch.ids[:, :4].tolist() == [[5, 6, 7, 9], [8, 9, 9, 9]]
    assert batch.types[:, :4].tolist() == [[0, 1, 1, 0], [1, 0, 0, 0]]
    assert batch.lengths.tolist() == [3, 1]
    assert batch.ids.shape == (2, 8)
