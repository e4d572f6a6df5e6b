"""One forward pass on CUDA, recorded once for each size and then replayed: a short batch is all launching otherwise.

Sizes are rounded up to few: tokens, sequences and the longest sequence. Room that is left over belongs to no sequence,
so nothing reads it. What is recorded is torch_runtime.py's packed forward pass.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

Tensor = Any  # torch.Tensor; torch is handed in
Made = TypeVar("Made")

# Steps that sizes are rounded up to; 512 tokens are for nothing on average.
TOKENS, SEQUENCES, LONGEST = 1024, 32, 64
KEPT = 64  # recordings; each holds the activations of its size


def size_of(tokens: int, sequences: int, longest: int, places: int) -> tuple[int, int, int]:
    """The recorded size that a batch runs in; the longest sequence never exceeds the model's `places`."""

    def up(amount: int, step: int) -> int:
        return -(-amount // step) * step

    return up(tokens, TOKENS), up(sequences, SEQUENCES), min(up(longest, LONGEST), places)


class Recorded:
    """The function `states` (ids, types, places, starts, longest) -> [n, width], replayed from recordings."""

    def __init__(self, torch: Any, states: Callable[..., Tensor], places: int) -> None:
        self._torch, self._states, self._model_places = torch, states, places
        self._recordings: dict[tuple[int, int, int], tuple[Any, list[Tensor], Tensor]] = {}
        self._turn = Lock()

    def __call__(
        self, ids: Tensor, types: Tensor, places: Tensor, starts: Tensor, longest: int, use: Callable[[Tensor], Made]
    ) -> Made:
        """What `use` makes of the states of these tokens, which the next call of the same size overwrites.

        Calls from several threads take their turns, `use` included.
        """
        with self._turn:
            return use(self._replayed(ids, types, places, starts, longest))

    def _replayed(self, ids: Tensor, types: Tensor, places: Tensor, starts: Tensor, longest: int) -> Tensor:
        size = size_of(len(ids), len(starts) - 1, longest, self._model_places)
        if size not in self._recordings:
            if len(self._recordings) >= KEPT:
                self._recordings.pop(next(iter(self._recordings)))
            self._recordings[size] = self._record(size, ids, starts)
        graph, inputs, output = self._recordings[size]
        for buffer, given in zip(inputs, (ids, types, places), strict=False):
            buffer[: len(given)].copy_(given)
        inputs[3].fill_(len(ids))  # sequences that are not there begin and end behind the last one
        inputs[3][: len(starts)].copy_(starts)
        graph.replay()
        return output[: len(ids)]

    def _record(self, size: tuple[int, int, int], ids: Tensor, starts: Tensor) -> tuple[Any, list[Tensor], Tensor]:
        torch, (tokens, sequences, longest) = self._torch, size
        inputs = [torch.zeros(tokens, dtype=ids.dtype, device=ids.device) for _ in range(3)]
        inputs.append(torch.zeros(sequences + 1, dtype=starts.dtype, device=starts.device))
        stream = torch.cuda.Stream()  # a warm-up on a side stream, as torch asks for before a recording
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self._states(*inputs, longest)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Another model's thread may copy and allocate meanwhile, which would spoil a recording of the whole process.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            output = self._states(*inputs, longest)
        return graph, inputs, output
