"""BERT on torch, without padding: the tokens of a batch stand end to end, on the CPU or a CUDA device.

On the CPU weights are packed into oneDNN's own order, and attention runs sequence by sequence. On CUDA in bfloat16
attention of varying lengths is one kernel, copies go through pinned memory, and each size is a recorded graph
(cuda_graphs.py); that kernel knows no float32, which runs sequence by sequence there too. The operators are the ones
torch's own compiler emits; transformers' BertModel is the oracle in the tests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.errors import ConfigError
from retrieval.bert_weights import BertWeights
from retrieval.cuda_graphs import TOKENS, Recorded
from retrieval.heads import FIRST, MEAN, PAIR
from retrieval.pairs import TokenBatch, Values

Tensor = Any  # torch.Tensor; torch is imported only where it is used


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """The tokens of a batch end to end."""

    ids: NDArray[np.int64]  # [n]
    types: NDArray[np.int64]  # [n]
    places: NDArray[np.int64]  # [n] place of each token in its sequence, from 0
    starts: NDArray[np.int32]  # [b + 1] where each sequence begins; the last is n
    seconds: NDArray[np.int64]  # [b] tokens before the passage: the place of its first one


def packed(batch: TokenBatch) -> Packed:
    """The batch without its padding."""
    seen = np.arange(batch.ids.shape[1]) < batch.lengths[:, None]  # [b, t]
    starts = np.concatenate([[0], np.cumsum(batch.lengths)]).astype(np.int32)
    places = np.broadcast_to(np.arange(batch.ids.shape[1]), batch.ids.shape)[seen]
    seconds = batch.lengths - (batch.types * seen).sum(1)
    return Packed(batch.ids[seen], batch.types[seen], places, starts, seconds)


class TorchBert:
    """Runtime on torch. `threads` is set for the whole process, as torch has it; CUDA ignores it."""

    pads = False

    def __init__(self, weights: BertWeights, device: str, dtype: str, threads: int) -> None:
        self._torch = torch = torch_on(device, dtype, threads)
        self._cuda = device.startswith("cuda")
        self.name = f"torch-{dtype}" + ("-cuda" if self._cuda else "")
        self._device, self._heads, self._epsilon = device, weights.heads, weights.epsilon
        kind = getattr(torch, dtype)
        tensors = {name: torch.from_numpy(array.copy()).to(device, kind) for name, array in weights.tensors.items()}
        self._packs = not self._cuda and dtype in ("float32", "bfloat16") and torch.backends.mkldnn.is_available()
        self._words = tensors["embeddings.word_embeddings.weight"]
        self._places = tensors["embeddings.position_embeddings.weight"][weights.first_place :]
        self._types = tensors["embeddings.token_type_embeddings.weight"]
        self._norm = tensors["embeddings.LayerNorm.weight"], tensors["embeddings.LayerNorm.bias"]
        self._layers = [self._layer(tensors, f"encoder.layer.{i}.") for i in range(weights.layers)]
        self._pool, self._values = POOLED[weights.head.pooled], weights.head_alone()
        self._recorded = Recorded(torch, self.states, weights.places) if one_kernel(device, dtype) else None
        self.room = TOKENS if self._recorded else 1

    def __call__(self, batch: TokenBatch) -> Values:
        """float32 [b, ...]. Safe to call from several threads."""
        torch, tokens = self._torch, packed(batch)
        with torch.inference_mode():
            ids, types, places, starts, seconds = (
                self._moved(array) for array in (tokens.ids, tokens.types, tokens.places, tokens.starts, tokens.seconds)
            )
            longest = int(batch.lengths.max(initial=0))

            def pooled(states: Tensor) -> NDArray[np.float32]:
                found: NDArray[np.float32] = (
                    self._pool(torch, states.float(), starts.long(), places, seconds).cpu().numpy()
                )
                return found

            if self._recorded is not None:
                return self._values(self._recorded(ids, types, places, starts, longest, pooled))
            return self._values(pooled(self.states(ids, types, places, starts, longest, batch.lengths.tolist())))

    def _moved(self, array: NDArray[Any]) -> Tensor:
        tensor = self._torch.from_numpy(np.ascontiguousarray(array))
        return tensor.pin_memory().to(self._device, non_blocking=True) if self._cuda else tensor

    def states(
        self, ids: Tensor, types: Tensor, places: Tensor, starts: Tensor, longest: int, lengths: list[int] | None = None
    ) -> Tensor:
        """Hidden states [n, width] of the last layer; `lengths` where no kernel takes all sequences at once."""
        functional = self._torch.nn.functional
        x = self._words[ids] + self._places[places] + self._types[types.clamp(max=len(self._types) - 1)]
        width = (x.shape[-1],)
        x = functional.layer_norm(x, width, *self._norm, self._epsilon)
        for joint, out, wide, narrow, norm, last_norm in self._layers:
            parts = self._linear(x, joint).view(len(x), 3, self._heads, -1)  # [n, 3, heads, size]
            y = self._cuda_attention(parts, starts, longest) if lengths is None else self._attention(parts, lengths)
            x = functional.layer_norm(x + self._linear(y, out), width, *norm, self._epsilon)
            y = self._linear(self._linear(x, wide, "gelu"), narrow)
            x = functional.layer_norm(x + y, width, *last_norm, self._epsilon)
        return x

    def _attention(self, parts: Tensor, lengths: list[int]) -> Tensor:
        """Each sequence by itself: [n, 3, heads, size] -> [n, width]."""
        found = []
        for sequence in parts.split(lengths):
            query, key, value = sequence.permute(1, 2, 0, 3)[:, None]  # each [1, heads, t, size]
            y = self._torch.nn.functional.scaled_dot_product_attention(query, key, value)
            found.append(y[0].transpose(0, 1).reshape(len(sequence), -1))
        return self._torch.cat(found)

    def _cuda_attention(self, parts: Tensor, starts: Tensor, longest: int) -> Tensor:
        """All sequences in one kernel that knows where each begins."""
        from torch.nn.attention.varlen import varlen_attn

        query, key, value = parts.unbind(1)  # each [n, heads, size]
        found: Tensor = varlen_attn(query, key, value, starts, starts, longest, longest)  # [n, heads, size]
        return found.reshape(len(parts), -1)

    def _layer(self, tensors: dict[str, Tensor], at: str) -> tuple[Any, ...]:
        torch, names = self._torch, [at + f"attention.self.{part}" for part in ("query", "key", "value")]
        joint = (torch.cat([tensors[n + ".weight"] for n in names]), torch.cat([tensors[n + ".bias"] for n in names]))
        parts = ("attention.output.dense", "intermediate.dense", "output.dense")
        products = [joint, *((tensors[at + p + ".weight"], tensors[at + p + ".bias"]) for p in parts)]
        if self._packs:
            # One query is bound by reading 42 MB of weights, and the stock product first copies each of them.
            pack = torch.ops.mkldnn._reorder_linear_weight
            products = [(pack(weight, 16), bias) for weight, bias in products]  # 16 rows: a short query
        norms = [
            (tensors[at + p + ".weight"], tensors[at + p + ".bias"])
            for p in ("attention.output.LayerNorm", "output.LayerNorm")
        ]
        return (*products, *norms)

    def _linear(self, states: Tensor, product: tuple[Tensor, Tensor], after: str = "none") -> Tensor:
        if self._packs:
            return self._torch.ops.mkldnn._linear_pointwise(states, *product, after, [], "none")
        states = self._torch.nn.functional.linear(states, *product)
        return self._torch.nn.functional.gelu(states) if after == "gelu" else states


def one_kernel(device: str, dtype: str) -> bool:
    """True where one kernel attends to sequences of any lengths: CUDA's flash attention, which refuses float32."""
    return device.startswith("cuda") and dtype != "float32"


def torch_on(device: str, dtype: str, threads: int) -> Any:
    """The torch module, set up. Raises ConfigError for a device or a number format that is not there."""
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"The device is {device!r}, but torch sees no CUDA device here: set it to 'cpu'.")
    if device == "cpu" and dtype == "bfloat16" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        raise ConfigError("torch does not multiply bfloat16 on this CPU: set dtype to 'auto' or 'float32'.")
    torch.set_num_threads(threads)
    return torch


# ---------------------------------------------------------------------------------------------- pooling


def _sum(torch: Any, states: Tensor, starts: Tensor, which: Tensor) -> Tensor:
    """The sum [b, width] of each sequence's states at `which` [n]; zeros where it has none."""
    return torch.segment_reduce(states * which[:, None], "sum", lengths=starts.diff(), axis=0)


def _first(_torch: Any, states: Tensor, starts: Tensor, _places: Tensor, _seconds: Tensor) -> Tensor:
    return states[starts[:-1]]


def _sum_of_all(torch: Any, states: Tensor, starts: Tensor, places: Tensor, _seconds: Tensor) -> Tensor:
    return _sum(torch, states, starts, places >= 0)


def _pair(torch: Any, states: Tensor, starts: Tensor, places: Tensor, seconds: Tensor) -> Tensor:
    """The first token's state, and the sums of the question's and of the passage's, special tokens left out."""
    lengths = starts.diff()
    last, second = (x.repeat_interleave(lengths) for x in (lengths - 1, seconds))  # [n]
    question = _sum(torch, states, starts, (places > 0) & (places < second - 1))
    passage = _sum(torch, states, starts, (places >= second) & (places < last))
    return torch.cat([states[starts[:-1]], question, passage], 1)


POOLED: dict[str, Callable[..., Tensor]] = {FIRST: _first, MEAN: _sum_of_all, PAIR: _pair}
