"""Recordings on a stand-in for CUDA: what is replayed reads the buffers of its size, and belongs to one caller."""

import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from retrieval.cuda_graphs import Recorded, size_of


def identity(ids: Any, _types: Any, _places: Any, _starts: Any, _longest: int) -> Any:
    """States that are the ids themselves, so that a replay has nothing to compute."""
    return ids


@pytest.fixture
def torch() -> Any:
    """The real module's tensors under a CUDA that records nothing."""
    real = pytest.importorskip("torch")
    stream = SimpleNamespace(wait_stream=lambda _other: None)
    cuda = SimpleNamespace(
        Stream=lambda: stream,
        current_stream=lambda: stream,
        stream=lambda _stream: nullcontext(),
        CUDAGraph=lambda: SimpleNamespace(replay=lambda: None),
        graph=lambda _graph, capture_error_mode: nullcontext(capture_error_mode),
    )
    return SimpleNamespace(cuda=cuda, zeros=real.zeros, tensor=real.tensor)


def test_recorded_sizes_are_few_and_never_beyond_the_models_places() -> None:
    assert size_of(1, 1, 1, 512) == (1024, 32, 64)
    assert size_of(1025, 33, 500, 512) == (2048, 64, 512)
    assert size_of(1025, 33, 140, 130) == (2048, 64, 130)


def test_only_the_given_tokens_come_back_and_sequences_that_are_not_there_are_empty(torch: Any) -> None:
    seen = []

    def remembering(ids: Any, _types: Any, _places: Any, starts: Any, _longest: int) -> Any:
        seen.append(starts)
        return ids

    recorded = Recorded(torch, remembering, 512)
    for tokens in ([5, 6, 7, 8], [9, 10]):
        ids, starts = torch.tensor(tokens), torch.tensor([0, 1, len(tokens)])
        assert recorded(ids, ids, ids, starts, 3, lambda states: states.tolist()) == tokens
    assert seen[-1].tolist() == [0, 1, *[2] * 31]  # 32 sequences, of which two are there


def test_threads_that_share_a_recording_take_their_turns(torch: Any) -> None:
    recorded, found = Recorded(torch, identity, 512), dict[int, list[int]]()
    inside, other_began = threading.Event(), threading.Event()

    def ask(token: int) -> None:
        def use(states: Any) -> list[int]:
            if token == 1:
                inside.set()
                other_began.wait(10)
                threading.Event().wait(0.05)  # time enough for a call that does not wait to overwrite the buffers
            return list(states.tolist())

        ids, starts = torch.tensor([token, token]), torch.tensor([0, 2])
        if token == 2:
            other_began.set()
        found[token] = recorded(ids, ids, ids, starts, 2, use)

    first = threading.Thread(target=ask, args=(1,))
    first.start()
    inside.wait(10)
    ask(2)
    first.join(10)
    assert found == {1: [1, 1], 2: [2, 2]}
