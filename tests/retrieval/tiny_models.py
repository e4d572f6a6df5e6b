"""Tiny folders of random weights, written by hand: nothing is fetched, and no tensor library is loaded."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from retrieval.model_folder import MINILM, MINILM_SHA256

WORDS = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "kiln", "is", "hot", "cold", "blue", "glaze", "fires", "at", "degrees",
    "##s", "how", "what",
]  # fmt: skip
WIDTH, WIDE, LAYERS, HEADS, PLACES = 32, 64, 2, 4, 64


def write_tokenizer(folder: Path, pair: str = "[CLS] $A [SEP] $B:1 [SEP]:1") -> None:
    tokenizer = Tokenizer(WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair=pair, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]", "unk_token": "[UNK]"}))


def bert(folder: Path, kind: str, labels: int = 1, seed: int = 0) -> Path:
    """A BERT of two layers and 32 dimensions; `kind` is BertModel or BertForSequenceClassification."""
    tensors = Tensors(seed)
    prefix = "" if kind == "BertModel" else "bert."
    tensors.body(prefix, types=2)
    tensors.linear(prefix + "pooler.dense", WIDTH, WIDTH)
    if kind != "BertModel":
        tensors.linear("classifier", labels, WIDTH)
    return write(folder, tensors, {"model_type": "bert", "architectures": [kind], "type_vocab_size": 2}, labels)


def roberta(folder: Path, seed: int = 0) -> Path:
    """An XLM-RoBERTa with a classifier of one label, of the same size."""
    tensors = Tensors(seed)
    tensors.body("roberta.", types=1)
    tensors.linear("classifier.dense", WIDTH, WIDTH)
    tensors.linear("classifier.out_proj", 1, WIDTH)
    kind = {"model_type": "xlm-roberta", "architectures": ["XLMRobertaForSequenceClassification"]}
    write(folder, tensors, kind | {"type_vocab_size": 1, "pad_token_id": 0}, 1)
    write_tokenizer(folder, pair="[CLS] $A [SEP] [SEP] $B [SEP]")
    return folder


def pooled_pair(folder: Path, *, trained_layers: tuple[int, ...] = (5,), seed: int = 0, **changes: Any) -> Path:
    """A reranker on top of the bundled encoder, as training leaves it: some layers slightly moved, and a head."""
    from retrieval.bert_weights import LAYER, tensors_of
    from retrieval.model_folder import minilm_folder

    rng = np.random.default_rng(seed)
    base = tensors_of(minilm_folder())
    names = [f"encoder.layer.{i}.{name}" for i in trained_layers for name in LAYER]
    tensors = {name: base[name] * np.float32(1.01) for name in names}
    tensors |= {f"head.{name}": rng.normal(0, 0.1, 384).astype(np.float32) for name in ("product", "cls")}
    tensors |= {"head.bias": np.array([0.5], np.float32), "head.scale": np.array([1.1], np.float32)}
    config = {
        "model_type": "tidegate-pooled-pair", "base": MINILM, "base_sha256": MINILM_SHA256, "max_tokens": 160,
        "reading_share": 0.3, "script": "latin",
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config | changes))
    save_file(tensors, folder / "model.safetensors")
    return folder


class Tensors(dict[str, np.ndarray]):
    """Random tensors by name; wide enough apart that different texts get different vectors."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def random(self, name: str, *shape: int) -> None:
        self[name] = self.rng.normal(0, 0.5, shape).astype(np.float32)

    def linear(self, name: str, out: int, into: int) -> None:
        self.random(name + ".weight", out, into)
        self.random(name + ".bias", out)

    def norm(self, name: str) -> None:
        self[name + ".weight"], self[name + ".bias"] = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)

    def body(self, prefix: str, types: int) -> None:
        at = prefix + "embeddings."
        self.random(at + "word_embeddings.weight", len(WORDS), WIDTH)
        self.random(at + "position_embeddings.weight", PLACES, WIDTH)
        self.random(at + "token_type_embeddings.weight", types, WIDTH)
        self.norm(at + "LayerNorm")
        for i in range(LAYERS):
            at = f"{prefix}encoder.layer.{i}."
            for part in ("query", "key", "value"):
                self.linear(at + f"attention.self.{part}", WIDTH, WIDTH)
            self.linear(at + "attention.output.dense", WIDTH, WIDTH)
            self.norm(at + "attention.output.LayerNorm")
            self.linear(at + "intermediate.dense", WIDE, WIDTH)
            self.linear(at + "output.dense", WIDTH, WIDE)
            self.norm(at + "output.LayerNorm")


def write(folder: Path, tensors: Tensors, kind: dict[str, Any], labels: int) -> Path:
    config = kind | {
        "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": WIDE,
        "max_position_embeddings": PLACES, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "vocab_size": len(WORDS),
        "id2label": {str(i): f"LABEL_{i}" for i in range(labels)},
    }  # fmt: skip
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(dict(tensors), folder / "model.safetensors", metadata={"format": "pt"})
    write_tokenizer(folder)
    return folder
