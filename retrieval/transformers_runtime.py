"""Any model that transformers knows, run by transformers: what is not BERT-like, and the oracle of what is.

The only file with transformers. Slower than the other runtimes; `plain=True` takes nothing but its simplest attention,
which is what the others are compared with in float32.
"""

from pathlib import Path
from typing import Any

from domain.errors import ConfigError
from retrieval.model_folder import read_json, weight_files
from retrieval.pairs import TokenBatch, Values
from retrieval.torch_runtime import torch_on

MODELS = {"mean": "AutoModel", "cls": "AutoModel", "classifier": "AutoModelForSequenceClassification"}


class TransformersModel:
    """Runtime over a model by transformers; `head` is mean, cls or classifier. Safe to call from several threads."""

    pads, room = True, 1

    def __init__(self, folder: Path, head: str, device: str, dtype: str, threads: int, *, plain: bool = False) -> None:
        self._torch = torch_on(device, dtype, threads)
        self.name = f"transformers-{dtype}" + ("-cuda" if device.startswith("cuda") else "")
        self._device, self._head = device, head
        config = read_json(folder / "config.json")
        self._typed = int(config.get("type_vocab_size") or 0) > 1
        self._model = _pretrained(MODELS[head], folder, device, dtype, "eager" if plain else None)

    def __call__(self, batch: TokenBatch) -> Values:
        """float32 [b, ...]."""
        torch = self._torch
        with torch.inference_mode():
            ids, types, lengths = (
                torch.from_numpy(array).to(self._device) for array in (batch.ids, batch.types, batch.lengths)
            )
            mask = torch.arange(ids.shape[1], device=self._device)[None] < lengths[:, None]  # [b, t]
            given = {"input_ids": ids, "attention_mask": mask.long()} | (
                {"token_type_ids": types} if self._typed else {}
            )
            found = self._model(**given)
            if self._head == "classifier":
                values = found.logits[:, 0].float()
            else:
                states = found.last_hidden_state.float()  # [b, t, width]
                pooled = states[:, 0] if self._head == "cls" else (states * mask[..., None]).sum(1)
                values = torch.nn.functional.normalize(pooled, dim=-1)
            made: Values = values.cpu().numpy()
        return made


def _pretrained(kind: str, folder: Path, device: str, dtype: str, attention: str | None) -> Any:
    """A model by transformers: local files, safetensors, no foreign code, no weight made up."""
    import torch
    import transformers

    weight_files(folder)
    transformers.utils.logging.disable_progress_bar()  # a library does not print
    try:
        model, report = getattr(transformers, kind).from_pretrained(
            folder,
            dtype=getattr(torch, dtype),
            attn_implementation=attention,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError, RuntimeError) as problem:
        raise ConfigError(
            f"The model in {folder} cannot be loaded ({problem}): name a folder in Hugging Face layout whose model "
            "type the installed transformers knows."
        ) from problem
    spared = "pooler." if kind == "AutoModel" else "\0"  # a pooling layer is not asked for the hidden states
    if missing := sorted(key for key in report["missing_keys"] if not key.startswith(spared)):
        # transformers fills such holes with random numbers and only logs it.
        raise ConfigError(
            f"The weights in {folder} lack {len(missing)} of the model's tensors, such as {missing[0]!r}: it was not "
            "trained for this use; name a folder saved from a model of this kind."
        )
    return model.to(device).eval()
