"""Static word vectors out of a transformer's input embedding table: no layer is run, no torch is loaded."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from retrieval.dense import Vectors
from retrieval.model_folder import read_json, read_tokenizer, room_for, weight_files


def word_vectors(folder: Path) -> Callable[[Sequence[str]], Vectors]:
    """A function from words to float32 [n, hidden], unit rows: the mean of the input embeddings of a word's pieces.

    Only the embedding table is read, no layer is run. A word without known pieces gets a row of zeros.
    """
    from safetensors import safe_open

    config = read_json(folder / "config.json")
    tokenizer, _ = read_tokenizer(folder, room_for(config, 64, folder))
    with safe_open(weight_files(folder)[0], "np") as weights:
        (name,) = [key for key in weights.keys() if key.endswith("word_embeddings.weight")]  # noqa: SIM118 (vendor)
        table = weights.get_tensor(name).astype(np.float32)
    unknown = tokenizer.token_to_id(str(read_json(folder / "tokenizer_config.json", {}).get("unk_token", "[UNK]")))

    def vectors(words: Sequence[str]) -> Vectors:
        rows = np.zeros((len(words), table.shape[1]), np.float32)
        for row, word in zip(rows, words, strict=True):
            ids = [
                i
                for i in tokenizer.encode(word.encode(errors="replace").decode(), add_special_tokens=False).ids
                if i != unknown
            ]
            if ids:
                row[:] = table[ids].mean(0)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.where(norms > 0, norms, 1)
        return rows

    return vectors
