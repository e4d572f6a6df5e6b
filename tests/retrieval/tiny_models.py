"""Tiny randomly initialised BERT folders, made on the spot: nothing is fetched."""

import json
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

WORDS = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "kiln", "is", "hot", "cold", "blue", "glaze", "fires", "at", "degrees",
    "##s", "how", "what",
]  # fmt: skip


def write_tokenizer(folder: Path) -> None:
    tokenizer = Tokenizer(WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]", "unk_token": "[UNK]"}))


def bert(folder: Path, kind: str, labels: int = 1, seed: int = 0) -> Path:
    """A saved BERT of two layers and 32 dimensions; `kind` is a class of transformers."""
    import torch
    import transformers

    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, num_labels=labels, initializer_range=0.5,
    )  # fmt: skip
    getattr(transformers, kind)(config).eval().save_pretrained(folder)
    write_tokenizer(folder)
    return folder
