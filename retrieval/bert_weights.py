"""The weights of a BERT-like folder as plain arrays under BERT's names, with what is needed to compute with them.

BERT, RoBERTa and XLM-RoBERTa are one graph here, with an encoder's pooling or a classifier's head on top; so is our own
"pooled pair" reranker, whose folder holds only what was trained. Other models are none of this file's business
(transformers_runtime.py). What computes: bert_graph.py for OpenVINO and ONNX Runtime, torch_runtime.py for torch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.errors import ConfigError
from retrieval.heads import HEADS, Head, linear
from retrieval.model_folder import MINILM, MINILM_SHA256, POOLED_PAIR, minilm_folder, read_json, weight_files

Floats = NDArray[np.float32]

ROBERTAS = ("roberta", "xlm-roberta")  # they count their places from the padding id on


@dataclass(frozen=True, slots=True, eq=False)
class BertWeights:
    """Tensors named as in BERT without a prefix, and the numbers that no tensor's shape tells."""

    tensors: Mapping[str, Floats]
    layers: int
    heads: int
    epsilon: float  # of the layer norms
    first_place: int  # row of the position table that the first token takes
    head: Head  # what becomes of the hidden states

    @property
    def width(self) -> int:
        """Numbers in a hidden state."""
        return int(self.tensors["embeddings.word_embeddings.weight"].shape[1])

    def head_alone(self) -> Callable[[Floats], Floats]:
        """Pooled states of each sequence to what the head makes of them: float32 [b, width] or [b].

        It holds the head's tensors only: a runtime that compiled the layers need not keep them a second time.
        """
        compute, tensors = self.head.compute, {name: self.tensors[name] for name in self.head.tensors}
        return lambda pooled: compute(tensors, pooled)

    @property
    def places(self) -> int:
        """Tokens that a sequence can have."""
        return len(self.tensors["embeddings.position_embeddings.weight"]) - self.first_place

    @property
    def bytes(self) -> int:
        """Size of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors.values())


def bert_weights(folder: Path, head: str) -> BertWeights | None:
    """The weights in `folder` under one of HEADS; `classifier` stands for that of the model's own family.

    None for a model that is not BERT-like. Raises ConfigError for a tensor that is missing, with the way out.
    """
    config = read_json(folder / "config.json")
    if config.get("model_type") == POOLED_PAIR:
        return _pooled_pair(folder, config)
    if not _bert_like(config):
        return None
    roberta = config["model_type"] in ROBERTAS
    if head == "classifier":
        head = "roberta_classifier" if roberta else "bert_classifier"
    first_place = int(config["pad_token_id"]) + 1 if roberta else 0
    return _checked(folder, config, tensors_of(folder), first_place, head)


def _bert_like(config: Mapping[str, Any]) -> bool:
    """False as well for a config that leaves to transformers' defaults what changes every value."""
    family = config.get("model_type")
    needed = ("num_hidden_layers", "num_attention_heads", "layer_norm_eps", *(["pad_token_id"] * (family in ROBERTAS)))
    return (
        family in ("bert", *ROBERTAS)
        and all(config.get(name) is not None for name in needed)
        and config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder")
    )


def _pooled_pair(folder: Path, config: Mapping[str, Any]) -> BertWeights:
    """The trained tensors over those of the bundled encoder."""
    if (config.get("base"), config.get("base_sha256")) != (MINILM, MINILM_SHA256):
        raise ConfigError(
            f"The reranker in {folder} was trained on {config.get('base')!r} ({str(config.get('base_sha256'))[:12]}), "
            f"this program has {MINILM!r} ({MINILM_SHA256[:12]}): train it anew with `tidegate train-reranker`."
        )
    base = minilm_folder()
    tensors = tensors_of(base) | tensors_of(folder)
    return _checked(folder, read_json(base / "config.json"), tensors, 0, "pooled_pair")


def _checked(
    folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Floats], first_place: int, head: str
) -> BertWeights:
    layers = int(config["num_hidden_layers"])
    wanted = [
        *EMBEDDINGS,
        *(f"encoder.layer.{i}.{name}" for i in range(layers) for name in LAYER),
        *HEADS[head].tensors,
    ]
    if missing := [name for name in wanted if name not in tensors]:
        raise ConfigError(
            f"The weights in {folder} lack {len(missing)} of the model's tensors, such as {missing[0]!r}: it was not "
            "trained for this use; name a folder saved from a model of this kind."
        )
    heads, epsilon = int(config["num_attention_heads"]), float(config["layer_norm_eps"])
    return BertWeights({name: tensors[name] for name in wanted}, layers, heads, epsilon, first_place, HEADS[head])


# ---------------------------------------------------------------------------------------------- files


def tensors_of(folder: Path) -> dict[str, Floats]:
    """All tensors of a folder in float32, by their names without the model's prefix."""
    import safetensors

    found: dict[str, Floats] = {}
    for path in weight_files(folder):
        try:
            read = safetensors.deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
        except safetensors.SafetensorError as problem:
            raise ConfigError(f"{path} cannot be read ({problem}): fetch the model anew.") from problem
        for name, tensor in read:
            if (floats := FLOATS.get(tensor["dtype"])) is not None:
                found[_plain(name)] = floats(tensor["data"]).reshape(tensor["shape"])
    return found


def _plain(name: str) -> str:
    """A tensor's name as today's BERT has it: no prefix, and no gamma and beta, as the oldest files say."""
    for prefix in ("bert.", "roberta."):
        name = name.removeprefix(prefix)
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _bfloat16(raw: bytes) -> Floats:
    """bfloat16 is the upper half of a float32."""
    return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").astype(np.float32)


FLOATS: dict[str, Callable[[bytes], Floats]] = {  # other kinds of tensors are counters that nobody computes with
    "F32": lambda raw: np.frombuffer(raw, "<f4").astype(np.float32, copy=False),
    "F16": lambda raw: np.frombuffer(raw, "<f2").astype(np.float32),
    "F64": lambda raw: np.frombuffer(raw, "<f8").astype(np.float32),
    "BF16": _bfloat16,
}


# ---------------------------------------------------------------------------------------------- names


_TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")
EMBEDDINGS = (*(f"embeddings.{table}.weight" for table in _TABLES), *linear("embeddings.LayerNorm"))
LAYER = linear(
    "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
    "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm",
)  # fmt: skip
