"""What runs a model: chosen by name, or the fastest exact enough one that this machine has.

`auto` takes OpenVINO on a CPU, in bfloat16 where the CPU multiplies it, and torch in bfloat16 on CUDA; what it took is
in the runtime's name. What was asked for by name and is not there is an error, never something else in silence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from domain.errors import ConfigError
from retrieval.bert_graph import ROOM
from retrieval.bert_weights import BertWeights, bert_weights
from retrieval.model_folder import read_json
from retrieval.onnx_runtime import OnnxBert
from retrieval.openvino_runtime import OpenVinoBert, bfloat16_cpu
from retrieval.pairs import Runtime
from retrieval.torch_runtime import TorchBert
from retrieval.transformers_runtime import TransformersModel

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to run a model, as a person sets it: each of the first two may be `auto`."""

    runtime: str = AUTO  # a key of RUNTIMES
    dtype: str = AUTO  # float32 or bfloat16
    device: str = "cpu"  # cpu or cuda
    threads: int = 1


BEST = Choice()


def open_runtime(folder: Path, head: str, choice: Choice = BEST) -> Runtime:
    """The model in `folder` with `mean`, `cls` or `classifier` on top, ready to run.

    Raises ConfigError when the folder cannot be used or what was chosen is not there, saying what to set instead.
    """
    if choice.runtime not in (AUTO, *RUNTIMES):
        raise ConfigError(f"The runtime {choice.runtime!r} is not one of {', '.join((AUTO, *RUNTIMES))}: choose one.")
    weights = bert_weights(folder, head)
    if weights is None:
        return _by_transformers(folder, head, choice)
    runtime = _fastest(weights, choice) if choice.runtime == AUTO else choice.runtime
    runtime_of = RUNTIMES[runtime]
    if choice.device != "cpu" and runtime != "torch":
        raise ConfigError(
            f"The runtime {runtime!r} was asked to run on {choice.device!r}, which it does on a CPU only: set the "
            "runtime to 'auto' or 'torch', or the device to 'cpu'."
        )
    if runtime_of.package is not None and find_spec(runtime_of.package) is None:
        raise ConfigError(
            f"The runtime {runtime!r} needs the package {runtime_of.package}, which is not installed: install it as in "
            "requirements.lock, or set the runtime to 'auto'."
        )
    dtype = runtime_of.fastest_dtype(choice.device) if choice.dtype == AUTO else choice.dtype
    if dtype not in runtime_of.dtypes:
        raise ConfigError(
            f"The runtime {runtime!r} was asked for {dtype!r}, it computes in {' or '.join(runtime_of.dtypes)}: set "
            "dtype to 'auto', or choose another runtime."
        )
    return runtime_of.make(weights, choice.device, dtype, choice.threads)


def _fastest(weights: BertWeights, choice: Choice) -> str:
    """The runtime that `auto` stands for with this model."""
    if choice.device != "cpu" or weights.bytes > ROOM:
        return "torch"
    order = [name for name in ("openvino", "onnx", "torch") if choice.dtype in (AUTO, *RUNTIMES[name].dtypes)]
    there = [name for name in order if (package := RUNTIMES[name].package) is None or find_spec(package)]
    return there[0] if there else "torch"


def _by_transformers(folder: Path, head: str, choice: Choice) -> Runtime:
    """A model that is not BERT-like."""
    if choice.runtime not in (AUTO, "torch"):
        kind = read_json(folder / "config.json").get("model_type")
        raise ConfigError(
            f"The runtime {choice.runtime!r} runs BERT, RoBERTa and XLM-RoBERTa with GELU, the model in {folder} is "
            f"{kind!r}: set the runtime to 'auto' or 'torch'."
        )
    dtype = ("bfloat16" if choice.device != "cpu" else "float32") if choice.dtype == AUTO else choice.dtype
    return TransformersModel(folder, head, choice.device, dtype, choice.threads)


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to run BERT."""

    dtypes: tuple[str, ...]
    make: Callable[[BertWeights, str, str, int], Runtime]  # (weights, device, dtype, threads)
    package: str | None  # that must be installed beyond torch
    fastest_dtype: Callable[[str], str]  # (device) -> the one that `auto` takes


RUNTIMES: dict[str, Kind] = {
    "openvino": Kind(
        ("float32", "bfloat16"),
        lambda weights, _device, dtype, threads: OpenVinoBert(weights, dtype, threads),
        "openvino",
        lambda _device: "bfloat16" if bfloat16_cpu() else "float32",
    ),
    "onnx": Kind(
        ("float32",),
        lambda weights, _device, _dtype, threads: OnnxBert(weights, threads),
        "onnxruntime",
        lambda _device: "float32",
    ),
    "torch": Kind(
        ("float32", "bfloat16"),
        TorchBert,
        None,
        lambda device: "float32" if device == "cpu" and not bfloat16_cpu() else "bfloat16",
    ),
}
