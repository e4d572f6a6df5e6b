"""A cross-encoder of MiniLM-L6's shape for benchmarks: the bundled encoder's weights under a made-up head.

It computes exactly what a trained one of this shape computes, so its speed and its rounding are those of one. What it
says means next to nothing: its head looks where the start-up test's right and wrong pairs differ most in the mean.
"""

import json
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SPREAD = 30.0  # logits of one list then differ by some units, as those of a trained model do
LINEAR = 0.3  # small enough for tanh to change little


def made_up(folder: Path) -> Path:
    """The folder, now with a Hugging Face sequence classifier of one label; the same one every time."""
    from safetensors.numpy import load_file, save_file

    from retrieval.model_folder import minilm_folder, weight_files

    source = minilm_folder()
    folder.mkdir(parents=True)
    config = json.loads((source / "config.json").read_text("utf-8"))
    config |= {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}}
    (folder / "config.json").write_text(json.dumps(config | {"label2id": {"LABEL_0": 0}}), "utf-8")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        if (source / name).is_file():
            shutil.copy(source / name, folder / name)
    weights = {f"bert.{name}": tensor for path in weight_files(source) for name, tensor in load_file(path).items()}
    head = _direction(source)
    weights |= {
        "bert.pooler.dense.weight": LINEAR * np.eye(len(head), dtype=np.float32),
        "bert.pooler.dense.bias": np.zeros(len(head), np.float32),
        "classifier.weight": SPREAD * head[None],
        "classifier.bias": np.zeros(1, np.float32),
    }
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


def _direction(encoder: Path) -> NDArray[np.float32]:
    """A unit vector: the mean state of [CLS] over pairs that belong together, less that over pairs that do not."""
    from retrieval.batching import run
    from retrieval.runtimes import Choice, open_runtime
    from retrieval.self_test import KNOWN
    from retrieval.tokenizing import Tokenizer

    tokenizer, runtime = Tokenizer(encoder, 512), open_runtime(encoder, "cls", Choice("onnx", "float32"))

    def mean(pairs: list[tuple[str, str]]) -> NDArray[np.float32]:
        joined = [tokenizer.join(tokenizer.cut(question), tokenizer.cut(text)) for question, text in pairs]
        states = run(runtime, [pair.ids for pair in joined], [pair.types for pair in joined], tokenizer.pad, 1024)
        average: NDArray[np.float32] = states.mean(0)
        return average

    texts = [text for _, *both in KNOWN for text in both]
    apart = mean([(question, right) for question, right, _ in KNOWN]) - mean(
        [(question, text) for question, right, _ in KNOWN for text in texts if text != right]
    )
    unit: NDArray[np.float32] = apart / np.linalg.norm(apart)
    return unit
